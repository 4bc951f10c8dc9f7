"""The three steps of a window, in registers: dot products, gradients, updates.

A window's contexts x meet its targets y in three steps: all dot products, then the gradient of each pair, then the
updates. Together they move both sides along the gradient of

    sum of log sigmoid(s * x.y),   s = +1 for the target, -1 for a negative, 0 for a pair that does not count.

With p = sigmoid(s * x.y) the gradient by x is s * (1 - p) * y, and the loss is -log p. All dot products of a window are
computed before any row is updated; then the contexts are updated four, two or one at a time. `objectives.reference`
does the same in float64 NumPy.

Rows and lists are passed by address, because Numba would count the references of arrays at each window. The caller
keeps the arrays alive. A list of rows has their addresses, int64. Functions with an LLVM builder that are no intrinsics
(`emitting`) run while a kernel is compiled, and take LLVM values.
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

MetTargets = list[tuple[Any, int, list[int]]]
"""Targets: pointer to the row, index among the values of a vector, and indices of the vectors that it meets."""

_i32 = ir.IntType(32)
_i64 = ir.IntType(64)
_float = ir.FloatType()
_number = types.int64  # Numba's type of addresses and numbers


def group_sizes(n_targets: int, max_size: int = MAX_TARGETS) -> tuple[int, int]:
    """Return the number of groups for n_targets, 1 or more, and the targets of each group; the last may have fewer."""
    n_groups = -(-n_targets // max_size)
    return n_groups, -(-n_targets // n_groups)


@emitting(types.int64, None)
def address(builder: Any, array: Any) -> Any:
    """Return the address of an array's first element. The array must outlive its use."""
    return builder.ptrtoint(array, _i64)


def _make_loader(integer: Any) -> Any:
    """Return the intrinsic that loads integers of an LLVM type as int64."""

    @emitting(types.int64, _number, _number)
    def load(builder: Any, base: Any, index: Any) -> Any:
        """Return element `index` of the integers at `base`."""
        pointer = builder.inttoptr(base, integer.as_pointer())
        return builder.sext(builder.load(builder.gep(pointer, [index])), _i64)

    return load


load_int8 = _make_loader(ir.IntType(8))
load_int32 = _make_loader(_i32)
load_int64 = _make_loader(_i64)


@emitting(types.void, _number, _number, _number)
def store_int64(builder: Any, base: Any, index: Any, value: Any) -> None:
    """Set element `index` of the integers at `base`."""
    builder.store(value, builder.gep(builder.inttoptr(base, _i64.as_pointer()), [index]))


def float_pointer(builder: Any, address: Any) -> Any:
    """Return an address as a pointer to floats."""
    return builder.inttoptr(address, _float.as_pointer())


def row_pointers(builder: Any, targets: Any, stride: Any, n: int) -> list[Any]:
    """Return pointers to the n rows whose addresses are listed at targets[0], targets[stride], ..."""
    entries = builder.inttoptr(targets, _i64.as_pointer())
    pointers = [builder.gep(entries, [builder.mul(stride, _i64(t))]) for t in range(n)]
    return [float_pointer(builder, builder.load(pointer)) for pointer in pointers]


def load(builder: Any, row: Any, k: Any) -> Any:
    """Return the register of a row from column k on."""
    return simd.load(builder, builder.gep(row, [k]), LANES)


def store(builder: Any, row: Any, k: Any, value: Any) -> None:
    """Store a register in a row from column k on."""
    simd.store(builder, builder.gep(row, [k]), value)


def prefetch_columns(builder: Any, rows: list[Any], k: Any) -> None:
    """Prefetch the cache line of column k of each row."""
    for row in rows:
        simd.prefetch(builder, builder.gep(row, [k]))


@contextmanager
def over_columns(builder: Any, width: Any) -> Iterator[Any]:
    """Emit a loop over the columns 0..width-1 of rows, a register at a time; yields the column."""
    with cgutils.for_range_slice(builder, _i64(0), width, _i64(LANES), _i64) as (k, _):
        yield k


def contexts_at_once(contexts: int, targets: int) -> int:
    """Return the number of contexts that meet so many targets at once: their sums and factors fit the registers."""
    return next((n for n in (4, 2) if n <= contexts and n * targets + n + 1 <= REGISTERS), 1)


def list_shared_targets(builder: Any, targets: Any, stride: Any, size: int, n: int) -> MetTargets:
    """Return the `size` targets listed at `targets`, each of which n vectors meet."""
    return [(row, t, [*range(n)]) for t, row in enumerate(row_pointers(builder, targets, stride, size))]


def emit_dots(
    builder: Any, vectors: list[Any], met: MetTargets, nexts: list[Any], width: Any, values: Any, each: int
) -> None:
    """Emit code that writes the dot products of vectors with their targets to `values`, `each` floats a vector.

    The rows `nexts` are prefetched meanwhile.
    """
    n, zero = len(vectors), simd.constant(0.0, LANES)
    totals: list[Any] = [None] * (SLOTS * -(-n * each // SLOTS))
    for _, t, meeting in met:
        for c in meeting:
            totals[c * each + t] = cgutils.alloca_once_value(builder, zero)
    at_once = contexts_at_once(n, -(-sum(len(meeting) for _, _, meeting in met) // n))
    for first in range(0, n, at_once):
        vector_range = range(first, first + at_once)
        with over_columns(builder, width) as k:
            x = {c: load(builder, vectors[c], k) for c in vector_range}
            for row, t, meeting in met:
                if in_range := [c for c in meeting if c in vector_range]:
                    y = load(builder, row, k)
                    for c in in_range:
                        total = totals[c * each + t]
                        builder.store(simd.fma(builder, x[c], y, builder.load(total)), total)
            prefetch_columns(builder, nexts if first == 0 else [], k)
    slots = [None if total is None else builder.load(total) for total in totals]
    for s in range(0, len(slots), SLOTS):
        pointer = builder.gep(float_pointer(builder, values), [_i64(s)])
        simd.store(builder, pointer, simd.sums(builder, slots[s : s + SLOTS]))


def emit_updates(
    builder: Any, vectors: list[Any], starts: list[Any], ends: list[Any], met: MetTargets, nexts: list[Any], width: Any,
    values: Any, each: int,
) -> None:  # fmt: skip
    """Emit code that moves targets and vectors along the gradient, in one pass over columns, and prefetches `nexts`.

    The updates of vectors add to the rows `starts`, and the sums are written to the rows `ends`; without `starts`,
    they add to the rows `ends` once all targets have moved. Without `vectors`, targets stay. `values` holds `each`
    floats for each vector, as an intrinsic of `_make_gradients` wrote them.
    """
    data = float_pointer(builder, values)
    g = {(c, t): _load_splat(builder, data, c * each + t) for _, t, meeting in met for c in meeting}
    with over_columns(builder, width) as k:
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
        prefetch_columns(builder, nexts, k)


def _load_splat(builder: Any, data: Any, index: int) -> Any:
    """Return a register with the float data[index] in each lane."""
    return simd.splat(builder, builder.load(builder.gep(data, [_i64(index)])), LANES)


def _context_pointers(builder: Any, x: Any) -> list[Any]:
    """Return pointers to the rows of a tuple of addresses."""
    return [float_pointer(builder, builder.extract_value(x, i)) for i in range(len(x.type))]


@emitting(types.void, None, _number, _number, _number, _number, _number, None)
def dots(builder: Any, x: Any, targets: Any, ahead: Any, stride: Any, width: Any, values: Any, tile: Any) -> None:
    """Write the dot products of contexts with a group of targets; half of the next targets are prefetched meanwhile.

    `x` is a tuple of the contexts' addresses. The targets are listed at `targets`, the next ones at `ahead`, with
    `stride` entries from one to the next. `values` receives MAX_TARGETS floats for each context. The length of the
    tuple `tile` is the number of targets: being part of a type, it lets the loops over targets unroll.
    """
    xs, size = _context_pointers(builder, x), len(tile.type)
    nexts = row_pointers(builder, ahead, stride, size)[: (size + 1) // 2]
    met = list_shared_targets(builder, targets, stride, size, len(xs))
    emit_dots(builder, xs, met, nexts, width, values, MAX_TARGETS)


@emitting(types.void, None, _number, _number, _number, _number, _number, None)
def updates(builder: Any, x: Any, targets: Any, ahead: Any, stride: Any, width: Any, values: Any, tile: Any) -> None:
    """Move contexts and targets along the gradient.

    Arguments are as in `dots`; this prefetches the other half of the next targets. `values` holds the results of
    `gradients_two` or `gradients_one`. Contexts must differ: a row that is listed twice would lose an update.
    """
    xs, size = _context_pointers(builder, x), len(tile.type)
    met = list_shared_targets(builder, targets, stride, size, len(xs))
    nexts = row_pointers(builder, ahead, stride, size)
    emit_updates(builder, xs, xs, xs, met, nexts[(size + 1) // 2 :], width, values, MAX_TARGETS)


def _load_signs(builder: Any, address: Any, halves: int, size: int) -> Any:
    """Return SLOTS signs: the `size` signs at an address, in the first half of the slots, or in both of two."""
    signs, zeros = simd.load(builder, float_pointer(builder, address), MAX_TARGETS), simd.constant(0.0, MAX_TARGETS)
    half = [lane + MAX_TARGETS * (lane >= size) for lane in range(MAX_TARGETS)]
    none = [lane + MAX_TARGETS for lane in range(MAX_TARGETS)]
    order = half + (half if halves == 2 else none)
    return builder.shuffle_vector(signs, zeros, ir.Constant(ir.VectorType(_i32, SLOTS), order))


def _make_gradients(halves: int) -> Any:
    """Return the intrinsic `gradients`.

    The signs are repeated in `halves` (1 or 2) halves of each SLOTS products; if 0, each product has its own sign.
    """

    @emitting(types.void, _number, _number, _number, types.float32, _number, _number, None)
    def gradients(
        builder: Any, values: Any, n: Any, signs: Any, alpha: Any, mantissa: Any, exponent: Any, tile: Any
    ) -> None:
        """Turn the n dot products at `values` (a multiple of SLOTS) into alpha * s * (1 - p).

        The float32 signs at `signs` are one for each product (`gradients_each`), or as many as `tile` is long, for each
        SLOTS products: in both halves of them (`gradients_two`) or in the first alone (`gradients_one`). The loss is
        kept as a running product of 1 / p, lane by lane: SLOTS float32 at `mantissa` and SLOTS int32 at `exponent`.
        """
        integers = ir.VectorType(_i32, SLOTS)
        one = simd.constant(1.0, SLOTS)
        step, ones = simd.splat(builder, alpha, SLOTS), float_pointer(builder, mantissa)
        powers = builder.inttoptr(exponent, integers.as_pointer())
        shared_signs = _load_signs(builder, signs, halves, len(tile.type)) if halves else None
        product = cgutils.alloca_once_value(builder, simd.load(builder, ones, SLOTS))
        total = cgutils.alloca_once_value(builder, builder.load(powers, align=4, typ=integers))
        with cgutils.for_range_slice(builder, _i64(0), n, _i64(SLOTS), _i64) as (k, _):
            pointer = builder.gep(float_pointer(builder, values), [k])
            sign = shared_signs or simd.load(builder, builder.gep(float_pointer(builder, signs), [k]), SLOTS)
            counted = simd.call(builder, f"llvm.fabs.v{SLOTS}f32", sign.type, sign)
            scale = builder.fmul(sign, step)
            logit = simd.clamp(builder, builder.fmul(sign, simd.load(builder, pointer, SLOTS)), -_LIMIT, _LIMIT)
            odds = simd.exp(builder, builder.fneg(logit))  # (1 - p) / p
            gain = builder.fdiv(builder.fmul(scale, odds), builder.fadd(odds, one), flags=FAST)
            simd.store(builder, pointer, gain)
            factor = builder.fmul(builder.load(product), simd.fma(builder, odds, counted, one))
            bits = builder.bitcast(factor, integers)
            power = builder.sub(builder.lshr(bits, simd.integers(23, SLOTS)), simd.integers(127, SLOTS))
            builder.store(builder.add(builder.load(total), power), total)
            bits = builder.sub(bits, builder.shl(power, simd.integers(23, SLOTS)))
            builder.store(builder.bitcast(bits, factor.type), product)
        simd.store(builder, ones, builder.load(product))
        builder.store(builder.load(total), powers, align=4)

    return gradients


gradients_two, gradients_one, gradients_each = _make_gradients(2), _make_gradients(1), _make_gradients(0)


@emitting(types.void, _number, _number, _number, _number)
def merge_rows(builder: Any, rows: Any, copy: Any, before: Any, n: Any) -> None:
    """Add to the n floats at `rows` the change of their copy since `before`; set copy and `before` to the sum."""
    pointers = [float_pointer(builder, start) for start in (rows, copy, before)]
    with over_columns(builder, n) as k:
        row, copied, earlier = (load(builder, pointer, k) for pointer in pointers)
        merged = builder.fadd(row, builder.fsub(copied, earlier))
        for pointer in pointers:
            store(builder, pointer, k, merged)


@emitting(types.void, _number, _number, _number)
def copy_row(builder: Any, row: Any, copy: Any, width: Any) -> None:
    """Copy the row of `width` floats at the address `row` to the address `copy`."""
    with over_columns(builder, width) as k:
        store(builder, float_pointer(builder, copy), k, load(builder, float_pointer(builder, row), k))


@emitting(types.void, _number, _number)
def prefetch_row(builder: Any, row: Any, width: Any) -> None:
    """Prefetch the row of `width` floats at an address, for writing."""
    with cgutils.for_range_slice(builder, _i64(0), width, _i64(simd.ROW_ALIGNMENT), _i64) as (k, _):
        simd.prefetch(builder, builder.gep(float_pointer(builder, row), [k]))
