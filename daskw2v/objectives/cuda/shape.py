"""The sizes that kernels over pieces of text are compiled for, and the tables and working memory of a warp.

A ring pays if at least four warps of a multiprocessor have one each. For rows of 300 and windows of up to ten words, a
word has eleven contexts and six targets: without a ring 34 rows are read or added, with one 14. With 5.5 TB/s from L2
(assumed) an H200's multiprocessor gets 24 bytes a cycle: 1,740 cycles a word, or 720. But a ring leaves room for few
warps, and one of them takes 420 cycles a context and about 600 a window: 1,300 cycles a word with four warps, and 1,740
with three, which is as much as without a ring.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from daskw2v.kernels.cuda.warp import SUMS, floats_of
from daskw2v.objectives.base import DeviceTables

_FEWEST = 4  # warps of a multiprocessor, with a ring each
_TOP = 8 << 10  # bytes of shared memory for top rows, at most
_GRANULE = 256  # unit in bytes of the shared memory of blocks, at most
_REGISTERS = 48  # floats of targets that a lane keeps at once; it keeps their updates besides


class Shape(NamedTuple):
    """The sizes that a kernel is compiled for.

    Parameters
    ----------
    width
        Row length in floats, a multiple of 16.
    window
        Most words between center and context.
    at_once
        Whether the GPU adds four floats in one instruction.
    shared
        Bytes of shared memory that a warp may have.
    """

    width: int
    window: int
    at_once: bool
    shared: int

    @property
    def floats(self) -> int:
        """Floats of a row that a lane has."""
        return floats_of(self.width)

    @property
    def group(self) -> int:
        """Most targets that a warp keeps in registers."""
        return min(SUMS, max(1, _REGISTERS // self.floats))

    @property
    def top(self) -> int:
        """Number of rows that fill levels of a tree from its root on and that a warp can copy."""
        levels = (_TOP // (8 * self.width) + 1).bit_length() - 1
        return (1 << levels) - 1

    def slots(self, aim: "Aim") -> int:
        """Return the slots of the ring; 0 if no ring fits into shared memory beside targets and top rows."""
        slots, needed = 2 * self.window + 1, 8 * aim.listed + 8 * SUMS + 8 * max(2, aim.top * self.width)
        return slots if self.ring_bytes(slots) + needed <= self.shared else 0

    def ring_bytes(self, slots: int) -> int:
        """Return the bytes of a ring: for each slot the row now, and as it was read."""
        return 8 * slots * self.width


def share_of_warp(multiprocessor: int, reserved: int) -> int:
    """Return the bytes of a multiprocessor's shared memory that a warp may have; each block loses `reserved` bytes."""
    return (multiprocessor // _FEWEST - reserved) // _GRANULE * _GRANULE


class Aim(NamedTuple):
    """The targets of a window, as a kernel is compiled for them.

    Parameters
    ----------
    listed
        Most targets of a window, and what fills the last group.
    size
        Targets of a group.
    write
        Device function (aim, text, center, first, last, number, lane, listed, signs) -> n that lists the targets of a
        center, or of its context `number`, and what fills the last group, with sign 0. `aim` is the argument of the
        kernel, first..last-1 the range of centers.
    each
        Whether each context has targets of its own.
    top
        The first rows of the output table, of which each warp has a copy: they are targets of many windows.
    """

    listed: int
    size: int
    write: Callable[..., Any]
    each: bool = False
    top: int = 0


class KernelTables(NamedTuple):
    """The tables that a kernel trains, from `objectives.base.DeviceTables`; `hot_rows` is an int32."""

    source: Any
    output: Any
    hot_rows: Any
    source_touched: Any
    output_touched: Any


def kernel_tables(tables: DeviceTables) -> KernelTables:
    """Return the `KernelTables` of the tables."""
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
        Shared: the window's targets and their signs, and gains of a group, twice.
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
