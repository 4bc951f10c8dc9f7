"""Rows as a warp reads them, computes gradients and updates them: contexts in its ring, targets in the table.

A row may stand in several places at a time, each a copy that does not know of the others: a word that stands twice in
reach, or in the rings of several warps. The hottest words would stand in most of them, and are never kept in a ring:
they are read from the table and added to it in each window. Nor is any where no ring fits into shared memory. Rows at
the top of a tree, targets of most windows, lie in shared memory too; what a warp changed of them is added every few
windows (Vuurens et al. 2016).

All warps that have a row in flight correct the same error, so that together they correct it many times. A row that more
than TOGETHER windows touch at a time takes steps so much shorter that all of them make a step as long as TOGETHER
would: its updates are multiplied before they are added. Without that skip-gram diverges from 2,112 warps on, and
hierarchical softmax, whose root is in all windows, from 1,056 (emulated at c3962d2 by `benchmarks.in_flight`).
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import cuda, float32, int32

from daskw2v.kernels.cuda import warp
from daskw2v.kernels.cuda.warp import at, device, floats_of, reading, writing
from daskw2v.objectives.cuda.shape import Aim, Shape, WarpTables

FLUSH = 8  # windows after which a warp adds what it changed of its top rows
TOGETHER = np.float32(4.0)  # windows that may update a row at a time in full
_ADDS_FOUR = (9, 0)  # compute capability from which on four floats are added in one instruction
_NONE, _ONE, _BOUND = np.float32(0.0), np.float32(1.0), np.float32(30.0)


@device
def gradient(dot: Any, sign: Any, alpha: Any) -> Any:
    """Return how far both rows of a dot product move along each other, and -log p; both are 0 where the sign is 0."""
    odds = float32(math.exp(-min(max(sign * dot, -_BOUND), _BOUND)))
    loss = float32(math.log(_ONE + odds)) if sign != _NONE else _NONE
    return alpha * sign * odds / (_ONE + odds), loss


@device
def of_warp(tables: Any, in_flight: Any) -> Any:
    """Return the `WarpTables` of one of `in_flight` warps."""
    return WarpTables(
        tables.source, tables.output, tables.hot_rows, tables.source_touched, tables.output_touched, float32(in_flight)
    )


class Context(NamedTuple):
    """The device functions for contexts' rows: read a row, add to a row, and let a row enter or leave the ring."""

    read: Callable[..., Any]
    add: Callable[..., Any]
    enter: Callable[..., Any]
    leave: Callable[..., Any]


def adder(width: int, at_once: bool) -> Callable[..., Any]:
    """Return the device function that adds a row to one of a table, atomically, shortened for `in_flight` windows."""
    add_to_table = writing(width, warp.add4_at_once if at_once else warp.add4)
    floats = floats_of(width)

    @device
    def add(table: Any, touched: Any, in_flight: Any, row: Any, lane: Any, rows: Any, t: Any) -> None:
        if row < touched.size:
            factor = TOGETHER / max(TOGETHER, in_flight * at(touched, row))
            for k in range(floats):
                rows[t, k] *= factor
        add_to_table(table, np.int64(row) * width, lane, rows, t)

    return add


def adds_four() -> bool:
    """Return whether this process's GPU adds four floats in one instruction."""
    capability: tuple[int, int] = cuda.get_current_device().compute_capability
    return capability >= _ADDS_FOUR


def _copier(shape: Shape, behind: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the device functions that copy a row of a table to shared memory, and add what changed of it to the table.

    A row stands at a place of shared memory as it is now, and `behind` floats after it as it was read.
    """
    width, floats = shape.width, shape.floats
    read_fresh, add_to_table = reading(width, warp.load4_fresh), adder(width, shape.at_once)
    read_shared, write_shared = reading(width, warp.load4_shared), writing(width, warp.store4_shared)

    @device
    def take(table: Any, row: Any, shared: Any, place: Any, lane: Any, rows: Any) -> None:
        read_fresh(table, np.int64(row) * width, lane, rows, 0)
        write_shared(shared, place * width, lane, rows, 0)
        write_shared(shared, behind + place * width, lane, rows, 0)

    @device
    def give(table: Any, touched: Any, in_flight: Any, row: Any, shared: Any, place: Any, lane: Any, rows: Any) -> None:
        read_shared(shared, place * width, lane, rows, 0)
        read_shared(shared, behind + place * width, lane, rows, 1)
        for k in range(floats):
            rows[1, k] = rows[0, k] - rows[1, k]
        add_to_table(table, touched, in_flight, row, lane, rows, 1)

    return take, give


def contexts(shape: Shape, slots: int) -> Context:
    """Return the device functions for contexts with a ring of `slots` rows."""
    width, floats, (take, give) = shape.width, shape.floats, _copier(shape, slots * shape.width)
    read_fresh, add_to_table = reading(width, warp.load4_fresh), adder(width, shape.at_once)
    read_ring, write_ring = reading(width, warp.load4_shared), writing(width, warp.store4_shared)

    @device
    def kept(tables: Any, word: Any) -> Any:
        return slots > 0 and word >= tables.hot_rows

    @device
    def read(tables: Any, scratch: Any, slot: Any, word: Any, lane: Any) -> None:
        if kept(tables, word):
            read_ring(scratch.ring, slot * width, lane, scratch.row, 0)
        else:
            read_fresh(tables.source, np.int64(word) * width, lane, scratch.row, 0)

    @device
    def add(tables: Any, scratch: Any, slot: Any, word: Any, lane: Any) -> None:
        """Add row 1 to the context; row 0 holds it."""
        if kept(tables, word):
            for k in range(floats):
                scratch.row[1, k] += scratch.row[0, k]
            write_ring(scratch.ring, slot * width, lane, scratch.row, 1)
        else:
            add_to_table(tables.source, tables.source_touched, tables.in_flight, word, lane, scratch.row, 1)

    @device
    def enter(tables: Any, scratch: Any, slot: Any, word: Any, lane: Any) -> None:
        if kept(tables, word):
            take(tables.source, word, scratch.ring, slot, lane, scratch.row)

    @device
    def leave(tables: Any, scratch: Any, slot: Any, word: Any, lane: Any) -> None:
        if kept(tables, word):
            touched, row = tables.source_touched, scratch.row
            give(tables.source, touched, tables.in_flight, word, scratch.ring, slot, lane, row)

    return Context(read, add, enter, leave)


class TargetAccess(NamedTuple):
    """The device functions for targets' rows: read a row, add to a row, copy the top rows, and add their changes."""

    read: Callable[..., Any]
    add: Callable[..., Any]
    take_top: Callable[..., Any]
    give_top: Callable[..., Any]


def targets(shape: Shape, aim: Aim) -> TargetAccess:
    """Return the device functions for targets."""
    width, floats, top, (take, give) = shape.width, shape.floats, aim.top, _copier(shape, aim.top * shape.width)
    read_fresh, add_to_table = reading(width, warp.load4_fresh), adder(width, shape.at_once)
    read_top, write_top = reading(width, warp.load4_shared), writing(width, warp.store4_shared)

    @device
    def read(tables: Any, scratch: Any, row: Any, lane: Any, rows: Any, t: Any) -> None:
        if row < top:
            read_top(scratch.top, row * width, lane, rows, t)
        else:
            read_fresh(tables.output, np.int64(row) * width, lane, rows, t)

    @device
    def add(tables: Any, scratch: Any, row: Any, lane: Any, rows: Any, t: Any) -> None:
        if row < top:
            read_top(scratch.top, row * width, lane, scratch.row, 0)
            for k in range(floats):
                rows[t, k] += scratch.row[0, k]
            write_top(scratch.top, row * width, lane, rows, t)
        else:
            add_to_table(tables.output, tables.output_touched, tables.in_flight, row, lane, rows, t)

    @device
    def top_rows(tables: Any) -> Any:
        return int32(min(top, tables.output.size // width)) if top > 0 else int32(0)

    @device
    def take_top(tables: Any, scratch: Any, lane: Any) -> None:
        for row in range(top_rows(tables)):
            take(tables.output, row, scratch.top, row, lane, scratch.row)

    @device
    def give_top(tables: Any, scratch: Any, lane: Any) -> None:
        in_flight = tables.in_flight * float32(FLUSH)  # windows whose updates come at a time
        for row in range(top_rows(tables)):
            give(tables.output, tables.output_touched, in_flight, row, scratch.top, row, lane, scratch.row)

    return TargetAccess(read, add, take_top, give_top)


def mover(shape: Shape) -> Callable[..., Any]:
    """Return the device function that moves a slot of the ring forward or back by up to `window` slots."""
    around = 2 * shape.window + 1

    @device
    def moved(slot: Any, by: Any) -> Any:
        there = int32(slot + by)
        return int32(there + around) if there < 0 else int32(there - around) if there >= around else there

    return moved
