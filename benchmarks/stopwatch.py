"""Seconds and processor seconds of what is done; processes that import little use it, too."""

import resource
import time
from collections.abc import Callable
from typing import NamedTuple


class Took(NamedTuple):
    """Time, and what processors worked: in this process and in those that it started and that have ended."""

    seconds: float
    processor_seconds: float


def stopwatch() -> Callable[[], Took]:
    """Return what tells the time since now."""

    def used() -> float:
        both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(usage.ru_utime + usage.ru_stime for usage in both)

    began, before = time.perf_counter(), used()
    return lambda: Took(time.perf_counter() - began, used() - before)
