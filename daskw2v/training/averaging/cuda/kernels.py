"""Kernels that make deltas and merge them, a warp a row.

They are those of `averaging.deltas` and `averaging.merge`: differences have their bits; merged rows differ from theirs
where a compiler makes one instruction of a product and a sum.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import cuda

from daskw2v.kernels.cuda.warp import LANES, at, bits_of, device, float_of, kernel, sum_of_lanes

_WARPS = 4  # of a block
_BLOCKS = 1 << 12  # of a launch, at most: as many warps as the largest GPUs have room for
_HALF = 16  # bits of bfloat16
_SIGNLESS = 0x7FFF
NONE = np.float32(0.0)


class Formula(NamedTuple):
    """A merge rule for one number of a row.

    Parameters
    ----------
    finish
        Device function (base, velocity, total, changed, weights) -> (merged, velocity): of the common model before, of
        the sum of all deltas, the number of replicas that changed the row, and `MergeWeights`.
    has_velocity
        As in `MergeRule`; without, what `finish` is given and returns of it is nothing.
    counts
        Whether it needs `changed`; else that is 0.
    """

    finish: Callable[..., Any]
    has_velocity: bool = False
    counts: bool = False


class MergeWeights(NamedTuple):
    """What formulas weigh by: the number of replicas n, and 1 / n and 1 - 1 / n, all float32."""

    n: Any
    share: Any
    rest: Any


def grid_of(rows: int) -> tuple[int, tuple[int, int]]:
    """Return the blocks of a launch and their threads: a warp a row, where there are not too many."""
    return max(1, min(-(-rows // _WARPS), _BLOCKS)), (LANES, _WARPS)


@device
def _mean(base: Any, velocity: Any, total: Any, changed: Any, weights: Any) -> Any:
    return base + total / weights.n, velocity


@device
def _touched(base: Any, velocity: Any, total: Any, changed: Any, weights: Any) -> Any:
    return base + total / max(changed, np.float32(1)), velocity


@device
def _momentum(base: Any, velocity: Any, total: Any, changed: Any, weights: Any) -> Any:
    mean = weights.share * total
    speed = mean + weights.rest * velocity
    return base + mean + weights.rest * speed, speed


MEAN, TOUCHED, MOMENTUM = Formula(_mean), Formula(_touched, counts=True), Formula(_momentum, has_velocity=True)


@device
def _bfloat16(value: Any) -> Any:
    """Return the bits of the nearest bfloat16; of two, of the even one."""
    bits = bits_of(value)
    return ((bits + _SIGNLESS + ((bits >> _HALF) & 1)) >> _HALF) & 0xFFFF


@kernel
def subtract(base: Any, own: Any, rows: Any, width: Any, columns: Any, bits: Any, squares: Any) -> None:
    """Write what a replica changed in bfloat16, and add the squares of its rows to a sum.

    Parameters
    ----------
    base, own
        The common rows and the replica's, shapes (rows * width,) float32; columns from `columns` on are padding.
    bits
        Of the differences, shape (rows * columns,) uint16.
    squares
        Shape (1,) float32.
    """
    lane, warp = cuda.threadIdx.x, cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    total = NONE
    for row in range(warp, rows, cuda.gridDim.x * cuda.blockDim.y):
        for column in range(lane, columns, LANES):
            value = at(own, row * width + column)
            total += value * value
            bits[row * columns + column] = _bfloat16(value - at(base, row * width + column))
    total = sum_of_lanes(total)
    if lane == 0:
        cuda.atomic.add(squares, 0, total)


@lru_cache
def merging(formula: Formula) -> Any:
    """Return the kernel that merges rows by a formula.

    Its arguments are the deltas of all replicas one after the other, shape (n * rows * columns,) uint16; n, rows,
    width and columns; `MergeWeights`; and what it writes: the common rows, the replica's own, and the velocity, shapes
    (rows * width,) float32. Without a velocity, that has any shape.
    """
    finish, has_velocity, counts = formula

    @device
    def replicas_that_changed(deltas: Any, n: Any, rows: Any, columns: Any, row: Any, lane: Any) -> Any:
        changed = NONE
        for replica in range(n):
            any_bit = 0
            for column in range(lane, columns, LANES):
                any_bit |= at(deltas, (replica * rows + row) * columns + column) & _SIGNLESS
            changed += np.float32(sum_of_lanes(np.float32(any_bit)) > NONE)
        return changed

    @kernel
    def merge(
        deltas: Any, n: Any, rows: Any, width: Any, columns: Any, weights: Any, base: Any, own: Any, velocity: Any
    ) -> None:
        lane, warp = cuda.threadIdx.x, cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
        for row in range(warp, rows, cuda.gridDim.x * cuda.blockDim.y):
            changed = replicas_that_changed(deltas, n, rows, columns, row, lane) if counts else NONE
            for column in range(lane, columns, LANES):
                total = NONE
                for replica in range(n):  # in order, as on a host
                    total += float_of(np.int64(at(deltas, (replica * rows + row) * columns + column)) << _HALF)
                place = np.uint64(row * width + column)
                before = velocity[place] if has_velocity else NONE
                merged, faster = finish(base[place], before, total, changed, weights)
                base[place] = own[place] = merged
                if has_velocity:
                    velocity[place] = faster

    return merge
