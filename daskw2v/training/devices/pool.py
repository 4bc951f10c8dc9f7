"""The devices of a process, shared out among its trainers: one process owns all of its host."""

from collections import defaultdict
from threading import Lock
from weakref import WeakSet


class DevicePool:
    """Which device each trainer of this process has, by number. Nobody waits: trainers that are too many share one."""

    def __init__(self) -> None:
        self._holders: defaultdict[int, WeakSet[object]] = defaultdict(WeakSet)
        self._lock = Lock()

    def take(self, holder: object, n: int) -> int:
        """Return which of n devices fewest hold, the first of them; it is held for as long as `holder` lives."""
        with self._lock:
            number = min(range(n), key=lambda device: len(self._holders[device]))
            self._holders[number].add(holder)
        return number
