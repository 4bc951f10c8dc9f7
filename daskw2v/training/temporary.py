"""A work directory for a call that names none: it is there as long as the vectors."""

import os
import shutil
import weakref
from collections.abc import Callable
from tempfile import mkdtemp

from daskw2v.models.queries.vectors import Vectors


def in_temporary_folder(run: Callable[[str], Vectors]) -> Vectors:
    """Call a function with a new folder, which is removed with the vectors that it returns, or when the process ends.

    Parameters
    ----------
    run
        Trains in a folder; where it raises, the folder is removed at once.
    """
    folder, process = mkdtemp(prefix="daskw2v-"), os.getpid()
    try:
        vectors = run(folder)
    except BaseException:
        _remove(folder, process)
        raise
    weakref.finalize(vectors, _remove, folder, process)
    return vectors


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # a forked process leaves its parent's
        shutil.rmtree(folder, ignore_errors=True)
