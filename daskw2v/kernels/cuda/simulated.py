"""A warp of Numba's CUDA simulator: functions in place of those of `kernels.cuda.warp`, and lanes that take turns.

The simulator has a thread of the system for each lane, which asks for minutes where a second is enough: nearly all of
it is threads that wake each other. Here lanes are greenlets, of which one runs until it waits for others.
"""

import math
import random
import threading
from collections.abc import Callable, Hashable, Iterator
from functools import cache
from types import FrameType, SimpleNamespace
from typing import Any

import numpy as np
from greenlet import getcurrent, greenlet
from numba import cuda
from numba.cuda.simulator import kernel, kernelapi
from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray, FakeWithinKernelCUDAArray

_LANES = 32
_BLOCK = "block"  # where all lanes meet; those of a warp meet at its number
_ORDERS = 61  # in which the lanes of a block take turns
_Shown = list[list[list[Any]]]  # of each warp, two lists of the values that its lanes exchange


class _Turns:
    """The lanes that may go on, one after the other."""

    ready: Iterator["_Lane"] = iter(())


class _Lane(greenlet):
    """A lane of a warp: the simulator uses it as a thread."""

    def __init__(
        self, run: Callable[[], None], block: Any, thread: Any, number: int, warps: _Shown, turns: _Turns
    ) -> None:
        super().__init__(run)
        self.blockIdx, self.threadIdx, self.thread_id = block, thread, number
        self.warp, self.lane = divmod(number, _LANES)
        self._shown, self._other = warps[self.warp]
        self._turns = turns
        self.waits_at: Hashable = None

    def wait(self, place: Hashable) -> None:
        self.waits_at = place
        next(self._turns.ready, self.parent).switch()  # straight to the next one: half as many switches
        self.waits_at = None

    def syncthreads(self) -> None:
        self.wait(_BLOCK)

    def exchange(self, value: Any) -> list[Any]:
        """Return the values that all lanes of the warp exchange."""
        # Two lists by turns, so one wait is enough: a list is written again only after all lanes have met at the other
        shown, self._shown, self._other = self._shown, self._other, self._shown
        shown[self.lane] = value
        self.wait(self.warp)
        return shown


def _run_block(manager: Any, block: tuple[int, ...], *args: Any) -> None:
    """Run a kernel's block, in place of the simulator's manager.

    Raises
    ------
    RuntimeError
        If lanes wait for others that have ended, or that wait elsewhere.
    """
    places = list(np.ndindex(*manager._block_dim))
    places.sort(key=lambda place: place[::-1])  # x is the fastest
    warps = [[[None] * _LANES for _ in range(2)] for _ in range(-(-len(places) // _LANES))]
    plain, turns = [_unwrapped(arg) for arg in args], _Turns()
    lanes = [
        _Lane(lambda: manager._f(*plain), kernel.Dim3(*block), kernel.Dim3(*place), number, warps, turns)
        for number, place in enumerate(places)
    ]
    orders, rng = _orders(len(lanes)), random.Random(0)  # kernels that work only in one order of lanes shall fail here
    for number in rng.choice(orders):
        lanes[number].switch()  # begun from here: one that begins another is as deep on its stack
    while ready := _released(lanes):
        turns.ready = (lane for lane in map(lanes.__getitem__, rng.choice(orders)) if lane in ready)
        for lane in turns.ready:  # the next one comes here too when one has ended
            lane.switch()
    if any(not lane.dead for lane in lanes):
        raise RuntimeError(f"Lanes of block {block} wait for others that do not come.")


def _released(lanes: list[_Lane]) -> set[_Lane]:
    """Return the lanes that wait at a point where all lanes of their warp, or block, wait."""
    if all(lane.waits_at == _BLOCK for lane in lanes):
        return set(lanes)
    warps = (lanes[start : start + _LANES] for start in range(0, len(lanes), _LANES))
    return {lane for warp in warps if all(lane.waits_at == lane.warp for lane in warp) for lane in warp}


@cache
def _orders(n: int) -> list[list[int]]:
    """Return random orders of n lanes, made once: a shuffle takes as long as the lanes themselves."""
    rng = random.Random(0)
    return [rng.sample(range(n), n) for _ in range(_ORDERS)]


def _unwrapped(value: Any) -> Any:
    """Return NumPy's own arrays in place of the simulator's, whose every access takes three calls."""
    if isinstance(value, FakeWithinKernelCUDAArray):
        value = value._item
    if isinstance(value, FakeCUDAArray):
        return value._ary
    return type(value)(*map(_unwrapped, value)) if hasattr(value, "_fields") else value


def _callers(frame: FrameType) -> list[tuple[str, int] | None]:
    """Return, last but one, the line that calls a function, as the simulator looks for it, which asks for no source."""
    caller: Any = frame.f_back
    return [(caller.f_code.co_filename, caller.f_lineno), None]


kernel.BlockManager.run = _run_block
kernelapi.threading = SimpleNamespace(current_thread=getcurrent, Lock=threading.Lock)
kernelapi.traceback = SimpleNamespace(extract_stack=_callers)
# While a kernel runs, the simulator replaces `cuda` in its module, and other threads may call functions there
for _name in ("to_device", "device_array", "synchronize", "get_current_device"):
    setattr(kernelapi.FakeCUDAModule, _name, staticmethod(getattr(cuda, _name)))


def shuffle_xor(value: Any, mask: int) -> Any:
    """Return the same value as `warp.shuffle_xor`."""
    lane: Any = getcurrent()
    return lane.exchange(value)[lane.lane ^ mask]


def ballot(met: Any) -> Any:
    """Return the same bits as `warp.ballot`."""
    lane: Any = getcurrent()
    return np.uint32(sum(1 << number for number, each in enumerate(lane.exchange(met)) if each))


def sync_warp() -> None:
    """Wait for all lanes, like `warp.sync_warp`."""
    lane: Any = getcurrent()
    lane.wait(lane.warp)


def inverse_root(x: Any) -> Any:
    """Return 1 / sqrt(x), like `warp.inverse_root`."""
    return np.float32(1.0 / math.sqrt(x))


class OneAtATime:
    """A kernel of the simulator, which knows one launch at a time, for threads that launch side by side."""

    _launching = threading.Lock()

    def __init__(self, simulated: Any) -> None:
        self._simulated = simulated

    def __getitem__(self, shape: Any) -> Callable[..., None]:
        def launch(*args: Any) -> None:
            with self._launching:
                self._simulated[shape](*args)

        return launch


def bits_of(value: Any) -> Any:
    """Return the bits of a float32, like `warp.bits_of`."""
    return np.int64(np.float32(value).view(np.uint32))


def float_of(bits: Any) -> Any:
    """Return the float32 of bits, like `warp.float_of`."""
    return np.uint32(bits).view(np.float32)


def load4(array: Any, start: int) -> tuple[Any, ...]:
    """Return array[start:start + 4]."""
    return array[start], array[start + 1], array[start + 2], array[start + 3]


def store4(array: Any, start: int, *values: Any) -> None:
    """Write four floats to array[start:start + 4]."""
    for k, value in enumerate(values):
        array[start + k] = value


def add4(array: Any, start: int, *values: Any) -> None:
    """Add four floats to array[start:start + 4]. No two threads add to the same floats at a time."""
    for k, value in enumerate(values):
        array[start + k] += value
