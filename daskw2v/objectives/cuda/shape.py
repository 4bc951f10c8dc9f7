"""What kernels over pieces of text are compiled for, and what a warp works in."""

from collections.abc import Callable
from typing import Any, NamedTuple

from daskw2v.kernels.cuda.rows import chunks_of
from daskw2v.kernels.cuda.warp import FLOATS, SUMS

_SHARED = 48 << 10  # bytes of shared memory that a block may have
_TOP = 8 << 10  # bytes of it for top rows, at most
_REGISTERS = 48  # floats of targets that a lane keeps at once; it keeps their updates besides


class Shape(NamedTuple):
    """What a kernel is compiled for.

    Parameters
    ----------
    width
        Row length in floats, a multiple of 16.
    window
        Most words between center and context.
    at_once
        Whether the GPU adds four floats in one instruction.
    """

    width: int
    window: int
    at_once: bool

    @property
    def floats(self) -> int:
        """Floats of a row that a lane has."""
        return chunks_of(self.width) * FLOATS

    @property
    def group(self) -> int:
        """Most targets that a warp keeps in registers."""
        return min(SUMS, max(1, _REGISTERS // self.floats))

    @property
    def top(self) -> int:
        """Rows that fill levels of a tree from its root on, of which a warp has room for copies."""
        levels = (_TOP // (8 * self.width) + 1).bit_length() - 1
        return (1 << levels) - 1

    def slots(self, aim: "Aim") -> int:
        """Return the places of the ring; 0 where none fits into shared memory beside targets and top rows."""
        slots, needed = 2 * self.window + 1, 8 * aim.listed + 8 * SUMS + 8 * max(2, aim.top * self.width)
        return slots if 8 * slots * self.width + needed <= _SHARED else 0


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
        center, or of its context `number`, and what fills the last group, with sign 0. `aim` is what the kernel is
        given, first..last-1 the range of centers.
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


class WarpTables(NamedTuple):
    """What a kernel trains.

    Parameters
    ----------
    source, output, hot_rows, source_touched, output_touched
        As in `objectives.base.DeviceTables`.
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
    """What a warp works in.

    Parameters
    ----------
    ring
        Shared: the rows of all places now, and behind them as they were read.
    top
        Shared: the same of the top rows.
    listed, signs, gains
        Shared: the window's targets and their signs, and gains of a group, twice.
    near, updates, row, hidden, dots
        Of each lane: targets of a group and their updates; a context and its update; the same of a hidden vector; sums.
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
