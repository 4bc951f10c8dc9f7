from pathlib import Path

import pytest

from tests.conftest import client, data, s3, torch  # noqa: F401

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents and item.path.stem != "test_records":  # which are read, not measured
            item.add_marker(pytest.mark.slow)
