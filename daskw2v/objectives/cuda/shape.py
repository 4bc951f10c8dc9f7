"""The sizes that kernels over pieces of text are compiled for, and the tables and working memory of a warp.

A ring pays if at least four warps of a multiprocessor have one each: it saves reading and adding rows for each window,
but leaves room for few warps.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from daskw2v.kernels.cuda.warp import SUMS, floats_of
from daskw2v.objectives.base import DeviceTables

_MIN_WARPS = 4  # of a multiprocessor, with a ring each
_TOP = 8 << 10  # largest number of bytes of shared memory for top rows
_GRANULE = 256  # largest unit, in bytes, of the shared memory of blocks
_REGISTERS = 48  # floats of targets that a lane keeps at a time, besides their updates


class Shape(NamedTuple):
    """The sizes that a kernel is compiled for.

    Parameters
    ----------
    width
        Row length in floats, a multiple of 16.
    window
        Largest number of words between center and context.
    adds_four
        Whether the GPU adds four floats in one instruction.
    shared
        Bytes of shared memory that a warp may have.
    """

    width: int
    window: int
    adds_four: bool
    shared: int

    @property
    def floats(self) -> int:
        """Number of floats that each lane has of a row."""
        return floats_of(self.width)

    @property
    def group(self) -> int:
        """Largest number of targets that a warp keeps in registers."""
        return min(SUMS, max(1, _REGISTERS // self.floats))

    @property
    def top(self) -> int:
        """Number of rows of the complete levels at the top of a tree that a warp can copy to shared memory."""
        levels = (_TOP // (8 * self.width) + 1).bit_length() - 1
        return (1 << levels) - 1

    def slots(self, aim: "Aim") -> int:
        """Return the number of slots of a ring; 0 if none fits into shared memory beside targets and top rows."""
        slots, needed = 2 * self.window + 1, 8 * aim.listed + 8 * SUMS + 8 * max(2, aim.top * self.width)
        return slots if self.ring_bytes(slots) + needed <= self.shared else 0

    def ring_bytes(self, slots: int) -> int:
        """Return the bytes of a ring of `slots` slots: the row of each now, and as it was read."""
        return 8 * slots * self.width


def shared_bytes_of_warp(multiprocessor: int, reserved: int) -> int:
    """Return the bytes of shared memory of a warp, from a multiprocessor's bytes and the bytes reserved for a block."""
    return (multiprocessor // _MIN_WARPS - reserved) // _GRANULE * _GRANULE


class Aim(NamedTuple):
    """The targets of a window, as a kernel is compiled for them.

    Parameters
    ----------
    listed
        Largest number of targets of a window, or of a context if each has its own, padded to groups.
    size
        Targets of a group.
    write
        Device function (aim, text, center, first, last, number, lane, listed, signs) -> n that lists the n targets of a
        center, or of its context `number`, from 0, and pads the last group with sign 0. `aim` is the argument of the
        kernel, `text` a `Segment`, first..last-1 the range of centers. `listed` gets rows of the output table.
    per_context
        Whether each context has its own targets.
    top
        Number of first rows of the output table that each warp copies: they are targets of many windows.
    """

    listed: int
    size: int
    write: Callable[..., Any]
    per_context: bool = False
    top: int = 0


class KernelTables(NamedTuple):
    """The tables that a kernel trains, from `objectives.base.DeviceTables`; `hot_rows` is an int32."""

    source: Any
    output: Any
    hot_rows: Any
    source_touched: Any
    output_touched: Any


def kernel_tables(tables: DeviceTables) -> KernelTables:
    """Return `DeviceTables` as `KernelTables`."""
    touched = tables.source_touched, tables.output_touched
    return KernelTables(tables.source, tables.output, np.int32(tables.hot_rows), *touched)


class WarpTables(NamedTuple):
    """The tables that a warp trains.

    Parameters
    ----------
    source, output, hot_rows, source_touched, output_touched
        As in `KernelTables`.
    in_flight
        Warps that train at the same time, float32.
    """

    source: Any
    output: Any
    hot_rows: Any
    source_touched: Any
    output_touched: Any
    in_flight: Any


class WarpScratch(NamedTuple):
    """The working memory of a warp.

    Parameters
    ----------
    ring
        Shared: the rows of all slots now, and behind them as they were read.
    top
        Shared: the top rows now, and behind them as they were read.
    listed, signs, gains
        Shared: the window's targets, as rows of the output table, and their signs; and gains of a group, twice.
    near, updates, row, hidden, dots
        Of each lane: targets of a group and their updates; a context, or a hidden vector, and its update; sums.
    """

    ring: Any
    top: Any
    listed: Any
    signs: Any
    gains: Any
    near: Any
    updates: Any
    row: Any
    hidden: Any
    dots: Any
