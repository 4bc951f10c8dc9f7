"""A kernel that checks on an NVIDIA GPU whether numbers are finite."""

from typing import Any

import numpy as np
from numba import cuda

from daskw2v.kernels.cuda.warp import LANES, at, kernel, sum_of_lanes

_WARPS = 4096  # at most: as many as any GPU has room for
_EACH = 1024  # numbers of a warp, at least


def add_squares(values: Any, total: Any) -> None:
    """Add the squares of float32 numbers to `total`, shape (1,) float64, which is NaN or infinity if one of them is.

    Squares are summed in float32, so that numbers that are about to overflow count as not finite.
    """
    if len(values):
        _add_squares[max(1, min(_WARPS, len(values) // _EACH)), LANES](values, total)


@kernel
def _add_squares(values: Any, total: Any) -> None:
    lane, square = cuda.threadIdx.x, np.float32(0.0)
    for i in range(cuda.blockIdx.x * LANES + lane, values.size, cuda.gridDim.x * LANES):
        value = at(values, i)
        square += value * value
    square = sum_of_lanes(square)
    if lane == 0:
        cuda.atomic.add(total, 0, float(square))
