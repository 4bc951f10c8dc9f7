import gc
import multiprocessing.forkserver
import os
from collections import defaultdict
from pathlib import Path

from tests.support.quiet import PATIENT, QUIET

os.environ |= {**QUIET, **PATIENT}  # before Dask reads it

import dask
import fsspec
import hypothesis
import pytest
from distributed import Client, LocalCluster

from daskw2v.store import retries

# The first example compiles kernels: no deadline.
hypothesis.settings.register_profile("daskw2v", deadline=None, max_examples=15)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=40)  # others in each run
hypothesis.settings.load_profile("daskw2v")


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by markers
def pytest_collection_modifyitems(items):
    """Mark as slow what `sampled` leaves out, and begin with the files of the tests that may take longest.

    Else one process ends long after the others: for `--dist loadfile --no-loadscope-reorder`.
    """
    cases = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled") and not item.get_closest_marker("slow"):
            cases[item.nodeid.partition("[")[0]].append(item)
    for these in cases.values():
        n = min(these[0].get_closest_marker("sampled").args[0], len(these))
        kept = {(2 * i + 1) * len(these) // (2 * n) for i in range(n)}  # spread evenly
        for number, item in enumerate(these):
            if number not in kept:
                item.add_marker("slow")
    longest = defaultdict(int)
    for item in items:
        marker = item.get_closest_marker("timeout")
        longest[item.path] = max(longest[item.path], marker.args[0] if marker else 0)
    items.sort(key=lambda item: -longest[item.path])


@pytest.fixture(scope="session", autouse=True)
def forked():
    """Fork the workers of this process's clusters from one that has imported all they need: seconds less for each.

    Commands that tests start start their workers as users do.
    """
    multiprocessing.forkserver.set_forkserver_preload(["distributed", "daskw2v.training.warm_up"])
    multiprocessing.forkserver.ensure_running()
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        yield


@pytest.fixture(scope="module", autouse=True)
def collected():
    """Leave nothing to look through again: compilers keep millions of objects, seconds of each full collection."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def client():
    """A small cluster inside this process: what tests patch is patched for the workers too."""
    # Not Dask's current client: what is not given it starts its own cluster
    options = {"processes": False, "n_workers": 1, "threads_per_worker": 2, "dashboard_address": ":0"}
    with Client(**options, set_as_default=False) as client:
        yield client


@pytest.fixture(scope="session")
def two_processes():
    """A client of two worker processes, for tests that leave them alive and as they were."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def s3():
    """Options for an object store on this machine, with one bucket."""
    moto = pytest.importorskip("moto.server", reason="no object store: install moto[server]")
    pytest.importorskip("s3fs", reason="no client for object stores: install s3fs")
    server = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = {"key": "a-key", "secret": "a-secret", "endpoint_url": f"http://{host}:{port}"}
    fsspec.filesystem("s3", **options).mkdir("bucket")
    yield options
    server.stop()


@pytest.fixture
def no_pauses(monkeypatch):
    """Have what failed tried again at once."""
    monkeypatch.setattr(retries, "PAUSES", (0.0,) * len(retries.PAUSES))


@pytest.fixture(scope="session")
def data():
    """The folder of real text and evaluation sets; tests that need it skip where it is missing."""
    folder = Path(os.environ.get("DASKW2V_DATA", "../shared/data"))
    if not (folder / "eval").is_dir():
        pytest.skip(f"no evaluation data at {folder} (set DASKW2V_DATA)")
    return folder


@pytest.fixture(scope="session")
def torch():
    """PyTorch; tests that need it skip where it is missing."""
    return pytest.importorskip("torch", reason="PyTorch comes with daskw2v[torch]")
