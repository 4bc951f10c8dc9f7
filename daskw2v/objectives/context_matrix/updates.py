"""Updates of rows whose targets are fixed: a step along the gradient, and Adam's step (Kingma and Ba 2015)."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from daskw2v.kernels import simd
from daskw2v.kernels.jit import inline
from daskw2v.kernels.simd import LANES
from daskw2v.objectives.cpu.hidden import side_by_side, targets_met
from daskw2v.objectives.cpu.steps import MAX_TARGETS, bring, columns, floats, rows_at, splat_of

BETA1, BETA2 = np.float32(0.9), np.float32(0.999)  # as Kingma and Ba and Chainer have them
EPSILON = 1e-8
_i64 = ir.IntType(64)


@inline
def step_size(alpha: Any, number: Any) -> Any:
    """Return the learning rate of a column, counted from 0, with the correction of both moments in it."""
    t = number + 1  # a whole number: multiplied out, not by way of the logarithm
    return alpha * np.sqrt(1.0 - np.float64(BETA2) ** t) / (1.0 - np.float64(BETA1) ** t)


@intrinsic
def pull(
    typingctx: Any, start: Any, apart: Any, end: Any, shared: Any, own: Any, ahead: Any, stride: Any, width: Any,
    values: Any, batch: Any, tile: Any,
) -> Any:  # fmt: skip
    """Write the rows at `start`, pulled along the gradient, to the rows at `end`; targets stay.

    As many rows as the tuple `batch` is long stand `width` floats from each other at `end`, `apart` at `start`. Other
    arguments as in `objectives.cpu.hidden`: `values` holds what `gradients` wrote, and the rows of the next step's own
    targets, `ahead` bytes behind in the list, are brought close.
    """
    i = types.int64

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        start, apart, end, shared, own, ahead, stride, width, values = args[:9]
        n = len(batch)
        starts, ends = side_by_side(builder, start, apart, n), side_by_side(builder, end, width, n)
        targets = targets_met(builder, shared, own, stride, n, tile)
        nexts = rows_at(builder, builder.add(own, ahead), stride, n)
        data = floats(builder, values)
        g = {(c, t): splat_of(builder, data, c * MAX_TARGETS + t) for _, t, met in targets for c in met}
        with columns(builder, width) as k:
            updated = [simd.load(builder, builder.gep(p, [k]), LANES) for p in starts]
            for row, t, met in targets:
                value = simd.load(builder, builder.gep(row, [k]), LANES)
                for c in met:
                    updated[c] = simd.fma(builder, g[c, t], value, updated[c])
            for p, value in zip(ends, updated, strict=True):
                simd.store(builder, builder.gep(p, [k]), value)
            bring(builder, nexts, k)
        return context.get_dummy_value()

    return types.void(i, i, i, i, i, i, i, i, i, batch, tile), codegen


@intrinsic
def adam(typingctx: Any, rows: Any, gradient: Any, apart: Any, n: Any, alpha: Any, beta1: Any, beta2: Any) -> Any:
    """Take Adam's step (Kingma and Ba 2015, end of section 2) for n floats of a table, uphill.

    The first moments stand `apart` bytes behind the floats, the second as far behind these. `alpha` has the correction
    of both in it. Epsilon stands below the root, where the paper has it behind: the square of it.
    """
    i, f = types.int64, types.float32

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        rows, gradient, apart, n, alpha, beta1, beta2 = args
        places = [floats(builder, rows), floats(builder, builder.add(rows, apart))]
        places.append(floats(builder, builder.add(builder.add(rows, apart), apart)))
        step, b1, b2 = (simd.splat(builder, value, LANES) for value in (alpha, beta1, beta2))
        one = simd.constant(1.0, LANES)
        a1, a2 = (builder.fsub(one, b) for b in (b1, b2))
        with columns(builder, n) as k:
            g = simd.load(builder, builder.gep(floats(builder, gradient), [k]), LANES)
            row, first, second = (simd.load(builder, builder.gep(p, [k]), LANES) for p in places)
            first = simd.fma(builder, a1, g, builder.fmul(b1, first))
            second = simd.fma(builder, builder.fmul(a2, g), g, builder.fmul(b2, second))
            inverse = simd.inverse_root(builder, builder.fadd(second, simd.constant(EPSILON**2, LANES)))
            row = simd.fma(builder, builder.fmul(step, first), inverse, row)
            for p, value in zip(places, (row, first, second), strict=True):
                simd.store(builder, builder.gep(p, [k]), value)
        return context.get_dummy_value()

    return types.void(i, i, i, i, f, f, f), codegen
