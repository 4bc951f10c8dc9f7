"""Calls that mostly wait for a store, many at a time."""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TypeVar

THREADS = 16
_RUNS = 8  # runs of a thread; it makes the calls of a run one after the other
A = TypeVar("A")
T = TypeVar("T")


def in_threads(function: Callable[[A], T], items: Sequence[A]) -> list[T]:
    """Return function(item) for each item, called in up to `THREADS` threads, in the order of the items.

    The first exception is raised. Threads get the items in runs: one at a time would cost more than a call that is
    answered at once.
    """
    step = max(1, math.ceil(len(items) / (THREADS * _RUNS)))
    runs = [items[start : start + step] for start in range(0, len(items), step)]
    with ThreadPoolExecutor(THREADS) as pool:
        return list(chain.from_iterable(pool.map(lambda run: [function(item) for item in run], runs)))
