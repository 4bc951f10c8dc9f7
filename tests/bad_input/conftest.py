import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534


@pytest.fixture
def open_folder():
    """A folder that everybody may enter, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)
        os.chmod(folder, 0o755)


@pytest.fixture
def another_user():
    """What makes this process another user's for a block, where it is root's, who may do everything."""

    @contextmanager
    def become():
        before = os.geteuid()
        if before == 0:
            os.seteuid(NOBODY)
        try:
            yield
        finally:
            os.seteuid(before)

    return become
