"""The order in which threads train buckets: each as soon as its two partitions are free.

If threads waited for the end of each round, all would wait for its slowest bucket. A partition's buckets follow each
other in the order of the rounds, so the result is the same.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from typing import Protocol, TypeVar

_R = TypeVar("_R")


class Work(Protocol):
    """What is trained: an input and an output partition, by their numbers."""

    @property
    def input(self) -> int: ...  # noqa: D102

    @property
    def output(self) -> int: ...  # noqa: D102


_W = TypeVar("_W", bound=Work)


def train_in_order(pool: Executor, train: Callable[[_W], _R], works: Sequence[_W]) -> list[_R]:
    """Train buckets by the threads of a pool; return what `train` returned of each.

    A bucket begins when those before it are done that have a partition in common with it. If one fails, those that have
    not begun are left out, and its error is raised.
    """
    followers, waiting = _dependencies(works)
    done: SimpleQueue[tuple[int, Future[_R]]] = SimpleQueue()
    futures: dict[int, Future[_R]] = {}

    def submit(number: int) -> None:
        futures[number] = pool.submit(train, works[number])
        futures[number].add_done_callback(lambda future: done.put((number, future)))

    for number, n in enumerate(waiting):
        if not n:
            submit(number)
    try:
        for _ in works:
            number, future = done.get()
            future.result()  # raises its error
            for follower in followers[number]:
                waiting[follower] -= 1
                if not waiting[follower]:
                    submit(follower)
    finally:
        for future in futures.values():
            future.cancel()
    return [futures[number].result() for number in range(len(works))]


def _dependencies(works: Sequence[Work]) -> tuple[list[list[int]], list[int]]:
    """Return, of each bucket, which ones wait for it, and for how many it waits."""
    followers: list[list[int]] = [[] for _ in works]
    waiting, last = [0] * len(works), dict[tuple[str, int], int]()
    for number, work in enumerate(works):
        for partition in (("input", work.input), ("output", work.output)):
            if partition in last:
                followers[last[partition]].append(number)
                waiting[number] += 1
            last[partition] = number
    return followers, waiting
