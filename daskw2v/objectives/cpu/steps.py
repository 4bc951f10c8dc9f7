"""The three steps of a window, in registers: dot products, gradients, updates.

A window's contexts x meet its targets y in three steps: all dot products, then the gradient of each pair, then the
updates. Together they move both sides along the gradient of

    sum of log sigmoid(s * x.y),   s = +1 for the target, -1 for a negative, 0 for a pair that does not count.

With p = sigmoid(s * x.y) the gradient by x is s * (1 - p) * y, and the loss is -log p. All dots of a window are taken
before any row is updated; then the contexts are updated four, two or one at a time. `objectives.reference` does the
same in float64 NumPy.

Rows and lists are passed by address, because Numba would count the references of arrays at each window. The caller
keeps the arrays alive.

Speed after each improvement, in million trained words/s of SGNS on one core with AVX-512 (five negatives, V=71,249;
d=128 without subsampling, d=100 with sample 1e-4). Each was measured once, when it was written, on a machine in use:
differences below 5 % mean nothing:

    four contexts by all targets at a time, each with its own sums and sigmoids             1.43  1.55
    + all dots of a window first, then all sigmoids; blends instead of half the shuffles     1.60  1.73
    + updates of four contexts at once; a target's register is reused for what it becomes      1.67  1.83
    + the next targets are prefetched in both loops over columns, not in one burst           1.73  1.88
    + targets of 64 windows drawn in a loop without branches, which becomes vector code      1.84  1.95
    the same with arrays passed to the inner functions: references are counted               1.46  1.53
    + rows and lists by address                                                              1.70  1.82

Without gain: sigmoids right after the dots of each four contexts, rows of an odd number of cache lines (fewer at a
distance of 4 KB).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from daskw2v.kernels import simd
from daskw2v.kernels.jit import FAST
from daskw2v.kernels.simd import LANES, REGISTERS, SLOTS

MAX_TARGETS = SLOTS // 2  # of one group: two contexts times eight targets fill the slots
_LIMIT = 30.0  # |x.y| beyond which a sigmoid is 0 or 1 to float32

_i32 = ir.IntType(32)
_i64 = ir.IntType(64)
_float = ir.FloatType()


def group_sizes(n_targets: int, most: int = MAX_TARGETS) -> tuple[int, int]:
    """Return how many groups n_targets are spread over, and the targets of each (the last may hold fewer)."""
    n_groups = -(-n_targets // most)
    return n_groups, -(-n_targets // n_groups)


@intrinsic
def address(typingctx: Any, array: Any) -> Any:
    """Return the address of an array's first element. The array must outlive its use."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        return builder.ptrtoint(data, _i64)

    return types.int64(array), codegen


def _loader(kind: Any) -> Any:
    @intrinsic
    def load(typingctx: Any, base: Any, index: Any) -> Any:
        """Return element `index` of the integers at `base`."""

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], kind.as_pointer())
            return builder.sext(builder.load(builder.gep(pointer, [args[1]])), _i64)

        return types.int64(types.int64, types.int64), codegen

    return load


load_int8 = _loader(ir.IntType(8))
load_int32 = _loader(_i32)
load_int64 = _loader(_i64)


@intrinsic
def store_int64(typingctx: Any, base: Any, index: Any, value: Any) -> Any:
    """Set element `index` of the integers at `base`."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], _i64.as_pointer())
        builder.store(args[2], builder.gep(pointer, [args[1]]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


def floats(builder: Any, at: Any) -> Any:
    """Return an address as a pointer to floats."""
    return builder.inttoptr(at, _float.as_pointer())


def rows_at(builder: Any, targets: Any, stride: Any, n: int) -> list[Any]:
    """Return pointers to the n rows whose addresses stand at targets[0], targets[stride], ..."""
    entries = builder.inttoptr(targets, _i64.as_pointer())
    places = [builder.gep(entries, [builder.mul(stride, _i64(t))]) for t in range(n)]
    return [floats(builder, builder.load(place)) for place in places]


def _contexts(builder: Any, x: Any) -> list[Any]:
    return [floats(builder, builder.extract_value(x, i)) for i in range(len(x.type))]


def bring(builder: Any, rows: list[Any], k: Any) -> None:
    """Bring the cache line of column k of each row close."""
    for row in rows:
        simd.prefetch(builder, builder.gep(row, [k]))


def at_once(contexts: int, targets: int) -> int:
    """Return how many contexts meet so many targets at once: all sums, and what is multiplied, fit the registers."""
    return next((n for n in (4, 2) if n <= contexts and n * targets + n + 1 <= REGISTERS), 1)


def _dots(contexts: int) -> Any:
    @intrinsic
    def dots(typingctx: Any, x: Any, targets: Any, ahead: Any, stride: Any, width: Any, values: Any, tile: Any) -> Any:
        """Write the dot products of contexts with a group of targets; half of the next targets come close meanwhile.

        `values` receives MAX_TARGETS floats for each context. The length of the tuple `tile` is the number of targets:
        being part of a type, it lets the loops over targets unroll.
        """
        i = types.int64
        signature = types.void(types.UniTuple(i, contexts), i, i, i, i, i, tile)

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            xs, ys = _contexts(builder, args[0]), rows_at(builder, args[1], args[3], len(tile))
            nexts = rows_at(builder, args[2], args[3], len(tile))[: (len(tile) + 1) // 2]
            zero = simd.constant(0.0, LANES)
            totals = [[cgutils.alloca_once_value(builder, zero) for _ in ys] for _ in xs]
            together = at_once(contexts, len(tile))
            for first in range(0, contexts, together):
                those = slice(first, first + together)
                with columns(builder, args[4]) as k:
                    v = [simd.load(builder, builder.gep(p, [k]), LANES) for p in xs[those]]
                    for t, row in enumerate(ys):
                        o = simd.load(builder, builder.gep(row, [k]), LANES)
                        for value, of_context in zip(v, totals[those], strict=True):
                            builder.store(simd.fma(builder, value, o, builder.load(of_context[t])), of_context[t])
                    bring(builder, nexts if first == 0 else [], k)
            slots: list[Any] = [None] * (SLOTS * -(-contexts // 2))
            for c, of_context in enumerate(totals):
                for t, total in enumerate(of_context):
                    slots[c * MAX_TARGETS + t] = builder.load(total)
            for s in range(0, len(slots), SLOTS):
                place = builder.gep(floats(builder, args[5]), [_i64(s)])
                simd.store(builder, place, simd.sums(builder, slots[s : s + SLOTS]))
            return context.get_dummy_value()

        return signature, codegen

    return dots


def _signs(builder: Any, at: Any, halves: int, size: int) -> Any:
    signs, zeros = simd.load(builder, floats(builder, at), MAX_TARGETS), simd.constant(0.0, MAX_TARGETS)
    half = [lane + MAX_TARGETS * (lane >= size) for lane in range(MAX_TARGETS)]
    none = [lane + MAX_TARGETS for lane in range(MAX_TARGETS)]
    order = half + (half if halves == 2 else none)
    return builder.shuffle_vector(signs, zeros, ir.Constant(ir.VectorType(_i32, SLOTS), order))


def _gradients(halves: int) -> Any:
    @intrinsic
    def gradients(
        typingctx: Any, values: Any, n: Any, signs: Any, alpha: Any, mantissa: Any, exponent: Any, tile: Any
    ) -> Any:
        """Turn n dot products (a multiple of SLOTS) into alpha * s * (1 - p).

        Their signs stand at `signs`: one for each, or as many as `tile` is long, which each SLOTS of them have: in both
        halves of the slots or in the first alone. The loss is kept as a running product of 1 / p, lane by lane:
        mantissa SLOTS float32 and exponent SLOTS int32.
        """
        i = types.int64
        signature = types.void(i, i, i, types.float32, i, i, tile)

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            integers = ir.VectorType(_i32, SLOTS)
            one = simd.constant(1.0, SLOTS)
            alpha, ones = simd.splat(builder, args[3], SLOTS), floats(builder, args[4])
            powers = builder.inttoptr(args[5], integers.as_pointer())
            same = _signs(builder, args[2], halves, len(tile)) if halves else None
            product = cgutils.alloca_once_value(builder, simd.load(builder, ones, SLOTS))
            total = cgutils.alloca_once_value(builder, builder.load(powers, align=4, typ=integers))
            with cgutils.for_range_slice(builder, _i64(0), args[1], _i64(SLOTS), _i64) as (k, _):
                place = builder.gep(floats(builder, args[0]), [k])
                sign = same or simd.load(builder, builder.gep(floats(builder, args[2]), [k]), SLOTS)
                counted = simd.call(builder, f"llvm.fabs.v{SLOTS}f32", sign.type, sign)
                scale = builder.fmul(sign, alpha)
                logit = simd.clamp(builder, builder.fmul(sign, simd.load(builder, place, SLOTS)), -_LIMIT, _LIMIT)
                odds = simd.exp(builder, builder.fneg(logit))  # (1 - p) / p
                gain = builder.fdiv(builder.fmul(scale, odds), builder.fadd(odds, one), flags=FAST)
                simd.store(builder, place, gain)
                factor = builder.fmul(builder.load(product), simd.fma(builder, odds, counted, one))
                bits = builder.bitcast(factor, integers)
                power = builder.sub(builder.lshr(bits, simd.integers(23, SLOTS)), simd.integers(127, SLOTS))
                builder.store(builder.add(builder.load(total), power), total)
                bits = builder.sub(bits, builder.shl(power, simd.integers(23, SLOTS)))
                builder.store(builder.bitcast(bits, factor.type), product)
            simd.store(builder, ones, builder.load(product))
            builder.store(builder.load(total), powers, align=4)
            return context.get_dummy_value()

        return signature, codegen

    return gradients


def _updates(contexts: int) -> Any:
    @intrinsic
    def updates(
        typingctx: Any, x: Any, targets: Any, ahead: Any, stride: Any, width: Any, values: Any, tile: Any
    ) -> Any:
        """Move contexts and targets along the gradient, in one pass over the columns.

        Arguments as in `dots`, of which this brings the other half of the next targets close; `values` holds what
        `gradients` wrote. Contexts must differ: a row that stands twice would lose an update.
        """
        i = types.int64
        signature = types.void(types.UniTuple(i, contexts), i, i, i, i, i, tile)

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            xs, ys = _contexts(builder, args[0]), rows_at(builder, args[1], args[3], len(tile))
            nexts = rows_at(builder, args[2], args[3], len(tile))[(len(tile) + 1) // 2 :]
            data = floats(builder, args[5])
            g = [[splat_of(builder, data, c * MAX_TARGETS + t) for t in range(len(tile))] for c in range(contexts)]
            with columns(builder, args[4]) as k:
                v = [simd.load(builder, builder.gep(p, [k]), LANES) for p in xs]
                updated = list(v)
                for t, row in enumerate(ys):
                    old = new = simd.load(builder, builder.gep(row, [k]), LANES)
                    for c in range(contexts):  # before the target is updated, so that its register can be reused
                        updated[c] = simd.fma(builder, g[c][t], old, updated[c])
                    for c, value in enumerate(v):
                        new = simd.fma(builder, g[c][t], value, new)
                    simd.store(builder, builder.gep(row, [k]), new)
                for p, value in zip(xs, updated, strict=True):
                    simd.store(builder, builder.gep(p, [k]), value)
                bring(builder, nexts, k)
            return context.get_dummy_value()

        return signature, codegen

    return updates


def splat_of(builder: Any, data: Any, index: int) -> Any:
    """Return the float data[index] in every lane."""
    return simd.splat(builder, builder.load(builder.gep(data, [_i64(index)])), LANES)


@contextmanager
def columns(builder: Any, width: Any) -> Iterator[Any]:
    """Loop over the columns 0..width-1 of rows, a register at a time."""
    with cgutils.for_range_slice(builder, _i64(0), width, _i64(LANES), _i64) as (k, _):
        yield k


dots_one, dots_two, dots_four = _dots(1), _dots(2), _dots(4)
updates_one, updates_two, updates_four = _updates(1), _updates(2), _updates(4)
gradients_two, gradients_one, gradients_each = _gradients(2), _gradients(1), _gradients(0)


@intrinsic
def merge_rows(typingctx: Any, rows: Any, copy: Any, before: Any, n: Any) -> Any:
    """Add to n floats what their copy gained since it was `before`; then all three are equal."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        with columns(builder, args[3]) as k:
            places = [builder.gep(floats(builder, args[i]), [k]) for i in range(3)]
            old, gained, known = (simd.load(builder, place, LANES) for place in places)
            now = builder.fadd(old, builder.fsub(gained, known))
            for place in places:
                simd.store(builder, place, now)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), codegen


@intrinsic
def copy_row(typingctx: Any, row: Any, copy: Any, width: Any) -> Any:
    """Copy the row of `width` floats at an address to another one."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        with columns(builder, args[2]) as k:
            value = simd.load(builder, builder.gep(floats(builder, args[0]), [k]), LANES)
            simd.store(builder, builder.gep(floats(builder, args[1]), [k]), value)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic
def prefetch_row(typingctx: Any, row: Any, width: Any) -> Any:
    """Bring the row of `width` floats at an address close, for writing."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        with cgutils.for_range_slice(builder, _i64(0), args[1], _i64(simd.ROW_ALIGNMENT), _i64) as (k, _):
            bring(builder, [floats(builder, args[0])], k)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen
