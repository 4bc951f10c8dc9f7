"""A warp of Numba's CUDA simulator: what `daskw2v.kernels.cuda.warp` cannot compile there, and lanes that take turns.

The simulator has a thread of the system for each lane, which asks for minutes where a second is enough: nearly all of
it is threads that wake each other. Here lanes are greenlets, of which one runs until it waits for others.
"""

import math
import random
import threading
from collections.abc import Callable, Hashable
from types import SimpleNamespace
from typing import Any

import numpy as np
from greenlet import getcurrent, greenlet
from numba.cuda.simulator import kernel, kernelapi

_LANES = 32
_BLOCK = "block"  # where all lanes meet; those of a warp meet at its number
_Shown = list[list[list[Any]]]  # of each warp, in two places, what each lane shows


class _Lane(greenlet):
    """What the simulator takes for a thread."""

    def __init__(self, run: Callable[[], None], block: Any, thread: Any, number: int, warps: _Shown) -> None:
        super().__init__(run)
        self.blockIdx, self.threadIdx, self.thread_id = block, thread, number
        self.warp, self.lane = divmod(number, _LANES)
        self._shown, self._turn = warps[self.warp], 0
        self.waits_at: Hashable = None

    def wait(self, place: Hashable) -> None:
        self.waits_at = place
        self.parent.switch()

    def syncthreads(self) -> None:
        self.wait(_BLOCK)

    def exchange(self, value: Any) -> list[Any]:
        """Return what all lanes of the warp show."""
        # Two places by turns, so one wait will do: a place is written again only after all have met at the other one
        self._turn += 1
        shown = self._shown[self._turn % 2]
        shown[self.lane] = value
        self.wait(self.warp)
        return shown


def _run_block(manager: Any, block: tuple[int, ...], *args: Any) -> None:
    """Run a kernel's block, as the simulator's manager does.

    Raises
    ------
    RuntimeError
        If lanes wait for others that have ended, or that wait elsewhere.
    """
    places = list(np.ndindex(*manager._block_dim))
    places.sort(key=lambda place: place[::-1])  # x is the fastest
    warps = [[[None] * _LANES for _ in range(2)] for _ in range(-(-len(places) // _LANES))]
    lanes = [
        _Lane(lambda: manager._f(*args), kernel.Dim3(*block), kernel.Dim3(*place), number, warps)
        for number, place in enumerate(places)
    ]
    turns = random.Random(0)
    ready = list(lanes)
    while ready:
        turns.shuffle(ready)  # what only works in order shall not work here
        for lane in ready:
            lane.waits_at = None
            lane.switch()
        ready = _released(lanes)
    if any(not lane.dead for lane in lanes):
        raise RuntimeError(f"Lanes of block {block} wait for others that do not come.")


def _released(lanes: list[_Lane]) -> list[_Lane]:
    """Return the lanes that wait where all others of their warp, or block, do."""
    if all(lane.waits_at == _BLOCK for lane in lanes):
        return list(lanes)
    warps = (lanes[start : start + _LANES] for start in range(0, len(lanes), _LANES))
    return [lane for warp in warps if all(lane.waits_at == lane.warp for lane in warp) for lane in warp]


kernel.BlockManager.run = _run_block
kernelapi.threading = SimpleNamespace(current_thread=getcurrent, Lock=threading.Lock)


def shuffle_xor(value: Any, mask: int) -> Any:
    """As `warp.shuffle_xor`."""
    lane: Any = getcurrent()
    return lane.exchange(value)[lane.lane ^ mask]


def sync_warp() -> None:
    """As `warp.sync_warp`."""
    lane: Any = getcurrent()
    lane.wait(lane.warp)


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
