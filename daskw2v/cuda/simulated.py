"""A warp of Numba's CUDA simulator, whose threads are Python's: what `daskw2v.cuda.warp` cannot compile there."""

import itertools
import math
import threading
from typing import Any

import numpy as np

_LANES = 32
_PATIENCE = 120  # seconds: a lane that failed never comes
_lock = threading.Lock()


class _Warp:
    """Thirty-two threads that wait for each other, and what each shows the others: by turns in one of two places."""

    def __init__(self) -> None:
        self._shown: list[list[Any]] = [[None] * _LANES, [None] * _LANES]
        self._turns = [0] * _LANES
        self._arrivals = itertools.count(1)
        self._gates = [threading.Lock() for _ in range(_LANES)]
        for gate in self._gates:
            gate.acquire()

    def exchange(self, lane: int, value: Any) -> list[Any]:
        """Return what all lanes show."""
        # One wait will do: a place is written again only after all lanes have met at the other one
        shown = self._shown[self._turns[lane] % 2]
        self._turns[lane] += 1
        shown[lane] = value
        if next(self._arrivals) % _LANES == 0:  # the last one
            for gate in self._gates:
                gate.release()
        if not self._gates[lane].acquire(timeout=_PATIENCE):
            raise RuntimeError("A lane of the warp did not come.")
        return shown


def _warp() -> tuple[_Warp, int]:
    thread: Any = threading.current_thread()
    number, lane = divmod(thread.thread_id, _LANES)
    try:
        return thread.warp, lane
    except AttributeError:
        with _lock:
            warps = thread._manager.__dict__.setdefault("warps", {})  # of this thread's block
            thread.warp = warps.setdefault(number, _Warp())
        return thread.warp, lane


def shuffle_xor(value: Any, mask: int) -> Any:
    """As `warp.shuffle_xor`."""
    warp, lane = _warp()
    return warp.exchange(lane, value)[lane ^ mask]


def sync_warp() -> None:
    """As `warp.sync_warp`."""
    warp, lane = _warp()
    warp.exchange(lane, None)


def inverse_root(x: Any) -> Any:
    """As `warp.inverse_root`."""
    return np.float32(1.0 / math.sqrt(x))


def load4(array: Any, start: int) -> tuple[Any, ...]:
    """Return array[start:start + 4]."""
    return array[start], array[start + 1], array[start + 2], array[start + 3]


def store4(array: Any, start: int, *values: Any) -> None:
    """Write four floats to array[start:start + 4]."""
    for k, value in enumerate(values):
        array[start + k] = value


def add4(array: Any, start: int, *values: Any) -> None:
    """Add four floats to array[start:start + 4]. No two threads ever stand at the same place of a warp's row."""
    for k, value in enumerate(values):
        array[start + k] += value
