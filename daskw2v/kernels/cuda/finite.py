"""A kernel that checks on an NVIDIA GPU whether numbers are finite."""

from typing import Any

import numpy as np
from numba import cuda

from daskw2v.kernels.cuda.warp import LANES, at, kernel, sum_of_lanes

_MAX_WARPS = 4096  # as many as any GPU can run at a time
_MIN_NUMBERS = 1024  # of a warp


def add_squares(values: Any, total: Any) -> None:
    """Add the squares of n float32 numbers, shape (n,), to `total`, shape (1,) float64; both are on the GPU.

    If one of the numbers is NaN or infinite, so is the total. Squares are added in float32, so that numbers that are
    about to overflow count as not finite.
    """
    if len(values):
        _add_squares[max(1, min(_MAX_WARPS, len(values) // _MIN_NUMBERS)), LANES](values, total)


@kernel
def _add_squares(values: Any, total: Any) -> None:
    """Add the squares of all values to `total`; any number of warps share the values."""
    lane, square = cuda.threadIdx.x, np.float32(0.0)
    for i in range(cuda.blockIdx.x * LANES + lane, values.size, cuda.gridDim.x * LANES):
        value = at(values, i)
        square += value * value
    square = sum_of_lanes(square)
    if lane == 0:
        cuda.atomic.add(total, 0, float(square))
