"""Compile kernels before they are needed: when an image is built, before a cluster starts, before tests."""

import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from daskw2v.cluster.connecting import connect
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.sources import find_sources
from daskw2v.errors import MissingExtraError, ParameterError, StoreError
from daskw2v.kernels.cache import cache_folder, is_kept
from daskw2v.kernels.cores import usable_cores
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.progress import silent
from daskw2v.store.storage import Store
from daskw2v.training.compile_ahead import mark_file
from daskw2v.training.pipeline import train
from daskw2v.training.preparation.request import read_text
from daskw2v.training.strategies import STRATEGIES, check_strategy

_TEXT = "".join(" ".join(f"w{(i * k) % 23}" for k in range(1, 12)) + "\n" for i in range(200))
_SMALL = Params(vector_size=16, min_count=1, epochs=1)
_RESOURCES = Resources(threads=1)


class WarmUp(NamedTuple):
    """The result of a warm-up.

    Parameters
    ----------
    folder
        Folder of compiled kernels.
    trained, skipped
        Objective and strategy of each training, and of each training that was skipped as it needs a missing package;
        both empty where an earlier warm-up compiled all kernels.
    seconds
        Duration in seconds.
    """

    folder: Path
    trained: list[tuple[str, str]]
    skipped: list[tuple[str, str]]
    seconds: float


def list_trainings() -> Iterator[Params]:
    """Yield the Params of a small training for each objective and strategy that can train it, and for n-grams."""
    for strategy in reversed(STRATEGIES):
        for objective in OBJECTIVES:
            params = _SMALL.replace(objective=objective, strategy=strategy)
            try:
                check_strategy(params, _RESOURCES)
            except ParameterError:
                continue
            yield params
    yield _SMALL.replace(maxn=4, strategy="averaging")  # all objectives share the kernel that composes rows


def warm_up(processes: int | None = None) -> WarmUp:
    """Compile the kernels of all objectives and strategies for this processor, unless a warm-up did so before.

    A little text is trained by each objective with each strategy that can. Compiled kernels are kept below
    NUMBA_CACHE_DIR, or else below XDG_CACHE_HOME or ~/.cache, in a folder that is named by the kernels' code, Numba's
    version and the processor. Processes are started by `multiprocessing`: a script has to call this below
    `if __name__ == "__main__":`.

    Parameters
    ----------
    processes
        Maximum number of processes that compile side by side; by default one for each core.

    Returns
    -------
    warm_up
        The trainings, and their duration.

    Raises
    ------
    ParameterError
        If `processes` is less than 1.
    StoreError
        If the folder of compiled kernels cannot be written.

    Examples
    --------
    >>> done = daskw2v.warm_up()
    >>> done.folder.is_dir()
    True
    """
    if processes is not None and processes < 1:
        raise ParameterError(f"processes={processes} is not an integer of at least 1.", "Give at least 1, or leave it.")
    began, folder = time.perf_counter(), Path(cache_folder())
    if not is_kept():
        raise StoreError(
            "Compiled kernels cannot be kept: their folder cannot be written.",
            "Set NUMBA_CACHE_DIR to a folder that this user may write.",
        )
    trained, skipped = list[tuple[str, str]](), list[tuple[str, str]]()
    if not _is_warm(folder):
        with TemporaryDirectory() as work:
            for params, is_trained in _train_all(Path(work), processes or usable_cores()):
                (trained if is_trained else skipped).append((params.objective.name, params.strategy.name))
        files = sorted(str(path.relative_to(folder)) for path in folder.glob("*/*.nb?"))
        _list_file(folder).write_text("\n".join(files), encoding="utf-8")
    return WarmUp(folder, trained, skipped, time.perf_counter() - began)


def _list_file(folder: Path) -> Path:
    """Return the path of the file that lists the kernels of a warm-up by this version of Python."""
    return folder / f"warm-up-{sys.implementation.cache_tag}.txt"


def _is_warm(folder: Path) -> bool:
    """Return whether a warm-up has ended in this folder, and all files that it listed exist."""
    try:
        files = _list_file(folder).read_text(encoding="utf-8").split("\n")
    except OSError:
        return False
    return all((folder / name).exists() for name in files)


def _train_all(work: Path, processes: int) -> Iterator[tuple[Params, bool]]:
    """Yield the Params of each training, and True if it was trained, False if it needs a missing package."""
    (work / "text.txt").write_text(_TEXT, encoding="utf-8")
    with connect(_RESOURCES) as client:  # all trainings have the text in common
        sources = find_sources(work / "text.txt")
        read_text(sources, Store(str(work)), _SMALL, _RESOURCES, lambda: client, silent)
    all_params = [*list_trainings()]
    with ProcessPoolExecutor(min(processes, len(all_params)), get_context("spawn")) as pool:
        yield from zip(all_params, pool.map(_train, [work] * len(all_params), all_params), strict=True)


def _train(work: Path, params: Params) -> bool:
    """Train the text in a folder; return False if a package is missing."""
    try:
        train(work / "text.txt", work=work, params=params, resources=_RESOURCES, listener=None)
    except MissingExtraError:
        return False
    mark_file(params).touch()
    return True
