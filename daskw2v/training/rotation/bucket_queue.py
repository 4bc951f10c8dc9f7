"""The order in which threads train buckets: each as soon as its two partitions are free.

If threads waited for the end of each round, all would wait for its slowest bucket. A partition's buckets follow each
other in the order of the rounds, so the result is the same.

Each thread takes the next bucket itself and waits for its two partitions alone. A thread that dealt buckets out would
need Python's lock for each, as all others do, and sixteen threads would wait for it more than they train.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from itertools import count
from threading import Lock
from typing import Protocol, TypeVar

_R = TypeVar("_R")


class Work(Protocol):
    """What is trained: an input and an output partition, by their numbers."""

    @property
    def input(self) -> int: ...  # noqa: D102

    @property
    def output(self) -> int: ...  # noqa: D102


_W = TypeVar("_W", bound=Work)


def train_in_order(pool: Executor, threads: int, train: Callable[[_W], _R], works: Sequence[_W]) -> list[_R]:
    """Train buckets by some threads of a pool; return what `train` returned of each.

    A bucket begins when those before it are done that have a partition in common with it. If one fails, those that have
    not begun are left out, and its error is raised.
    """
    before, after = _locks(works)
    results: dict[int, _R] = {}
    numbers, failed = count(), list[BaseException]()

    def train_next() -> None:
        for number in numbers:  # a bucket that is waited for was taken earlier, by a thread that trains
            if number >= len(works):
                return
            for lock in before[number]:
                lock.acquire()
            try:
                if not failed:
                    results[number] = train(works[number])
            except BaseException as error:
                failed.append(error)
            finally:
                for lock in after[number]:
                    lock.release()

    futures = [pool.submit(train_next) for _ in range(min(threads, len(works)))]
    try:
        for future in futures:
            future.result()
    except BaseException as error:  # of this thread, which is told to stop
        failed.append(error)
    if failed:
        raise failed[0]
    return [results[number] for number in range(len(works))]


def _locks(works: Sequence[Work]) -> tuple[list[list[Lock]], list[list[Lock]]]:
    """Return, for each bucket, the locks that those before it release, and those that it releases."""
    before: list[list[Lock]] = [[] for _ in works]
    after: list[list[Lock]] = [[] for _ in works]
    last = dict[tuple[str, int], int]()
    for number, work in enumerate(works):
        for partition in (("input", work.input), ("output", work.output)):
            if partition in last:
                lock = Lock()
                lock.acquire()
                before[number].append(lock)
                after[last[partition]].append(lock)
            last[partition] = number
    return before, after
