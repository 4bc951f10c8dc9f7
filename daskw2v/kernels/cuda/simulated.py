"""Warps in Numba's CUDA simulator: replacements of the functions of `kernels.cuda.warp`, and lanes as greenlets.

The simulator has a thread for each lane: tests that need a second take minutes, nearly all of them for switches of
threads. Here lanes are greenlets, of which one runs until it waits for other lanes.
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
_BLOCK = "block"  # barrier of all lanes of a block; the barrier of a warp's lanes is the warp's number
_ORDERS = 61  # orders in which the lanes of a block run
_Exchanged = list[list[list[Any]]]  # for each warp two lists of the values that its lanes exchange


class _Turns:
    """The lanes of a block that may run, in the order in which they run."""

    ready: Iterator["_Lane"] = iter(())


class _Lane(greenlet):
    """A lane of a warp, which the simulator uses as a thread."""

    def __init__(
        self, run: Callable[[], None], block: Any, thread: Any, number: int, warps: _Exchanged, turns: _Turns
    ) -> None:
        super().__init__(run)
        self.blockIdx, self.threadIdx, self.thread_id = block, thread, number
        self.warp, self.lane = divmod(number, _LANES)
        self._shown, self._other = warps[self.warp]
        self._turns = turns
        self.waits_at: Hashable = None

    def wait(self, barrier: Hashable) -> None:
        """Wait at a barrier; meanwhile other lanes run."""
        self.waits_at = barrier
        next(self._turns.ready, self.parent).switch()  # directly to the next lane: half as many switches
        self.waits_at = None

    def syncthreads(self) -> None:
        """Wait for all lanes of the block."""
        self.wait(_BLOCK)

    def exchange(self, value: Any) -> list[Any]:
        """Give a value to all lanes of the warp; return the values of all lanes, in the order of the lanes."""
        # Two lists in alternation, so one wait is enough: a list is reused after all lanes have waited with the other
        values, self._shown, self._other = self._shown, self._other, self._shown
        values[self.lane] = value
        self.wait(self.warp)
        return values


def _run_block(manager: Any, block: tuple[int, ...], *args: Any) -> None:
    """Run a block of a kernel; replaces a method of the simulator's `BlockManager`.

    Raises
    ------
    RuntimeError
        If lanes wait for lanes that have ended, or that wait at another barrier.
    """
    threads = list(np.ndindex(*manager._block_dim))
    threads.sort(key=lambda thread: thread[::-1])  # x is the fastest
    warps = [[[None] * _LANES for _ in range(2)] for _ in range(-(-len(threads) // _LANES))]
    plain, turns = [_unwrap(arg) for arg in args], _Turns()
    lanes = [
        _Lane(lambda: manager._f(*plain), kernel.Dim3(*block), kernel.Dim3(*thread), number, warps, turns)
        for number, thread in enumerate(threads)
    ]
    orders, rng = _draw_orders(len(lanes)), random.Random(0)  # kernels that depend on the order of lanes shall fail
    for number in rng.choice(orders):
        lanes[number].switch()  # started from this greenlet: a lane that starts another lane would deepen the stack
    while ready := _find_released(lanes):
        turns.ready = (lane for lane in map(lanes.__getitem__, rng.choice(orders)) if lane in ready)
        for lane in turns.ready:  # a lane that has ended switches to this greenlet, too
            lane.switch()
    if any(not lane.dead for lane in lanes):
        raise RuntimeError(f"Lanes of block {block} wait for others that do not come.")


def _find_released(lanes: list[_Lane]) -> set[_Lane]:
    """Return the lanes whose warp, or block, waits as a whole at one barrier."""
    if all(lane.waits_at == _BLOCK for lane in lanes):
        return set(lanes)
    warps = (lanes[start : start + _LANES] for start in range(0, len(lanes), _LANES))
    return {lane for warp in warps if all(lane.waits_at == lane.warp for lane in warp) for lane in warp}


@cache
def _draw_orders(n: int) -> list[list[int]]:
    """Return random orders of n lanes, cached: a shuffle takes as long as running the lanes."""
    rng = random.Random(0)
    return [rng.sample(range(n), n) for _ in range(_ORDERS)]


def _unwrap(value: Any) -> Any:
    """Return the NumPy array in an array of the simulator, or in each field of a named tuple; other values as they are.

    Each access of a simulator's array would take three calls.
    """
    if isinstance(value, FakeWithinKernelCUDAArray):
        value = value._item
    if isinstance(value, FakeCUDAArray):
        return value._ary
    return type(value)(*map(_unwrap, value)) if hasattr(value, "_fields") else value


def _find_caller(frame: FrameType) -> list[tuple[str, int] | None]:
    """Return a list whose last but one element is the file and line of the caller; replaces `extract_stack`.

    The simulator reads only this element, and `extract_stack` would read sources.
    """
    caller: Any = frame.f_back
    return [(caller.f_code.co_filename, caller.f_lineno), None]


kernel.BlockManager.run = _run_block
kernelapi.threading = SimpleNamespace(current_thread=getcurrent, Lock=threading.Lock)
kernelapi.traceback = SimpleNamespace(extract_stack=_find_caller)
# While a kernel runs, the simulator replaces `cuda` in its module, and other threads may call functions of it
for _name in ("to_device", "device_array", "synchronize", "get_current_device"):
    setattr(kernelapi.FakeCUDAModule, _name, staticmethod(getattr(cuda, _name)))


def shuffle_xor(value: Any, mask: int) -> Any:
    """Return the value of the lane whose number differs in the bits of `mask`, as `warp.shuffle_xor` does."""
    lane: Any = getcurrent()
    return lane.exchange(value)[lane.lane ^ mask]


def ballot(met: Any) -> Any:
    """Return, in bit l, whether lane l meets a condition, uint32, as `warp.ballot` does."""
    lane: Any = getcurrent()
    return np.uint32(sum(1 << number for number, is_met in enumerate(lane.exchange(met)) if is_met))


def sync_warp() -> None:
    """Wait for all lanes of the warp, as `warp.sync_warp` does."""
    lane: Any = getcurrent()
    lane.wait(lane.warp)


def inverse_root(x: Any) -> Any:
    """Return 1 / sqrt(x), float32, as `warp.inverse_root` does."""
    return np.float32(1.0 / math.sqrt(x))


class OneAtATime:
    """A kernel of the simulator whose launches by several threads run one after the other."""

    _launching = threading.Lock()

    def __init__(self, simulated: Any) -> None:
        self._simulated = simulated

    def __getitem__(self, shape: Any) -> Callable[..., None]:
        def launch(*args: Any) -> None:
            with self._launching:
                self._simulated[shape](*args)

        return launch


def bits_of(value: Any) -> Any:
    """Return the bits of a float32 as an integer >= 0, as `warp.bits_of` does."""
    return np.int64(np.float32(value).view(np.uint32))


def float_of(bits: Any) -> Any:
    """Return the float32 with these bits, an integer >= 0, as `warp.float_of` does."""
    return np.uint32(bits).view(np.float32)


def load4(array: Any, start: int) -> tuple[Any, ...]:
    """Return the four floats array[start : start + 4] as a tuple."""
    return array[start], array[start + 1], array[start + 2], array[start + 3]


def store4(array: Any, start: int, *values: Any) -> None:
    """Write four floats to array[start : start + 4]."""
    for k, value in enumerate(values):
        array[start + k] = value


def add4(array: Any, start: int, *values: Any) -> None:
    """Add four floats to array[start : start + 4]; lanes of the simulator do not run at the same time."""
    for k, value in enumerate(values):
        array[start + k] += value
