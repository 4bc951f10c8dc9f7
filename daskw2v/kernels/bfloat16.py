"""bfloat16: the upper half of a float32, by stochastic rounding.

A value is rounded up or down at random, so that its expectation does not change: rounding to the nearest would lose the
small updates of late training each time. The random number is drawn by the value's index, so every worker rounds a
value in the same way.
"""

from typing import Any

import numpy as np

from daskw2v.kernels.jit import inline, kernel
from daskw2v.kernels.rng import draw, draws
from daskw2v.types import Float32Array, Float64Array, UInt16Array

_DROPPED = 16  # bits
_SHARED = 64 // _DROPPED  # values that share a draw
_FRACTION = 7  # bits of the fraction of a bfloat16


def to_bfloat16(values: Float32Array, key: np.uint64) -> UInt16Array:
    """Return the bits of finite values, rounded to bfloat16 by draws of the stream `key`, uint16, shape of `values`."""
    rounded = np.empty(values.shape, np.uint16)
    _round(np.ascontiguousarray(values).reshape(-1).view(np.uint32), key, rounded.reshape(-1))
    return rounded


def from_bfloat16(values: UInt16Array) -> Float32Array:
    """Return the float32 values of bfloat16 bits, shape of `values`."""
    return np.left_shift(values, _DROPPED, dtype=np.uint32).view(np.float32)


@kernel
def _round(bits: Any, key: Any, rounded: Any) -> None:
    """Write the rounded upper halves of float32 bits, shape (n,) uint32, to `rounded`, shape (n,) uint16."""
    n_groups = len(bits) // _SHARED
    for group in range(n_groups):
        random = draw(key, group)
        for i in range(_SHARED):  # unrolled
            rounded[group * _SHARED + i] = _round_upper(bits[group * _SHARED + i], random, i)
    for i in range(len(bits) - n_groups * _SHARED):
        rounded[n_groups * _SHARED + i] = _round_upper(bits[n_groups * _SHARED + i], draw(key, n_groups), i)


@inline
def _round_upper(bits: Any, random: Any, i: Any) -> Any:
    """Return the upper half of a float32's bits, rounded by 16 bits of a draw, from bit 16 * i on, uint16."""
    chance = np.uint32((random >> np.uint64(i * _DROPPED)) & np.uint64(0xFFFF))
    return np.uint16(np.uint32(bits + chance) >> np.uint32(_DROPPED))


def reference(values: Float32Array, key: np.uint64) -> Float64Array:
    """Return the values that `to_bfloat16` rounds normal numbers and zeros to, computed in float64."""
    indices = np.arange(values.size, dtype=np.uint64).reshape(values.shape)
    random = draws(key, indices // _SHARED) >> (indices % _SHARED * _DROPPED)
    chance = (random % (1 << _DROPPED)).astype(np.float64) / (1 << _DROPPED)
    exact = values.astype(np.float64)
    unit = np.exp2(np.floor(np.log2(np.where(exact == 0, 1, np.abs(exact)))) - _FRACTION)
    return np.asarray(np.copysign(np.floor(np.abs(exact) / unit + chance) * unit, exact))
