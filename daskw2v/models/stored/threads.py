"""Work that threads share: all rows of a table, in parts."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from daskw2v.kernels.cores import usable_cores

THREAD_ROWS = 1 << 12  # least rows that are worth a thread
T = TypeVar("T")


def share(work: Callable[[slice], T], n: int, threads: int = 0) -> list[T]:
    """Divide the range 0..n - 1 among threads, one for each core by default; return the results in order."""
    threads = max(1, min(threads or usable_cores(), n // THREAD_ROWS))
    with ThreadPoolExecutor(threads) as pool:
        return [*pool.map(work, cut(n, max(1, -(-n // threads))))]


def cut(length: int, step: int) -> Iterator[slice]:
    """Cut 0..length - 1 into slices of `step`."""
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))
