"""Rows that are summed and moved at their addresses: what `benchmarks.in_flight_kernels` is made of."""

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from daskw2v.kernels import simd
from daskw2v.kernels.simd import LANES
from daskw2v.objectives.cpu.steps import columns, floats


@intrinsic
def add_rows(typingctx: Any, rows: Any, factors: Any, stride: Any, n: Any, start: Any, end: Any, width: Any) -> Any:
    """Set the row at `end` to that at `start` and the sum of n listed rows, each times its factor.

    Factors stand `stride` floats from each other.
    """
    i = types.int64

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        rows, factors, stride, n, start, end, width = args
        entries, data = builder.inttoptr(rows, n.type.as_pointer()), floats(builder, factors)
        with columns(builder, width) as k:
            first = simd.load(builder, builder.gep(floats(builder, start), [k]), LANES)
            total = cgutils.alloca_once_value(builder, first)
            with cgutils.for_range(builder, n) as loop:
                row = floats(builder, builder.load(builder.gep(entries, [loop.index])))
                factor = builder.load(builder.gep(data, [builder.mul(loop.index, stride)]))
                value = simd.load(builder, builder.gep(row, [k]), LANES)
                builder.store(simd.fma(builder, simd.splat(builder, factor, LANES), value, builder.load(total)), total)
            simd.store(builder, builder.gep(floats(builder, end), [k]), builder.load(total))
        return context.get_dummy_value()

    return types.void(i, i, i, i, i, i, i), codegen


@intrinsic
def add_row(typingctx: Any, row: Any, factor: Any, start: Any, end: Any, width: Any) -> Any:
    """Set the row at `end` to that at `start` and `factor` times another."""
    i = types.int64

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        factor = simd.splat(builder, args[1], LANES)
        with columns(builder, args[4]) as k:
            value, before = (simd.load(builder, builder.gep(floats(builder, args[j]), [k]), LANES) for j in (0, 2))
            simd.store(builder, builder.gep(floats(builder, args[3]), [k]), simd.fma(builder, factor, value, before))
        return context.get_dummy_value()

    return types.void(i, types.float32, i, i, i), codegen
