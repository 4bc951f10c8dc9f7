"""The hidden vectors of CBOW: what a window's contexts say together, its training, and how they share its move.

Hidden vectors train one at a time, or in a batch that shares its negatives: a target row is then read and written once
for all of them, and the rows of targets are what CBOW spends its time on. Their moves stand one after the other, and
behind them a row of zeros.

Each hidden vector stays as it is until all of its targets have moved, as in word2vec.c.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from daskw2v import simd
from daskw2v.jit import inline
from daskw2v.objectives.steps import (
    MAX_TARGETS,
    bring,
    columns,
    floats,
    gradients_each,
    gradients_one,
    rows_at,
    splat_of,
)
from daskw2v.simd import LANES, SLOTS

BATCH = 4  # hidden vectors that share negatives
OWN = MAX_TARGETS - 1  # where, among the values of a hidden vector of a batch, that of its own target stands
_MOST = 10  # contexts that one pass over the columns takes: those of the usual window

_i64 = ir.IntType(64)


def _of_number(emit: Callable[[Any, list[Any], Any, Any, Any, Any], None]) -> Any:
    """Return an intrinsic that does `emit` for n rows, 1 to _MOST, in code of its own for each number."""

    @intrinsic
    def by_number(typingctx: Any, rows: Any, n: Any, width: Any, share: Any, start: Any, end: Any) -> Any:
        i = types.int64

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            share, start, end = simd.splat(builder, args[3], LANES), floats(builder, args[4]), floats(builder, args[5])
            done = builder.append_basic_block("done")
            numbers = builder.switch(args[1], done)
            for number in range(1, _MOST + 1):
                block = builder.append_basic_block(f"of{number}")
                numbers.add_case(_i64(number), block)
                with builder.goto_block(block):
                    emit(builder, rows_at(builder, args[0], _i64(1), number), args[2], share, start, end)
                    builder.branch(done)
            builder.position_at_end(done)
            return context.get_dummy_value()

        return types.void(i, i, i, types.float32, i, i), codegen

    return by_number


def _sum(builder: Any, rows: list[Any], width: Any, share: Any, start: Any, end: Any) -> None:
    with columns(builder, width) as k:
        total = simd.load(builder, builder.gep(rows[0], [k]), LANES)
        for row in rows[1:]:
            total = builder.fadd(total, simd.load(builder, builder.gep(row, [k]), LANES))
        before = simd.load(builder, builder.gep(start, [k]), LANES)
        simd.store(builder, builder.gep(end, [k]), simd.fma(builder, share, total, before))


def _add(builder: Any, rows: list[Any], width: Any, share: Any, start: Any, _: Any) -> None:
    with columns(builder, width) as k:
        move = simd.load(builder, builder.gep(start, [k]), LANES)
        for row in rows:
            place = builder.gep(row, [k])
            simd.store(builder, place, simd.fma(builder, share, move, simd.load(builder, place, LANES)))


_sum_rows, _add_to_rows = _of_number(_sum), _of_number(_add)


@inline
def gather(contexts: Any, n: Any, width: Any, mean: Any, hidden: Any, zeros: Any) -> None:
    """Set the row at `hidden` to the mean, or the sum, of n contexts; `zeros` is the address of a row of zeros."""
    share = np.float32(1.0 / n if mean else 1.0)
    _sum_rows(contexts, min(n, _MOST), width, share, zeros, hidden)
    for i in range(_MOST, n, _MOST):
        _sum_rows(contexts + 8 * i, min(n - i, _MOST), width, share, hidden, hidden)


@inline
def add_move(row: Any, move: Any, width: Any) -> None:
    """Add a hidden vector's move to the row whose address stands at `row`."""
    _add_to_rows(row, 1, width, np.float32(1.0), move, move)


@inline
def scatter(contexts: Any, n: Any, width: Any, mean: Any, move: Any) -> None:
    """Add a hidden vector's move to each of n contexts.

    As in word2vec.c and gensim, the contexts of a mean each take all of the move, those of a sum a share of it.
    """
    share = np.float32(1.0 if mean else 1.0 / n)
    for i in range(0, n, _MOST):
        _add_to_rows(contexts + 8 * i, min(n - i, _MOST), width, share, move, move)


def side_by_side(builder: Any, base: Any, apart: Any, n: int) -> list[Any]:
    """Return pointers to n rows of which the first is at `base`, and which stand `apart` floats from each other."""
    return [builder.gep(floats(builder, base), [builder.mul(apart, _i64(c))]) for c in range(n)]


def targets_met(
    builder: Any, shared: Any, own: Any, stride: Any, n: int, tile: Any
) -> list[tuple[Any, int, list[int]]]:
    """Return each target's row, the place of its values, and the hidden vectors that it meets: first the shared."""
    everyone = [(row, t, [*range(n)]) for t, row in enumerate(rows_at(builder, shared, stride, len(tile)))]
    alone = rows_at(builder, own, stride, n) if n > 1 else []
    return everyone + [(row, OWN, [c]) for c, row in enumerate(alone)]


@intrinsic
def dots_hidden(
    typingctx: Any, hidden: Any, apart: Any, shared: Any, own: Any, ahead: Any, stride: Any, width: Any, values: Any,
    batch: Any, tile: Any,
) -> Any:  # fmt: skip
    """Write the dot products of hidden vectors with their targets; half of the next targets come close meanwhile.

    The hidden vectors listed at `hidden`, as many as the tuple `batch` is long, all meet the targets listed at
    `shared`, as many as `tile` is long; those of a batch meet one each of the targets listed at `own`. Entries of the
    first list stand `apart` from each other, those of targets `stride`, and the next step's targets `ahead` bytes
    behind. `values` receives MAX_TARGETS floats for each hidden vector.
    """
    i = types.int64

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        hidden, apart, shared, own, ahead, stride, width, values = args[:8]
        xs = rows_at(builder, hidden, apart, len(batch))
        targets = targets_met(builder, shared, own, stride, len(batch), tile)
        nexts = rows_at(builder, builder.add(shared, ahead), stride, len(tile) if len(batch) > 1 else len(tile) // 2)
        slots: list[Any] = [None] * max(SLOTS, len(batch) * MAX_TARGETS)
        for _, place, met in targets:
            for c in met:
                slots[c * MAX_TARGETS + place] = cgutils.alloca_once_value(builder, simd.constant(0.0, LANES))
        with columns(builder, width) as k:
            v = [simd.load(builder, builder.gep(p, [k]), LANES) for p in xs]
            for row, place, met in targets:
                o = simd.load(builder, builder.gep(row, [k]), LANES)
                for c in met:
                    total = slots[c * MAX_TARGETS + place]
                    builder.store(simd.fma(builder, v[c], o, builder.load(total)), total)
            bring(builder, nexts, k)
        totals = [None if slot is None else builder.load(slot) for slot in slots]
        for s in range(0, len(slots), SLOTS):
            place = builder.gep(floats(builder, values), [_i64(s)])
            simd.store(builder, place, simd.sums(builder, totals[s : s + SLOTS]))
        return context.get_dummy_value()

    return types.void(i, i, i, i, i, i, i, i, batch, tile), codegen


@intrinsic
def _moves(
    typingctx: Any, hidden: Any, apart: Any, start: Any, step: Any, end: Any, shared: Any, own: Any, ahead: Any,
    stride: Any, width: Any, values: Any, batch: Any, tile: Any,
) -> Any:  # fmt: skip
    """Move targets along the gradient; write the moves of the hidden vectors to the rows at `end`.

    Arguments as in `dots_hidden`, of which this brings the other half of the next targets close; `values` holds what
    `gradients` wrote. The moves add to the rows at `start`, which stand `step` floats from each other.
    """
    i = types.int64

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        hidden, apart, start, step, end, shared, own, ahead, stride, width, values = args[:11]
        n = len(batch)
        xs, starts = rows_at(builder, hidden, apart, n), side_by_side(builder, start, step, n)
        ends = side_by_side(builder, end, width, n)
        targets = targets_met(builder, shared, own, stride, n, tile)
        if n > 1:
            nexts = rows_at(builder, builder.add(own, ahead), stride, n)
        else:
            nexts = rows_at(builder, builder.add(shared, ahead), stride, len(tile))[len(tile) // 2 :]
        data = floats(builder, values)
        g = {(c, t): splat_of(builder, data, c * MAX_TARGETS + t) for _, t, met in targets for c in met}
        with columns(builder, width) as k:
            v = [simd.load(builder, builder.gep(p, [k]), LANES) for p in xs]
            moved = [simd.load(builder, builder.gep(p, [k]), LANES) for p in starts]
            for row, t, met in targets:
                old = new = simd.load(builder, builder.gep(row, [k]), LANES)
                for c in met:  # before the target moves, so that its register can be reused
                    moved[c] = simd.fma(builder, g[c, t], old, moved[c])
                for c in met:
                    new = simd.fma(builder, g[c, t], v[c], new)
                simd.store(builder, builder.gep(row, [k]), new)
            for p, value in zip(ends, moved, strict=True):
                simd.store(builder, builder.gep(p, [k]), value)
            bring(builder, nexts, k)
        return context.get_dummy_value()

    return types.void(i, i, i, i, i, i, i, i, i, i, i, batch, tile), codegen


@inline
def train_hidden(
    place: Any, hidden: Any, apart: Any, moves: Any, shared: Any, own: Any, ahead: Any, groups: Any, stride: Any,
    width: Any, signs: Any, alpha: Any, batch: Any, tile: Any,
) -> None:  # fmt: skip
    """Train hidden vectors against groups of targets; the vectors stay, and their moves are written.

    Parameters
    ----------
    place
        `objectives.scratch.Place`.
    hidden, apart
        Address of the list of hidden rows, and the entries between one and the next.
    moves
        Address of the rows that receive the moves; a row of zeros stands behind them.
    shared, own, stride
        Addresses of the lists of the targets that all meet, group by group, and of those that one of a batch meets;
        and the entries between one target and the next.
    ahead
        Bytes from an entry to that of the next step, to be prefetched.
    groups, width
        Number of groups, and row length in floats.
    signs
        Address of the signs: one for each target, or MAX_TARGETS for each hidden vector of a batch, group by group.
    alpha
        Learning rate.
    batch, tile
        Tuples as long as there are hidden vectors, and targets in a group.
    """
    n, row = len(batch), 4 * width
    n_values = max(SLOTS, n * MAX_TARGETS)
    step = len(tile) * stride * 8
    for g in range(groups):
        values = place.values + g * n_values * 4
        dots_hidden(hidden, apart, shared + g * step, own, ahead, stride, width, values, batch, tile)
    for g in range(groups):
        values = place.values + g * n_values * 4
        if n == 1:
            gradients_one(values, SLOTS, signs + g * len(tile) * 4, alpha, place.mantissa, place.exponent, tile)
        else:
            for at in range(0, 4 * n_values, 4 * SLOTS):
                sign = signs + g * n_values * 4 + at
                gradients_each(values + at, SLOTS, sign, alpha, place.mantissa, place.exponent, tile)
    start, between = moves + n * row, 0
    for g in range(groups):
        values = place.values + g * n_values * 4
        these = shared + g * step
        _moves(hidden, apart, start, between, moves, these, own, ahead, stride, width, values, batch, tile)
        start, between = moves, width
