"""A warp for each piece of text, on an NVIDIA GPU: what all objectives that go over centers share.

A range of centers is cut into as many pieces as there are warps, of equal length, whatever sentences they lie in.
Windows of a piece go in order, and see as much text around it as any others: a piece is no border. Pieces are long:
what stands close together has rare words in common, and should not be in flight at the same time. The contexts that
are in reach of a warp lie in its ring in shared memory (Randall et al. 2021, FULL-W2V, section 3.2): a row is read
once when its place comes into reach, and what was added to it is added to the table when it falls out. Rows of the
output table are read for each window, and what they move by is added to the table at once. Additions are atomic.

So a row may stand in several places at a time, each a copy that does not know of the others: a word that stands twice
in reach, or in the rings of several warps. The hottest words would stand in most of them, and are never kept in a ring:
they are read from the table and added to it in each window. Nor is any where no ring fits into shared memory. Rows at
the top of a tree, targets of most windows, lie in shared memory too; what a warp changed of them is added every few
windows (Vuurens et al. 2016).

All warps that have a row in flight correct the same error, so that together they correct it many times. A row that more
than TOGETHER windows touch at a time takes steps so much shorter that all of them make a step as long as TOGETHER
would: its moves are multiplied before they are added. Without that skip-gram diverges from 2,000 warps on, and
hierarchical softmax, whose root is in all windows, sooner (`benchmarks.in_flight`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba import cuda, float32, int32

from daskw2v.cuda.rows import chunks_of, reading, writing
from daskw2v.cuda.warp import (
    ALIGNED,
    FLOATS,
    LANES,
    SUMS,
    add4,
    add4_at_once,
    at,
    device,
    kernel,
    load4_fresh,
    load4_shared,
    store4_shared,
    sum_of_lanes,
)
from daskw2v.objectives.base import FloatArray, Warps
from daskw2v.objectives.windows import Windows
from daskw2v.sampling.dealing import reach_of

PIECE = 256  # centers of a piece, at least: those of 64 cost 4 % of the quality
FLUSH = 8  # windows after which a warp adds what it changed of its top rows
TOGETHER = np.float32(4.0)  # windows that may move a row at a time in full
_WARPS = 16  # of some 128 registers, that a multiprocessor has room for
_SHARED = 48 << 10  # bytes of shared memory that a block may have
_TOP = 8 << 10  # bytes of it for top rows, at most
_REGISTERS = 48  # floats of targets that a lane keeps at once; it keeps their moves besides
_ADDS_FOUR = (9, 0)  # compute capability from which on four floats are added in one instruction
_NONE, _ONE = np.float32(0.0), np.float32(1.0)


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
        slots, needed = 2 * self.window + 1, 8 * aim.listed + 8 * SUMS + 8 * aim.top * self.width
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


class Tables(NamedTuple):
    """What a kernel trains.

    Parameters
    ----------
    source, output, hot_rows, source_touched, output_touched
        As in `objectives.base.Warps`.
    in_flight
        Warps that train at the same time, float32.
    """

    source: Any
    output: Any
    hot_rows: Any
    source_touched: Any
    output_touched: Any
    in_flight: Any


class Place(NamedTuple):
    """What a warp works in.

    Parameters
    ----------
    ring
        Shared: the rows of all places now, and behind them as they were read.
    top
        Shared: the same of the top rows.
    listed, signs, gains
        Shared: the window's targets and their signs, and gains of a group, twice.
    near, moves, row, hidden, dots
        Of each lane: targets of a group and their moves; a context and its move; the same of a hidden vector; sums.
    """

    ring: Any
    top: Any
    listed: Any
    signs: Any
    gains: Any
    near: Any
    moves: Any
    row: Any
    hidden: Any
    dots: Any


class Context(NamedTuple):
    """The device functions for contexts' rows: read one as row t, add row t to it, bring a place in reach or out."""

    read: Callable[..., Any]
    add: Callable[..., Any]
    enter: Callable[..., Any]
    leave: Callable[..., Any]


def adder(width: int, at_once: bool) -> Callable[..., Any]:
    """Return what adds a row to one of a table, atomically."""
    return writing(width, add4_at_once if at_once else add4)


def adds_four() -> bool:
    """Tell whether this process's GPU adds four floats in one instruction."""
    found: tuple[int, int] = cuda.get_current_device().compute_capability
    return found >= _ADDS_FOUR


def contexts(shape: Shape, slots: int) -> Context:
    """Return the device functions for contexts with a ring of so many places."""
    width, behind, floats = shape.width, slots * shape.width, shape.floats
    read_fresh, add_to_table = reading(width, load4_fresh), adder(shape.width, shape.at_once)
    read_ring, write_ring = reading(width, load4_shared), writing(width, store4_shared)

    @device
    def kept(tables: Any, word: Any) -> Any:
        return slots > 0 and word >= tables.hot_rows

    @device
    def add_damped(tables: Any, word: Any, place: Any, lane: Any) -> None:
        factor = factor_of(tables.source_touched, word, tables.in_flight)
        for k in range(floats):
            place.row[1, k] *= factor
        add_to_table(tables.source, np.int64(word) * width, lane, place.row, 1)

    @device
    def read(tables: Any, place: Any, slot: Any, word: Any, lane: Any) -> None:
        if kept(tables, word):
            read_ring(place.ring, slot * width, lane, place.row, 0)
        else:
            read_fresh(tables.source, np.int64(word) * width, lane, place.row, 0)

    @device
    def add(tables: Any, place: Any, slot: Any, word: Any, lane: Any) -> None:
        """Add row 1 to the context; row 0 holds it."""
        if kept(tables, word):
            for k in range(floats):
                place.row[1, k] += place.row[0, k]
            write_ring(place.ring, slot * width, lane, place.row, 1)
        else:
            add_damped(tables, word, place, lane)

    @device
    def enter(tables: Any, place: Any, slot: Any, word: Any, lane: Any) -> None:
        if kept(tables, word):
            read_fresh(tables.source, np.int64(word) * width, lane, place.row, 0)
            write_ring(place.ring, slot * width, lane, place.row, 0)
            write_ring(place.ring, behind + slot * width, lane, place.row, 0)

    @device
    def leave(tables: Any, place: Any, slot: Any, word: Any, lane: Any) -> None:
        if kept(tables, word):
            read_ring(place.ring, slot * width, lane, place.row, 0)
            read_ring(place.ring, behind + slot * width, lane, place.row, 1)
            for k in range(floats):
                place.row[1, k] = place.row[0, k] - place.row[1, k]
            add_damped(tables, word, place, lane)

    return Context(read, add, enter, leave)


class Targets(NamedTuple):
    """The device functions for targets' rows: read one as row t, add row t to it, take copies of the top, give back."""

    read: Callable[..., Any]
    add: Callable[..., Any]
    take_top: Callable[..., Any]
    give_top: Callable[..., Any]


def targets(shape: Shape, aim: Aim) -> Targets:
    """Return the device functions for targets."""
    width, floats, top, behind = shape.width, shape.floats, aim.top, aim.top * shape.width
    read_fresh, add_to_table = reading(width, load4_fresh), adder(width, shape.at_once)
    read_top, write_top = reading(width, load4_shared), writing(width, store4_shared)

    @device
    def read(tables: Any, place: Any, row: Any, lane: Any, rows: Any, t: Any) -> None:
        if row < top:
            read_top(place.top, row * width, lane, rows, t)
        else:
            read_fresh(tables.output, np.int64(row) * width, lane, rows, t)

    @device
    def add(tables: Any, place: Any, row: Any, lane: Any, rows: Any, t: Any) -> None:
        if row < top:
            read_top(place.top, row * width, lane, place.row, 0)
            for k in range(floats):
                rows[t, k] += place.row[0, k]
            write_top(place.top, row * width, lane, rows, t)
        else:
            factor = factor_of(tables.output_touched, row, tables.in_flight)
            for k in range(floats):
                rows[t, k] *= factor
            add_to_table(tables.output, np.int64(row) * width, lane, rows, t)

    @device
    def take_top(tables: Any, place: Any, lane: Any) -> None:
        for row in range(int32(min(top, tables.output.size // width))):
            read_fresh(tables.output, np.int64(row) * width, lane, place.row, 0)
            write_top(place.top, row * width, lane, place.row, 0)
            write_top(place.top, behind + row * width, lane, place.row, 0)

    @device
    def give_top(tables: Any, place: Any, lane: Any) -> None:
        for row in range(int32(min(top, tables.output.size // width))):
            read_top(place.top, row * width, lane, place.row, 0)
            read_top(place.top, behind + row * width, lane, place.row, 1)
            factor = factor_of(tables.output_touched, row, tables.in_flight * FLUSH)
            for k in range(floats):
                place.row[1, k] = factor * (place.row[0, k] - place.row[1, k])
            add_to_table(tables.output, np.int64(row) * width, lane, place.row, 1)

    return Targets(read, add, take_top, give_top)


def mover(shape: Shape) -> Callable[..., Any]:
    """Return what moves a place of the ring on by up to `window` places, or back."""
    around = 2 * shape.window + 1

    @device
    def moved(slot: Any, by: Any) -> Any:
        there = int32(slot + by)
        return int32(there + around) if there < 0 else int32(there - around) if there >= around else there

    return moved


@device
def factor_of(touched: Any, row: Any, in_flight: Any) -> Any:
    """Return what a row's moves are multiplied by."""
    return TOGETHER / max(TOGETHER, in_flight * at(touched, row)) if row < touched.size else _ONE


@device
def sentence_of(bounds: Any, center: Any) -> Any:
    """Return the number of the sentence that holds a center."""
    low, high = 0, bounds.size - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if at(bounds, middle) <= center:
            low = middle
        else:
            high = middle
    return low


def over_pieces(shape: Shape, aim: Aim, train_window: Callable[..., Any], slots: int) -> Any:
    """Return the kernel that trains pieces of text, in blocks of one warp.

    Parameters
    ----------
    shape, aim, slots
        As in `contexts`, and the targets.
    train_window
        Device function (tables, text, aim, place, first, last, center, start, stop, slot, alpha, lane) ->
        (examples, loss) that trains the contexts start..stop-1 of a center; `slot` is the place of the first.
    """
    window, width = shape.window, shape.width
    floats, listed_size, size, moved = shape.floats, aim.listed, aim.size, mover(shape)
    ring_floats, both, share = max(FLOATS, 2 * slots * width), 2 * SUMS, LANES // SUMS
    _, _, enter, leave = contexts(shape, slots)
    _, _, take_top, give_top = targets(shape, aim)
    top, top_floats = aim.top, max(FLOATS, 2 * aim.top * width)

    @device
    def share_of(first: Any, last: Any, piece: Any) -> Any:
        """Return where a piece begins, and the one before it ends."""
        return first + (last - first) * piece // cuda.gridDim.x

    @kernel
    def run(tables: Any, text: Any, first: Any, last: Any, windows: Any, aim: Any, totals: Any) -> None:
        lane = cuda.threadIdx.x
        place = Place(  # one a line: the simulator knows shared arrays by theirs
            cuda.shared.array(ring_floats, float32, ALIGNED),
            cuda.shared.array(top_floats, float32, ALIGNED),
            cuda.shared.array(listed_size, int32),
            cuda.shared.array(listed_size, float32),
            cuda.shared.array(both, float32),
            cuda.local.array((size, floats), float32),
            cuda.local.array((size, floats), float32),
            cuda.local.array((2, floats), float32),
            cuda.local.array((2, floats), float32),
            cuda.local.array(SUMS, float32),
        )
        examples, loss = 0, _NONE
        take_top(tables, place, lane)
        start, stop = share_of(first, last, cuda.blockIdx.x), share_of(first, last, cuda.blockIdx.x + 1)
        sentence = sentence_of(text.bounds, start)
        while start < stop:
            low, high = int32(at(text.bounds, sentence)), int32(at(text.bounds, sentence + 1))
            begin, end = int32(start), int32(min(stop, high))
            for i in range(int32(max(low, begin - window)), int32(min(high, begin + window))):
                enter(tables, place, int32(i - begin + window), at(text.tokens, i), lane)
            slot = int32(window)  # of the center
            for center in range(begin, end):
                if center + window < high:
                    enter(tables, place, moved(slot, window), at(text.tokens, center + window), lane)
                position = at(text.positions, center)
                reach = int32(reach_of(window, windows.shrink_windows, windows.key, position))
                alpha = float32(windows.alpha) + float32(windows.slope) * float32(position - windows.origin)
                left, right = int32(max(low, center - reach)), int32(min(high, center + reach + 1))
                at_left = moved(slot, left - center)
                n, lost = train_window(tables, text, aim, place, first, last, center, left, right, at_left, alpha, lane)
                examples += n
                loss += lost
                if center - window >= low:
                    leave(tables, place, moved(slot, -window), at(text.tokens, center - window), lane)
                slot = moved(slot, 1)
                if top > 0 and (center - first) % FLUSH == 0:
                    give_top(tables, place, lane)
                    take_top(tables, place, lane)
            for i in range(int32(max(low, end - window)), int32(min(high, end + window))):
                leave(tables, place, moved(slot, i - end), at(text.tokens, i), lane)
            start, sentence = end, sentence + 1
        give_top(tables, place, lane)
        loss = sum_of_lanes(loss)
        if lane == 0:
            cuda.atomic.add(totals, 0, float(examples))
            cuda.atomic.add(totals, 1, float(loss) / share)  # as many lanes had each of its terms

    return run


def launch(
    compiled: Callable[[Shape], Any], segment: Any, first: int, last: int, memory: Warps, windows: Windows, aim: Any
) -> None:
    """Train the centers first..last-1 of a segment on the GPU, without waiting for the end.

    Parameters
    ----------
    compiled
        Returns the kernel of a shape.
    segment, memory, aim
        Their arrays lie on the GPU.
    windows
        `objectives.windows.Windows`.
    """
    if first >= last:
        return
    kernel = compiled(Shape(memory.width, windows.window, adds_four()))
    pieces = n_pieces(last - first, memory.max_in_flight)
    tables = Tables(
        memory.source, memory.output, np.int32(memory.hot_rows), memory.source_touched, memory.output_touched,
        np.float32(pieces),
    )  # fmt: skip
    kernel[pieces, LANES, memory.stream](tables, segment, first, last, windows, aim, memory.totals)


def n_pieces(centers: int, max_in_flight: int) -> int:
    """Return how many pieces a range of centers is cut into: one a warp, unless they were short."""
    return max(1, min(max_in_flight, centers // PIECE))


def room() -> int:
    """Return how many warps the GPU has room for at the same time; the simulator has for any number."""
    if numba.config.ENABLE_CUDASIM:
        return 1 << 16
    return int(cuda.get_current_device().MULTIPROCESSOR_COUNT) * _WARPS


def crowded(touched: npt.NDArray[np.float64], max_in_flight: int) -> FloatArray:
    """Return how likely a window touches each of the first rows, shape (n,) float32: as many as may be damped.

    Parameters
    ----------
    touched
        The same of all rows of a table, shape (rows,). The likely rows are its first ones.
    """
    rows = np.flatnonzero(max_in_flight * touched > TOGETHER)
    return touched[: int(rows[-1]) + 1 if len(rows) else 0].astype(np.float32)
