"""The step that word vector training is made of: a tile of contexts against targets, in registers.

A tile takes one, two or four context rows x and up to eight target rows y, computes all dot products, and moves both
sides along the gradient of

    sum of log sigmoid(s * x.y),   s = +1 for the target, -1 for a negative, 0 for a pair that does not count.

With p = sigmoid(s * x.y) the gradient by x is s * (1 - p) * y, and the loss is -log p. All dots are taken before
any row moves; then the targets move in order, and each context gains what the targets (as they were just before
their own move) say. `objectives.sgns.reference` says the same in float64 NumPy.

What each step gained, million pairs/s on one core with AVX-512 (d=128, five negatives, V=71,249 and tables of 73 MB;
all with negatives of the next window prefetched):

    two contexts at a time, a sum for each dot, sigmoids from a table (the prototype)    7.7
    + transposing sums, an exact sigmoid of all pairs at once, the loss                   7.7
    + four contexts at a time, so that two chains of sums and sigmoids overlap            8.6
    the same with tables that fit the caches (V=1,500)                                   11.0
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from daskw2v import simd
from daskw2v.simd import LANES, SLOTS

MAX_TARGETS = SLOTS // 2  # of one tile: two contexts times eight targets fill the slots
SIGNS = 3 * MAX_TARGETS  # floats that describe a tile's pairs: signs twice, then zeros
_LIMIT = 30.0  # |x.y| beyond which a sigmoid is 0 or 1 to float32

_i32 = ir.IntType(32)


def group_sizes(n_targets: int) -> tuple[int, int]:
    """Return how many tiles n_targets are spread over, and the targets of each (the last may hold fewer)."""
    n_groups = -(-n_targets // MAX_TARGETS)
    return n_groups, -(-n_targets // n_groups)


def _data(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    return context.make_array(kind)(context, builder, array).data


def _step(contexts: int) -> Any:
    """Make the intrinsic for tiles of one, two or four contexts."""

    @intrinsic
    def step(
        typingctx: Any,
        source: Any,
        offsets: Any,
        output: Any,
        rows: Any,
        signs: Any,
        group: Any,
        width: Any,
        alpha: Any,
        mantissa: Any,
        exponent: Any,
        tile: Any,
    ) -> Any:
        """Train one tile.

        `source`, `output` are flat float32 tables; the tuple `offsets` and rows[group * len(tile):] are offsets into
        them; signs[group * SIGNS:] says what each pair is. The loss is kept as a running product of 1/p, lane by
        lane: mantissa (16,) float32 and exponent (16,) int32. The length of the tuple `tile` is the number of
        targets: being part of a type, it lets the loops over targets unroll.
        """
        targets = len(tile)
        signature = types.void(
            source, types.UniTuple(types.intp, contexts), output, rows, signs, types.intp, types.intp,
            types.float32, mantissa, exponent, tile,
        )  # fmt: skip

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            w, c, row_list, sign_list, ones, powers = (
                _data(context, builder, sig.args[i], args[i]) for i in (0, 2, 3, 4, 8, 9)
            )
            index, n, rate = args[5], args[6], args[7]
            intp = n.type
            x = [builder.gep(w, [builder.extract_value(args[1], i)]) for i in range(contexts)]
            first = builder.mul(index, intp(targets))
            y = [
                builder.gep(c, [builder.load(builder.gep(row_list, [builder.add(first, intp(t))]))])
                for t in range(targets)
            ]
            dots = _dots(builder, x, y, n)
            place = builder.mul(index, intp(SIGNS))
            if contexts == 1:  # reads the zeros behind the signs
                place = builder.add(place, intp(MAX_TARGETS))
            sign = simd.load(builder, builder.gep(sign_list, [place]), SLOTS)
            pairs = [_gradient(builder, d, sign, rate, ones, powers) for d in dots]
            g = [
                [simd.broadcast(builder, pairs[i // 2], i % 2 * MAX_TARGETS + t, LANES) for t in range(targets)]
                for i in range(contexts)
            ]
            _move(builder, x, y, g, n)
            return context.get_dummy_value()

        return signature, codegen

    return step


def _dots(builder: Any, x: list[Any], y: list[Any], n: Any) -> list[Any]:
    """Return all dot products, those of two contexts in a vector of SLOTS: first context, then second."""
    zero = simd.constant(0.0, LANES)
    accumulators = [[cgutils.alloca_once_value(builder, zero) for _ in y] for _ in x]
    with _columns(builder, n) as k:
        v = [simd.load(builder, builder.gep(p, [k]), LANES) for p in x]
        for t, row in enumerate(y):
            o = simd.load(builder, builder.gep(row, [k]), LANES)
            for i, value in enumerate(v):
                a = accumulators[i][t]
                builder.store(simd.fma(builder, value, o, builder.load(a)), a)
    slots: list[Any] = [None] * (SLOTS * -(-len(x) // 2))
    for i, of_context in enumerate(accumulators):
        for t, a in enumerate(of_context):
            slots[i * MAX_TARGETS + t] = builder.load(a)
    return [simd.sums(builder, slots[s : s + SLOTS]) for s in range(0, len(slots), SLOTS)]


def _gradient(builder: Any, dots: Any, sign: Any, rate: Any, ones: Any, powers: Any) -> Any:
    """Return alpha * s * (1 - p) for each slot, and multiply the loss by 1 / p."""
    one = simd.constant(1.0, SLOTS)
    logit = simd.clamp(builder, builder.fmul(sign, dots), -_LIMIT, _LIMIT)
    odds = simd.exp(builder, builder.fneg(logit))  # (1 - p) / p
    counted = simd.call(builder, f"llvm.fabs.v{SLOTS}f32", sign.type, sign)
    scale = builder.fmul(sign, simd.splat(builder, rate, SLOTS))
    product = builder.fmul(simd.load(builder, ones, SLOTS), simd.fma(builder, odds, counted, one))
    bits = builder.bitcast(product, ir.VectorType(_i32, SLOTS))
    power = builder.sub(builder.lshr(bits, simd.integers(23, SLOTS)), simd.integers(127, SLOTS))
    total = builder.add(_load_integers(builder, powers), power)
    builder.store(total, builder.bitcast(powers, total.type.as_pointer()), align=4)
    bits = builder.sub(bits, builder.shl(power, simd.integers(23, SLOTS)))
    simd.store(builder, ones, builder.bitcast(bits, product.type))
    return builder.fdiv(builder.fmul(scale, odds), builder.fadd(odds, one), flags=simd.FAST)


def _move(builder: Any, x: list[Any], y: list[Any], g: list[list[Any]], n: Any) -> None:
    """Move targets and contexts along the gradient, in one pass over the columns."""
    with _columns(builder, n) as k:
        v = [simd.load(builder, builder.gep(p, [k]), LANES) for p in x]
        moved = list(v)
        for t, row in enumerate(y):
            old = new = simd.load(builder, builder.gep(row, [k]), LANES)
            for i, value in enumerate(v):
                moved[i] = simd.fma(builder, g[i][t], old, moved[i])
                new = simd.fma(builder, g[i][t], value, new)
            simd.store(builder, builder.gep(row, [k]), new)
        for p, value in zip(x, moved, strict=True):
            simd.store(builder, builder.gep(p, [k]), value)


@contextmanager
def _columns(builder: Any, n: Any) -> Iterator[Any]:
    """Loop over the columns 0..n-1 of rows, a register at a time."""
    kind = n.type
    with cgutils.for_range_slice(builder, kind(0), n, kind(LANES), kind) as (k, _):
        yield k


def _load_integers(builder: Any, pointer: Any) -> Any:
    kind = ir.VectorType(_i32, SLOTS)
    return builder.load(builder.bitcast(pointer, kind.as_pointer()), align=4, typ=kind)


step_one = _step(1)
step_two = _step(2)
step_four = _step(4)


@intrinsic
def prefetch(typingctx: Any, table: Any, offset: Any, width: Any) -> Any:
    """Bring the row of `width` floats at table[offset] close, for writing."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        row = builder.gep(_data(context, builder, sig.args[0], args[0]), [args[1]])
        kind = ir.FunctionType(ir.VoidType(), [byte, _i32, _i32, _i32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        n = args[2]
        with cgutils.for_range_slice(builder, n.type(0), n, n.type(simd.ROW_ALIGNMENT), n.type) as (k, _):
            builder.call(function, [builder.bitcast(builder.gep(row, [k]), byte), _i32(1), _i32(3), _i32(1)])
        return context.get_dummy_value()

    return types.void(table, types.intp, types.intp), codegen
