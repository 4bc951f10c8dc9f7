"""The three steps of a window, in registers: dot products, gradients, updates.

A window's contexts x meet its targets y in three steps: all dot products, then the gradient of each pair, then the
updates. Together they move both sides along the gradient of

    sum of log sigmoid(s * x.y),   s = +1 for the target, -1 for a negative, 0 for a pair that does not count.

With p = sigmoid(s * x.y) the gradient by x is s * (1 - p) * y, and the loss is -log p. All dots of a window are taken
before any row is updated; then the contexts are updated four, two or one at a time. `objectives.reference` does the
same in float64 NumPy.

Rows and lists are passed by address, because Numba would count the references of arrays at each window. The caller
keeps the arrays alive.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from daskw2v.kernels import simd
from daskw2v.kernels.jit import FAST, emitting
from daskw2v.kernels.simd import LANES, REGISTERS, SLOTS

MAX_TARGETS = SLOTS // 2  # of one group: two contexts times eight targets fill the slots
_LIMIT = 30.0  # |x.y| beyond which a sigmoid is 0 or 1 to float32

Met = list[tuple[Any, int, list[int]]]
"""Targets: a target's row, its index among the values of a vector, and the numbers of the vectors that it meets."""

_i32 = ir.IntType(32)
_i64 = ir.IntType(64)
_float = ir.FloatType()
_number = types.int64  # Numba's type of addresses and numbers


def group_sizes(n_targets: int, most: int = MAX_TARGETS) -> tuple[int, int]:
    """Return how many groups n_targets are spread over, and the targets of each (the last may hold fewer)."""
    n_groups = -(-n_targets // most)
    return n_groups, -(-n_targets // n_groups)


@emitting(types.int64, None)
def address(builder: Any, array: Any) -> Any:
    """Return the address of an array's first element. The array must outlive its use."""
    return builder.ptrtoint(array, _i64)


def _loader(kind: Any) -> Any:
    @emitting(types.int64, _number, _number)
    def load(builder: Any, base: Any, index: Any) -> Any:
        """Return element `index` of the integers at `base`."""
        pointer = builder.inttoptr(base, kind.as_pointer())
        return builder.sext(builder.load(builder.gep(pointer, [index])), _i64)

    return load


load_int8 = _loader(ir.IntType(8))
load_int32 = _loader(_i32)
load_int64 = _loader(_i64)


@emitting(types.void, _number, _number, _number)
def store_int64(builder: Any, base: Any, index: Any, value: Any) -> None:
    """Set element `index` of the integers at `base`."""
    builder.store(value, builder.gep(builder.inttoptr(base, _i64.as_pointer()), [index]))


def floats(builder: Any, at: Any) -> Any:
    """Return an address as a pointer to floats."""
    return builder.inttoptr(at, _float.as_pointer())


def rows_at(builder: Any, targets: Any, stride: Any, n: int) -> list[Any]:
    """Return pointers to the n rows whose addresses stand at targets[0], targets[stride], ..."""
    entries = builder.inttoptr(targets, _i64.as_pointer())
    places = [builder.gep(entries, [builder.mul(stride, _i64(t))]) for t in range(n)]
    return [floats(builder, builder.load(place)) for place in places]


def load(builder: Any, row: Any, k: Any) -> Any:
    """Load the register of a row from column k on."""
    return simd.load(builder, builder.gep(row, [k]), LANES)


def store(builder: Any, row: Any, k: Any, value: Any) -> None:
    """Store a register in a row from column k on."""
    simd.store(builder, builder.gep(row, [k]), value)


def bring(builder: Any, rows: list[Any], k: Any) -> None:
    """Bring the cache line of column k of each row close."""
    for row in rows:
        simd.prefetch(builder, builder.gep(row, [k]))


@contextmanager
def columns(builder: Any, width: Any) -> Iterator[Any]:
    """Loop over the columns 0..width-1 of rows, a register at a time."""
    with cgutils.for_range_slice(builder, _i64(0), width, _i64(LANES), _i64) as (k, _):
        yield k


def at_once(contexts: int, targets: int) -> int:
    """Return how many contexts meet so many targets at once: all sums, and what is multiplied, fit the registers."""
    return next((n for n in (4, 2) if n <= contexts and n * targets + n + 1 <= REGISTERS), 1)


def met_by_all(builder: Any, targets: Any, stride: Any, size: int, n: int) -> Met:
    """Return the `size` targets that stand at `targets`, all of which n vectors meet."""
    return [(row, t, [*range(n)]) for t, row in enumerate(rows_at(builder, targets, stride, size))]


def emit_dots(builder: Any, vectors: list[Any], met: Met, nexts: list[Any], width: Any, values: Any, each: int) -> None:
    """Write the dot products of vectors with their targets to `values`, `each` floats for each vector.

    The rows `nexts` come close meanwhile.
    """
    n, zero = len(vectors), simd.constant(0.0, LANES)
    totals: list[Any] = [None] * (SLOTS * -(-n * each // SLOTS))
    for _, t, meeting in met:
        for c in meeting:
            totals[c * each + t] = cgutils.alloca_once_value(builder, zero)
    together = at_once(n, -(-sum(len(meeting) for _, _, meeting in met) // n))
    for first in range(0, n, together):
        now = range(first, first + together)
        with columns(builder, width) as k:
            x = {c: load(builder, vectors[c], k) for c in now}
            for row, t, meeting in met:
                if both := [c for c in meeting if c in now]:
                    y = load(builder, row, k)
                    for c in both:
                        total = totals[c * each + t]
                        builder.store(simd.fma(builder, x[c], y, builder.load(total)), total)
            bring(builder, nexts if first == 0 else [], k)
    slots = [None if total is None else builder.load(total) for total in totals]
    for s in range(0, len(slots), SLOTS):
        place = builder.gep(floats(builder, values), [_i64(s)])
        simd.store(builder, place, simd.sums(builder, slots[s : s + SLOTS]))


def emit_updates(
    builder: Any, vectors: list[Any], starts: list[Any], ends: list[Any], met: Met, nexts: list[Any], width: Any,
    values: Any, each: int,
) -> None:  # fmt: skip
    """Move targets and vectors along the gradient, in one pass over the columns; the rows `nexts` come close meanwhile.

    The updates of vectors add to the rows `starts`, and the sums are written to the rows `ends`; without `starts`,
    they add to the rows `ends` once all targets have moved. Without `vectors`, targets stay. `values` holds `each`
    floats for each vector, as `gradients` wrote them.
    """
    data = floats(builder, values)
    g = {(c, t): _splat_of(builder, data, c * each + t) for _, t, meeting in met for c in meeting}
    with columns(builder, width) as k:
        x = [load(builder, row, k) for row in vectors]
        updates = [load(builder, row, k) for row in starts] or [simd.constant(0.0, LANES)] * len(ends)
        for row, t, meeting in met:
            old = new = load(builder, row, k)
            for c in meeting:  # before the target is updated, so that its register can be reused
                updates[c] = simd.fma(builder, g[c, t], old, updates[c])
            if vectors:
                for c in meeting:
                    new = simd.fma(builder, g[c, t], x[c], new)
                store(builder, row, k, new)
        for row, update in zip(ends, updates, strict=True):
            store(builder, row, k, update if starts else builder.fadd(load(builder, row, k), update))
        bring(builder, nexts, k)


def _splat_of(builder: Any, data: Any, index: int) -> Any:
    """Return the float data[index] in every lane."""
    return simd.splat(builder, builder.load(builder.gep(data, [_i64(index)])), LANES)


def _contexts(builder: Any, x: Any) -> list[Any]:
    return [floats(builder, builder.extract_value(x, i)) for i in range(len(x.type))]


@emitting(types.void, None, _number, _number, _number, _number, _number, None)
def dots(builder: Any, x: Any, targets: Any, ahead: Any, stride: Any, width: Any, values: Any, tile: Any) -> None:
    """Write the dot products of contexts with a group of targets; half of the next targets come close meanwhile.

    `x` is a tuple of the contexts' addresses. `values` receives MAX_TARGETS floats for each context. The length of the
    tuple `tile` is the number of targets: being part of a type, it lets the loops over targets unroll.
    """
    xs, size = _contexts(builder, x), len(tile.type)
    nexts = rows_at(builder, ahead, stride, size)[: (size + 1) // 2]
    emit_dots(builder, xs, met_by_all(builder, targets, stride, size, len(xs)), nexts, width, values, MAX_TARGETS)


@emitting(types.void, None, _number, _number, _number, _number, _number, None)
def updates(builder: Any, x: Any, targets: Any, ahead: Any, stride: Any, width: Any, values: Any, tile: Any) -> None:
    """Move contexts and targets along the gradient.

    Arguments as in `dots`, of which this brings the other half of the next targets close; `values` holds what
    `gradients` wrote. Contexts must differ: a row that stands twice would lose an update.
    """
    xs, size = _contexts(builder, x), len(tile.type)
    met, nexts = met_by_all(builder, targets, stride, size, len(xs)), rows_at(builder, ahead, stride, size)
    emit_updates(builder, xs, xs, xs, met, nexts[(size + 1) // 2 :], width, values, MAX_TARGETS)


def _signs(builder: Any, at: Any, halves: int, size: int) -> Any:
    signs, zeros = simd.load(builder, floats(builder, at), MAX_TARGETS), simd.constant(0.0, MAX_TARGETS)
    half = [lane + MAX_TARGETS * (lane >= size) for lane in range(MAX_TARGETS)]
    none = [lane + MAX_TARGETS for lane in range(MAX_TARGETS)]
    order = half + (half if halves == 2 else none)
    return builder.shuffle_vector(signs, zeros, ir.Constant(ir.VectorType(_i32, SLOTS), order))


def _gradients(halves: int) -> Any:
    @emitting(types.void, _number, _number, _number, types.float32, _number, _number, None)
    def gradients(
        builder: Any, values: Any, n: Any, signs: Any, alpha: Any, mantissa: Any, exponent: Any, tile: Any
    ) -> None:
        """Turn n dot products (a multiple of SLOTS) into alpha * s * (1 - p).

        Their signs stand at `signs`: one for each, or as many as `tile` is long, which each SLOTS of them have: in both
        halves of the slots or in the first alone. The loss is kept as a running product of 1 / p, lane by lane:
        mantissa SLOTS float32 and exponent SLOTS int32.
        """
        integers = ir.VectorType(_i32, SLOTS)
        one = simd.constant(1.0, SLOTS)
        step, ones = simd.splat(builder, alpha, SLOTS), floats(builder, mantissa)
        powers = builder.inttoptr(exponent, integers.as_pointer())
        same = _signs(builder, signs, halves, len(tile.type)) if halves else None
        product = cgutils.alloca_once_value(builder, simd.load(builder, ones, SLOTS))
        total = cgutils.alloca_once_value(builder, builder.load(powers, align=4, typ=integers))
        with cgutils.for_range_slice(builder, _i64(0), n, _i64(SLOTS), _i64) as (k, _):
            place = builder.gep(floats(builder, values), [k])
            sign = same or simd.load(builder, builder.gep(floats(builder, signs), [k]), SLOTS)
            counted = simd.call(builder, f"llvm.fabs.v{SLOTS}f32", sign.type, sign)
            scale = builder.fmul(sign, step)
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

    return gradients


gradients_two, gradients_one, gradients_each = _gradients(2), _gradients(1), _gradients(0)


@emitting(types.void, _number, _number, _number, _number)
def merge_rows(builder: Any, rows: Any, copy: Any, before: Any, n: Any) -> None:
    """Add to n floats what their copy gained since it was `before`; then all three are equal."""
    places = [floats(builder, at) for at in (rows, copy, before)]
    with columns(builder, n) as k:
        old, gained, known = (load(builder, place, k) for place in places)
        now = builder.fadd(old, builder.fsub(gained, known))
        for place in places:
            store(builder, place, k, now)


@emitting(types.void, _number, _number, _number)
def copy_row(builder: Any, row: Any, copy: Any, width: Any) -> None:
    """Copy the row of `width` floats at an address to another one."""
    with columns(builder, width) as k:
        store(builder, floats(builder, copy), k, load(builder, floats(builder, row), k))


@emitting(types.void, _number, _number)
def prefetch_row(builder: Any, row: Any, width: Any) -> None:
    """Bring the row of `width` floats at an address close, for writing."""
    with cgutils.for_range_slice(builder, _i64(0), width, _i64(simd.ROW_ALIGNMENT), _i64) as (k, _):
        simd.prefetch(builder, builder.gep(floats(builder, row), [k]))
