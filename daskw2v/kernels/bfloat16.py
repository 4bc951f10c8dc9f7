"""bfloat16: the upper half of a float32, by stochastic rounding.

A value is rounded up or down by chance, so that its mean stays: rounded to the nearest, the small updates of late
training would be lost each time. The chance is a draw by the value's index, so a value is rounded the same way by any
worker.
"""

from typing import Any

import numpy as np

from daskw2v.kernels.jit import inline, kernel
from daskw2v.kernels.rng import draw, draws
from daskw2v.types import Float32Array, Float64Array, UInt16Array

_DROPPED = 16  # bits
_EACH = 64 // _DROPPED  # values that share a draw
_KEPT = 7  # bits of the fraction


def to_bfloat16(values: Float32Array, key: np.uint64) -> UInt16Array:
    """Return finite values rounded to bfloat16 by the draws of a stream: their bits, in the shape of the values."""
    rounded = np.empty(values.shape, np.uint16)
    _round(np.ascontiguousarray(values).reshape(-1).view(np.uint32), key, rounded.reshape(-1))
    return rounded


def from_bfloat16(values: UInt16Array) -> Float32Array:
    """Return the float32 values of bfloat16 bits."""
    return np.left_shift(values, _DROPPED, dtype=np.uint32).view(np.float32)


@kernel
def _round(bits: Any, key: Any, rounded: Any) -> None:
    whole = len(bits) // _EACH
    for group in range(whole):
        random = draw(key, group)
        for i in range(_EACH):  # unrolled
            rounded[group * _EACH + i] = _upper(bits[group * _EACH + i], random, i)
    for i in range(len(bits) - whole * _EACH):
        rounded[whole * _EACH + i] = _upper(bits[whole * _EACH + i], draw(key, whole), i)


@inline
def _upper(bits: Any, random: Any, i: Any) -> Any:
    """Return the upper half of a value's bits, rounded by the i-th part of a draw."""
    chance = np.uint32((random >> np.uint64(i * _DROPPED)) & np.uint64(0xFFFF))
    return np.uint16(np.uint32(bits + chance) >> np.uint32(_DROPPED))


def reference(values: Float32Array, key: np.uint64) -> Float64Array:
    """Return normal numbers and zeros rounded like `to_bfloat16`, in float64."""
    places = np.arange(values.size, dtype=np.uint64).reshape(values.shape)
    random = draws(key, places // _EACH) >> (places % _EACH * _DROPPED)
    chance = (random % (1 << _DROPPED)).astype(np.float64) / (1 << _DROPPED)
    exact = values.astype(np.float64)
    unit = np.exp2(np.floor(np.log2(np.where(exact == 0, 1, np.abs(exact)))) - _KEPT)
    return np.asarray(np.copysign(np.floor(np.abs(exact) / unit + chance) * unit, exact))
