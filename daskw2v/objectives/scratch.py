"""What a kernel works in. It is made outside, so that kernels allocate nothing and may name it by address."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.jit import inline
from daskw2v.objectives.base import FloatArray, Memory
from daskw2v.objectives.steps import SIGNS, address
from daskw2v.simd import SLOTS, aligned_zeros


class Scratch(NamedTuple):
    """The arrays that a kernel works in.

    Parameters
    ----------
    contexts
        Addresses of a window's context rows, shape (2 * window + 1,) int64.
    values
        Dot products, then gradients, MAX_TARGETS for each context, float32.
    rows
        Addresses of target rows, int64.
    signs
        What the pairs of each group of targets are, SIGNS floats for each, float32.
    states
        What the draws of windows start from, uint64.
    mantissa, exponent
        The loss as a product, shapes (SLOTS,) float32 and int32.
    hidden
        Hidden vector of a window after and before its move, shape (2 * width,) float32.
    only
        The address of `hidden`: a list of contexts of its own, shape (1,) int64.
    sources, outputs
        The hot rows of both tables when they were last fetched, shape (hot rows * width,) float32.
    """

    contexts: npt.NDArray[np.int64]
    values: FloatArray
    rows: npt.NDArray[np.int64]
    signs: FloatArray
    states: npt.NDArray[np.uint64]
    mantissa: FloatArray
    exponent: npt.NDArray[np.int32]
    hidden: FloatArray
    only: npt.NDArray[np.int64]
    sources: FloatArray
    outputs: FloatArray


def make_scratch(memory: Memory, window: int, n_windows: int, groups: int, size: int) -> Scratch:
    """Return the scratch of a kernel that holds the targets of `n_windows`, in groups of `size`.

    Each array has cache lines of its own: threads that write side by side would wait for each other.
    """
    mantissa = aligned_zeros(SLOTS)
    mantissa[:] = 1.0
    hidden = aligned_zeros(2 * memory.width)
    return Scratch(
        contexts=aligned_zeros(2 * window + 1, np.int64),
        values=aligned_zeros(SLOTS * (window + 1)),
        rows=aligned_zeros(n_windows * groups * size, np.int64),
        signs=aligned_zeros(n_windows * groups * SIGNS),
        states=aligned_zeros(n_windows, np.uint64),
        mantissa=mantissa,
        exponent=aligned_zeros(SLOTS, np.int32),
        hidden=hidden,
        only=np.array([hidden.ctypes.data], np.int64),
        sources=aligned_zeros(memory.hot.rows * memory.width),
        outputs=aligned_zeros(memory.hot.rows * memory.width),
    )


class Place(NamedTuple):
    """Addresses of what a window's step works in."""

    contexts: int
    values: int
    mantissa: int
    exponent: int


@inline
def place_of(scratch: Any) -> Any:
    """Return the addresses of what a window's step works in."""
    return Place(
        address(scratch.contexts), address(scratch.values), address(scratch.mantissa), address(scratch.exponent)
    )


@inline
def loss_of(scratch: Any) -> Any:
    """Return the loss that is kept as a product."""
    loss = 0.0
    for lane in range(SLOTS):
        loss += scratch.exponent[lane] * np.log(2.0) + np.log(np.float64(scratch.mantissa[lane]))
    return loss
