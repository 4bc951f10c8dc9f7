"""Rows as a warp reads them, computes gradients and updates them: contexts in its ring, targets in the table.

A row may have several independent copies at a time: of a word that is twice in reach, or in the rings of several warps.
The hottest words would be in most rings, and are never kept in one: they are read from the table and added to it in
each window. So are all words if no ring fits into shared memory. Rows at the top of a tree, targets of most windows,
are in shared memory too; their changes by a warp are added every few windows (Vuurens et al. 2016).

All warps that have a row in flight correct the same error, so that together they correct it many times. A row that more
than TOGETHER windows touch at a time takes steps so much shorter that all of them make a step as long as TOGETHER
would: its updates are damped, multiplied by a factor before they are added. Without damping, training with thousands
of warps diverges.

`scratch` is a `WarpScratch`, `tables` are `WarpTables`.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import cuda, float32, int32

from daskw2v.kernels.cuda import warp
from daskw2v.kernels.cuda.warp import at, device, floats_of, reading, writing
from daskw2v.objectives.cuda.shape import Aim, Shape, WarpTables

FLUSH = 8  # windows between two additions of a warp's changes of its top rows
TOGETHER = np.float32(4.0)  # windows that may update a row at a time in full
_ADDS_FOUR = (9, 0)  # compute capability that adds four floats in one instruction
_NONE, _ONE, _BOUND = np.float32(0.0), np.float32(1.0), np.float32(30.0)


@device
def gradient(dot: Any, sign: Any, alpha: Any) -> Any:
    """Return alpha * s * (1 - p) of a dot product, with p = sigmoid(s * dot), and its loss -log p; 0 if s is 0."""
    odds = float32(math.exp(-min(max(sign * dot, -_BOUND), _BOUND)))
    loss = float32(math.log(_ONE + odds)) if sign != _NONE else _NONE
    return alpha * sign * odds / (_ONE + odds), loss


@device
def make_warp_tables(tables: Any, in_flight: Any) -> Any:
    """Return the `WarpTables` of one of `in_flight` warps that train at the same time, from `KernelTables`."""
    return WarpTables(
        tables.source, tables.output, tables.hot_rows, tables.source_touched, tables.output_touched, float32(in_flight)
    )


class ContextAccess(NamedTuple):
    """The device functions for rows of contexts: read a row, add to it, and let it enter or leave the ring."""

    read: Callable[..., Any]
    add: Callable[..., Any]
    enter: Callable[..., Any]
    leave: Callable[..., Any]


def make_adder(width: int, adds_four: bool) -> Callable[..., Any]:
    """Return the device function that adds a row to a row of a table atomically, damped for `in_flight` windows.

    `adds_four` is the result of `gpu_adds_four`.
    """
    add_to_table = writing(width, warp.add4_at_once if adds_four else warp.add4)
    floats = floats_of(width)

    @device
    def add(table: Any, touched: Any, in_flight: Any, row: Any, lane: Any, rows: Any, t: Any) -> None:
        """Add rows[t], multiplied in place by the factor for row `row`, to this row of the table.

        `touched` has the chance that a window touches each of the first rows; others are not damped.
        """
        if row < touched.size:
            factor = TOGETHER / max(TOGETHER, in_flight * at(touched, row))
            for k in range(floats):
                rows[t, k] *= factor
        add_to_table(table, np.int64(row) * width, lane, rows, t)

    return add


def gpu_adds_four() -> bool:
    """Return whether the GPU of this process adds four floats in one instruction."""
    capability: tuple[int, int] = cuda.get_current_device().compute_capability
    return capability >= _ADDS_FOUR


def _make_copier(shape: Shape, offset: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the device functions `fetch`, which copies a row of a table to shared memory, and `flush`.

    `flush` adds the changes of the copy to the table. The copy at an index of shared memory is the row now; `offset`
    floats behind it is the row as it was read.
    """
    width, floats = shape.width, shape.floats
    read_fresh, add_to_table = reading(width, warp.load4_fresh), make_adder(width, shape.adds_four)
    read_shared, write_shared = reading(width, warp.load4_shared), writing(width, warp.store4_shared)

    @device
    def fetch(table: Any, row: Any, shared: Any, index: Any, lane: Any, rows: Any) -> None:
        """Copy a row of a table to index `index` of shared memory, twice; row 0 of `rows` is overwritten."""
        read_fresh(table, np.int64(row) * width, lane, rows, 0)
        write_shared(shared, index * width, lane, rows, 0)
        write_shared(shared, offset + index * width, lane, rows, 0)

    @device
    def flush(
        table: Any, touched: Any, in_flight: Any, row: Any, shared: Any, index: Any, lane: Any, rows: Any
    ) -> None:
        """Add the changes of the row at index `index` of shared memory to the row of a table; overwrite `rows`."""
        read_shared(shared, index * width, lane, rows, 0)
        read_shared(shared, offset + index * width, lane, rows, 1)
        for k in range(floats):
            rows[1, k] = rows[0, k] - rows[1, k]
        add_to_table(table, touched, in_flight, row, lane, rows, 1)

    return fetch, flush


def make_context_access(shape: Shape, slots: int) -> ContextAccess:
    """Return the device functions for rows of contexts, with a ring of `slots` rows; 0 for no ring."""
    width, floats, (fetch, flush) = shape.width, shape.floats, _make_copier(shape, slots * shape.width)
    read_fresh, add_to_table = reading(width, warp.load4_fresh), make_adder(width, shape.adds_four)
    read_ring, write_ring = reading(width, warp.load4_shared), writing(width, warp.store4_shared)

    @device
    def is_kept(tables: Any, word: Any) -> Any:
        """Return whether the contexts of a word have rows in the ring."""
        return slots > 0 and word >= tables.hot_rows

    @device
    def read(tables: Any, scratch: Any, slot: Any, word: Any, lane: Any) -> None:
        """Read the row of a context to row 0 of the scratch, from the ring or from the table."""
        if is_kept(tables, word):
            read_ring(scratch.ring, slot * width, lane, scratch.row, 0)
        else:
            read_fresh(tables.source, np.int64(word) * width, lane, scratch.row, 0)

    @device
    def add(tables: Any, scratch: Any, slot: Any, word: Any, lane: Any) -> None:
        """Add row 1 of the scratch, which is overwritten, to the context, whose value `read` wrote to row 0."""
        if is_kept(tables, word):
            for k in range(floats):
                scratch.row[1, k] += scratch.row[0, k]
            write_ring(scratch.ring, slot * width, lane, scratch.row, 1)
        else:
            add_to_table(tables.source, tables.source_touched, tables.in_flight, word, lane, scratch.row, 1)

    @device
    def enter(tables: Any, scratch: Any, slot: Any, word: Any, lane: Any) -> None:
        """Copy the row of a word to a slot of the ring, if it is kept there."""
        if is_kept(tables, word):
            fetch(tables.source, word, scratch.ring, slot, lane, scratch.row)

    @device
    def leave(tables: Any, scratch: Any, slot: Any, word: Any, lane: Any) -> None:
        """Add the changes of the row in a slot of the ring to the table, if it is kept there."""
        if is_kept(tables, word):
            touched, row = tables.source_touched, scratch.row
            flush(tables.source, touched, tables.in_flight, word, scratch.ring, slot, lane, row)

    return ContextAccess(read, add, enter, leave)


class TargetAccess(NamedTuple):
    """The device functions for rows of targets: read a row, add to it, copy the top rows, and add their changes."""

    read: Callable[..., Any]
    add: Callable[..., Any]
    fetch_top: Callable[..., Any]
    flush_top: Callable[..., Any]


def make_target_access(shape: Shape, aim: Aim) -> TargetAccess:
    """Return the device functions for rows of targets, of which the first `aim.top` are copied to shared memory."""
    width, floats, top, (fetch, flush) = shape.width, shape.floats, aim.top, _make_copier(shape, aim.top * shape.width)
    read_fresh, add_to_table = reading(width, warp.load4_fresh), make_adder(width, shape.adds_four)
    read_top, write_top = reading(width, warp.load4_shared), writing(width, warp.store4_shared)

    @device
    def read(tables: Any, scratch: Any, row: Any, lane: Any, rows: Any, t: Any) -> None:
        """Read row `row` of the output table to rows[t], from its copy if it is a top row."""
        if row < top:
            read_top(scratch.top, row * width, lane, rows, t)
        else:
            read_fresh(tables.output, np.int64(row) * width, lane, rows, t)

    @device
    def add(tables: Any, scratch: Any, row: Any, lane: Any, rows: Any, t: Any) -> None:
        """Add rows[t], which is overwritten, to row `row` of the output table, or to its copy if it is a top row."""
        if row < top:
            read_top(scratch.top, row * width, lane, scratch.row, 0)
            for k in range(floats):
                rows[t, k] += scratch.row[0, k]
            write_top(scratch.top, row * width, lane, rows, t)
        else:
            add_to_table(tables.output, tables.output_touched, tables.in_flight, row, lane, rows, t)

    @device
    def top_rows(tables: Any) -> Any:
        """Return the number of top rows of the output table."""
        return int32(min(top, tables.output.size // width)) if top > 0 else int32(0)

    @device
    def fetch_top(tables: Any, scratch: Any, lane: Any) -> None:
        """Copy the top rows of the output table to shared memory."""
        for row in range(top_rows(tables)):
            fetch(tables.output, row, scratch.top, row, lane, scratch.row)

    @device
    def flush_top(tables: Any, scratch: Any, lane: Any) -> None:
        """Add the changes of the top rows in shared memory to the output table."""
        in_flight = tables.in_flight * float32(FLUSH)  # windows whose updates are added at a time
        for row in range(top_rows(tables)):
            flush(tables.output, tables.output_touched, in_flight, row, scratch.top, row, lane, scratch.row)

    return TargetAccess(read, add, fetch_top, flush_top)


def make_mover(shape: Shape) -> Callable[..., Any]:
    """Return the device function from a slot of the ring and a distance, -window..window, to another slot."""
    n_slots = 2 * shape.window + 1

    @device
    def moved(slot: Any, distance: Any) -> Any:
        """Return the slot at a distance from a slot, around the ring."""
        target = int32(slot + distance)
        return int32(target + n_slots) if target < 0 else int32(target - n_slots) if target >= n_slots else target

    return moved
