"""CBOW on the CPU: hidden vectors, the mean or the sum of a window's contexts, and the update of the contexts.

Hidden vectors are trained one at a time, or in a batch that shares its negatives. A batch reads and writes a target row
once, and CBOW spends most of its time on the rows of targets. The updates of a batch are adjacent, and a row of
zeros follows them.

A hidden vector stays as it is until all of its targets are updated, as in word2vec.c.

The values of a vector are its dot products with the targets of a group, later the gradients. In a batch, the last value
is for the vector's own target, which no other vector meets. Rows, and lists of rows, are passed by address; a list has
the rows' addresses, int64.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types

from daskw2v.kernels import simd
from daskw2v.kernels.jit import emitting, inline
from daskw2v.kernels.simd import LANES, SLOTS
from daskw2v.objectives.cpu import steps
from daskw2v.objectives.cpu.centers import CenterTrainer, Targets, make_center_trainer
from daskw2v.objectives.cpu.steps import MAX_TARGETS, gradients_each, gradients_one, over_columns, row_pointers

OWN = MAX_TARGETS - 1  # index of the own target among the values of a hidden vector of a batch
EACH = (0,) * MAX_TARGETS  # as long as a hidden vector has values
_MAX_ROWS = 10  # contexts that one pass over the columns takes: as many as the usual window has

_i64, _number = ir.IntType(64), types.int64


def _make_intrinsic(emit: Callable[[Any, list[Any], Any, Any, Any, Any], None]) -> Any:
    """Return an intrinsic (rows, n, width, share, start, end) for n listed rows, 1 to _MAX_ROWS, built from `emit`."""

    @emitting(types.void, _number, _number, _number, types.float32, _number, _number)
    def by_number(builder: Any, rows: Any, n: Any, width: Any, share: Any, start: Any, end: Any) -> None:
        share = simd.splat(builder, share, LANES)
        start, end = (steps.float_pointer(builder, row) for row in (start, end))
        end_block = builder.append_basic_block("done")
        cases = builder.switch(n, end_block)
        for number in range(1, _MAX_ROWS + 1):
            block = builder.append_basic_block(f"of{number}")
            cases.add_case(_i64(number), block)
            with builder.goto_block(block):
                emit(builder, row_pointers(builder, rows, _i64(1), number), width, share, start, end)
                builder.branch(end_block)
        builder.position_at_end(end_block)

    return by_number


def _emit_sum(builder: Any, rows: list[Any], width: Any, share: Any, start: Any, end: Any) -> None:
    """Emit: the row at `end` is the row at `start`, plus a share of the sum of rows."""
    with over_columns(builder, width) as k:
        total = steps.load(builder, rows[0], k)
        for row in rows[1:]:
            total = builder.fadd(total, steps.load(builder, row, k))
        steps.store(builder, end, k, simd.fma(builder, share, total, steps.load(builder, start, k)))


def _emit_add(builder: Any, rows: list[Any], width: Any, share: Any, start: Any, _: Any) -> None:
    """Emit: a share of the row at `start` is added to each of the rows."""
    with over_columns(builder, width) as k:
        update = steps.load(builder, start, k)
        for row in rows:
            steps.store(builder, row, k, simd.fma(builder, share, update, steps.load(builder, row, k)))


_sum_rows, _add_to_rows = _make_intrinsic(_emit_sum), _make_intrinsic(_emit_add)


@inline
def gather(contexts: Any, n: Any, width: Any, mean: Any, hidden: Any, zeros: Any) -> None:
    """Set the row at `hidden` to the mean, or the sum, of n listed rows, n >= 1; at `zeros` is a row of zeros."""
    share = np.float32(1.0 / n if mean else 1.0)
    _sum_rows(contexts, min(n, _MAX_ROWS), width, share, zeros, hidden)
    for i in range(_MAX_ROWS, n, _MAX_ROWS):
        _sum_rows(contexts + 8 * i, min(n - i, _MAX_ROWS), width, share, hidden, hidden)


@inline
def sum_scaled(rows: Any, n: Any, width: Any, share: Any, total: Any) -> None:
    """Add a share of the sum of n rows, whose addresses are listed at `rows`, to the row at `total`."""
    for i in range(0, n, _MAX_ROWS):
        _sum_rows(rows + 8 * i, min(n - i, _MAX_ROWS), width, share, total, total)


@inline
def add_scaled(rows: Any, n: Any, width: Any, share: Any, row: Any) -> None:
    """Add a share of a row to each of n rows, whose addresses are listed at `rows`."""
    for i in range(0, n, _MAX_ROWS):
        _add_to_rows(rows + 8 * i, min(n - i, _MAX_ROWS), width, share, row, row)


@inline
def scatter(contexts: Any, n: Any, width: Any, mean: Any, update: Any) -> None:
    """Add a hidden vector's update to each of n listed contexts.

    As in word2vec.c and gensim, each context of a mean takes all of the update, each context of a sum a share of it.
    """
    add_scaled(contexts, n, width, np.float32(1.0 if mean else 1.0 / n), update)


def _adjacent_rows(builder: Any, base: Any, apart: Any, n: int) -> list[Any]:
    """Return pointers to n rows, the first at `base`, with `apart` floats from the begin of a row to the next."""
    return [builder.gep(steps.float_pointer(builder, base), [builder.mul(apart, _i64(c))]) for c in range(n)]


class Registers(NamedTuple):
    """Sizes of a step of `train_rows`, as lengths of tuples: being part of a type, they let loops unroll.

    Parameters
    ----------
    batch
        One element per row of a batch.
    tile
        One element per target of a group; all rows meet these targets.
    each
        One element per value of a row: first the values for the group's targets, last the value for its own target.
    """

    batch: tuple[int, ...]
    tile: tuple[int, ...]
    each: tuple[int, ...]


def make_registers(batch: int, size: int) -> Registers:
    """Return the `Registers` of batches of `batch` rows against groups of `size` targets.

    A row has an even number of values, so that the values of eight rows fill a multiple of SLOTS.
    """
    return Registers((0,) * batch, (0,) * size, (0,) * (size + 2 - size % 2))


def _list_targets(
    builder: Any, shared: Any, own: Any, stride: Any, n: int, tile: Any, each: int = MAX_TARGETS
) -> steps.MetTargets:
    """Return the targets that all n vectors meet, then for n > 1 the own target of each vector."""
    own_rows = row_pointers(builder, own, stride, n) if n > 1 else []
    shared_targets = steps.list_shared_targets(builder, shared, stride, len(tile.type), n)
    return shared_targets + [(row, each - 1, [c]) for c, row in enumerate(own_rows)]


@emitting(types.void, *[_number] * 8, None, None, None)
def dots_hidden(
    builder: Any, hidden: Any, apart: Any, shared: Any, own: Any, ahead: Any, stride: Any, width: Any, values: Any,
    batch: Any, tile: Any, each: Any,
) -> None:  # fmt: skip
    """Write the dot products of hidden vectors with their targets; meanwhile prefetch targets of the next step.

    The hidden vectors listed at `hidden`, as many as the tuple `batch` is long, all meet the targets listed at
    `shared`, as many as `tile` is long; several vectors also meet one each of the targets listed at `own`.
    Entries of the first list are `apart` from each other, entries of targets `stride`, and the next step's targets
    `ahead` bytes behind: the shared ones are prefetched, or half of them for one vector. `values` receives as many
    floats for each hidden vector as the tuple `each` is long.
    """
    n, size = len(batch.type), len(tile.type)
    met = _list_targets(builder, shared, own, stride, n, tile, len(each.type))
    nexts = row_pointers(builder, builder.add(shared, ahead), stride, size if n > 1 else size // 2)
    vectors = row_pointers(builder, hidden, apart, n)
    steps.emit_dots(builder, vectors, met, nexts, width, values, len(each.type))


@emitting(types.void, *[_number] * 11, None, None)
def _updates(
    builder: Any, hidden: Any, apart: Any, start: Any, step: Any, end: Any, shared: Any, own: Any, ahead: Any,
    stride: Any, width: Any, values: Any, batch: Any, tile: Any,
) -> None:  # fmt: skip
    """Move targets along the gradient; write the updates of the hidden vectors to the rows at `end`.

    Arguments are as in `dots_hidden`; this prefetches the other targets of the next step. `values` holds the results of
    `gradients_each`, or `gradients_one` for one vector. The updates add to the rows at `start`, which are `step` floats
    from each other; the rows at `end` are adjacent.
    """
    n, size = len(batch.type), len(tile.type)
    if n > 1:
        nexts = row_pointers(builder, builder.add(own, ahead), stride, n)
    else:
        nexts = row_pointers(builder, builder.add(shared, ahead), stride, size)[size // 2 :]
    vectors, met = row_pointers(builder, hidden, apart, n), _list_targets(builder, shared, own, stride, n, tile)
    starts, ends = _adjacent_rows(builder, start, step, n), _adjacent_rows(builder, end, width, n)
    steps.emit_updates(builder, vectors, starts, ends, met, nexts, width, values, MAX_TARGETS)


@emitting(types.void, *[_number] * 7, None, None, None)
def _updates_in_place(
    builder: Any, vectors: Any, shared: Any, own: Any, ahead: Any, stride: Any, width: Any, values: Any, batch: Any,
    tile: Any, each: Any,
) -> None:  # fmt: skip
    """Move targets, and the vectors listed at `vectors`, along the gradient; a row that is listed twice moves twice.

    Arguments are as in `dots_hidden`, with entries of all lists `stride` from each other; `values` holds the results of
    `gradients_each`. The vectors listed `ahead` bytes behind, and their own targets, are prefetched meanwhile.
    """
    n, rows = len(batch.type), row_pointers(builder, vectors, stride, len(batch.type))
    met = _list_targets(builder, shared, own, stride, n, tile, len(each.type))
    nexts = [row for listed in (own, vectors) for row in row_pointers(builder, builder.add(listed, ahead), stride, n)]
    steps.emit_updates(builder, rows, [], rows, met, nexts, width, values, len(each.type))


@emitting(types.void, *[_number] * 9, None, None)
def move_vectors(
    builder: Any, start: Any, apart: Any, end: Any, shared: Any, own: Any, ahead: Any, stride: Any, width: Any,
    values: Any, batch: Any, tile: Any,
) -> None:  # fmt: skip
    """Write the vectors at `start`, moved along the gradient, to the rows at `end`; targets do not move.

    As many rows as the tuple `batch` is long are `width` floats from each other at `end`, `apart` at `start`. Other
    arguments are as in `dots_hidden`: `values` holds the results of `gradients_each`, and the rows of the next step's
    own targets, `ahead` bytes behind in the list, are prefetched.
    """
    n = len(batch.type)
    starts, ends = _adjacent_rows(builder, start, apart, n), _adjacent_rows(builder, end, width, n)
    met = _list_targets(builder, shared, own, stride, n, tile)
    nexts = row_pointers(builder, builder.add(own, ahead), stride, n)
    steps.emit_updates(builder, [], starts, ends, met, nexts, width, values, MAX_TARGETS)


@inline
def train_rows(
    scratch: Any, vectors: Any, targets: Any, own: Any, width: Any, alpha: Any, n: Any, registers: Any
) -> None:
    """Train n rows in place against groups of targets that all rows meet, and against one target each.

    Groups are trained one after another. Within a group, all dot products are computed before any
    row is updated: a processor works on the sums and sigmoids of several batches at the same time.

    Parameters
    ----------
    scratch
        `objectives.cpu.scratch.ScratchAddresses`.
    vectors, own
        Addresses of the lists of the rows, and of their own targets; with the stride of the shared targets.
    n
        Number of rows, a multiple of the batch.
    targets, width, alpha
        As in `train_hidden`.
    registers
        `Registers`; the number of values of n rows is a multiple of SLOTS.
    """
    values, stride, ahead = scratch.values, targets.stride, targets.ahead
    batch, tile, each = registers
    n_values, step = n * len(each), 8 * stride
    for g in range(targets.groups):
        shared = targets.rows + g * len(tile) * step
        for i in range(0, n, len(batch)):
            products, rows, own_rows = values + 4 * i * len(each), vectors + i * step, own + i * step
            dots_hidden(rows, stride, shared, own_rows, ahead, stride, width, products, batch, tile, each)
        signs = targets.signs + 4 * g * n_values
        gradients_each(values, n_values, signs, alpha, scratch.mantissa, scratch.exponent, tile)
        for i in range(0, n, len(batch)):
            products, rows, own_rows = values + 4 * i * len(each), vectors + i * step, own + i * step
            _updates_in_place(rows, shared, own_rows, ahead, stride, width, products, batch, tile, each)


@inline
def train_hidden(
    scratch: Any, hidden: Any, apart: Any, updates: Any, targets: Any, own: Any, width: Any, alpha: Any, batch: Any,
    tile: Any,
) -> None:  # fmt: skip
    """Train targets in groups against hidden vectors, which do not change; write the vectors' updates.

    Parameters
    ----------
    scratch
        `objectives.cpu.scratch.ScratchAddresses`.
    hidden, apart
        Address of the list of hidden rows, and the entries from one row to the next.
    updates
        Address of the adjacent rows that receive the updates; a row of zeros follows them.
    targets
        `objectives.cpu.centers.WindowTargets`, which all hidden vectors meet.
    own
        Address of the list of the vectors' own targets, with the stride of the shared targets; not read for one vector.
    width, alpha
        Row length in floats, and the learning rate.
    batch, tile
        Tuples as long as there are hidden vectors, and targets in a group.
    """
    n, row, ahead, stride = len(batch), 4 * width, targets.ahead, targets.stride
    n_values = max(SLOTS, n * MAX_TARGETS)
    step = len(tile) * stride * 8
    for g in range(targets.groups):
        values, shared = scratch.values + g * n_values * 4, targets.rows + g * step
        dots_hidden(hidden, apart, shared, own, ahead, stride, width, values, batch, tile, EACH)
    for g in range(targets.groups):
        values = scratch.values + g * n_values * 4
        if n == 1:
            signs = targets.signs + g * len(tile) * 4
            gradients_one(values, SLOTS, signs, alpha, scratch.mantissa, scratch.exponent, tile)
        else:
            signs = targets.signs + g * n_values * 4
            gradients_each(values, n_values, signs, alpha, scratch.mantissa, scratch.exponent, tile)
    start, between = updates + n * row, 0
    for g in range(targets.groups):
        values, shared = scratch.values + g * n_values * 4, targets.rows + g * step
        _updates(hidden, apart, start, between, updates, shared, own, ahead, stride, width, values, batch, tile)
        start, between = updates, width


@cache
def cbow(targets: Targets, mean: bool) -> CenterTrainer:
    """Return a CBOW trainer, as `make_center_trainer` does; its examples are windows with a context.

    `mean` is `cbow_mean` of Params.
    """

    @inline
    def train_window(scratch: Any, contexts: Any, n: Any, targets: Any, width: Any, alpha: Any, tile: Any) -> Any:
        update, zeros = scratch.zeros - 4 * width, scratch.zeros
        if n > 0:
            gather(contexts, n, width, mean, scratch.hidden, zeros)
            train_hidden(scratch, scratch.vectors, 1, update, targets, targets.rows, width, alpha, (0,), tile)
            scatter(contexts, n, width, mean, update)
        return min(n, 1)

    return make_center_trainer(targets, train_window)
