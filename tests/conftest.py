import pytest
from distributed import Client


@pytest.fixture(scope="session")
def client():
    with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None) as client:
        yield client
