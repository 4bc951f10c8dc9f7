"""Adam's step (Kingma and Ba 2015) of rows whose targets are fixed."""

from typing import Any

import numpy as np
from numba import types

from daskw2v.kernels import simd
from daskw2v.kernels.jit import emitting, inline
from daskw2v.kernels.simd import LANES
from daskw2v.objectives.cpu.steps import float_pointer, load, over_columns, store

BETA1, BETA2 = np.float32(0.9), np.float32(0.999)  # as Kingma and Ba and Chainer have them
EPSILON = 1e-8


@inline
def step_size(alpha: Any, number: Any) -> Any:
    """Return the learning rate of column `number`, from 0 over all epochs, with Adam's correction of both moments."""
    t = number + 1  # an integer exponent: a product, not a logarithm
    return alpha * np.sqrt(1.0 - np.float64(BETA2) ** t) / (1.0 - np.float64(BETA1) ** t)


@emitting(types.void, *[types.int64] * 4, *[types.float32] * 3)
def adam(builder: Any, rows: Any, gradient: Any, apart: Any, n: Any, alpha: Any, beta1: Any, beta2: Any) -> None:
    """Take Adam's step (Kingma and Ba 2015, end of section 2) for the n floats at `rows`, uphill along `gradient`.

    The first moments are `apart` bytes behind the floats, the second moments as far behind the first. `alpha` includes
    the correction of both. Epsilon squared is below the root, where the paper adds epsilon to the root.
    """
    moments = builder.add(rows, apart)
    pointers = [float_pointer(builder, start) for start in (rows, moments, builder.add(moments, apart))]
    step, b1, b2 = (simd.splat(builder, value, LANES) for value in (alpha, beta1, beta2))
    one = simd.constant(1.0, LANES)
    a1, a2 = (builder.fsub(one, b) for b in (b1, b2))
    with over_columns(builder, n) as k:
        g = load(builder, float_pointer(builder, gradient), k)
        row, first, second = (load(builder, pointer, k) for pointer in pointers)
        first = simd.fma(builder, a1, g, builder.fmul(b1, first))
        second = simd.fma(builder, builder.fmul(a2, g), g, builder.fmul(b2, second))
        inverse = simd.inverse_root(builder, builder.fadd(second, simd.constant(EPSILON**2, LANES)))
        row = simd.fma(builder, builder.fmul(step, first), inverse, row)
        for pointer, value in zip(pointers, (row, first, second), strict=True):
            store(builder, pointer, k, value)
