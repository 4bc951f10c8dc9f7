"""A warp for each piece of text, on an NVIDIA GPU: what all objectives that go over centers share.

A range of centers is cut into as many pieces as there are warps, of equal length, whatever sentences they lie in.
Windows of a piece go in order, and see as much text around it as any others: a piece is no border. Pieces are long:
what stands close together has rare words in common, and should not be in flight at the same time. The contexts that
are in reach of a warp lie in its ring in shared memory (Randall et al. 2021, FULL-W2V, section 3.2): a row is read
once when its place comes into reach, and what was added to it is added to the table when it falls out. Rows of the
output table are read for each window, and their updates are added to the table at once. Additions are atomic.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import cuda, float32, int32

from daskw2v.kernels.cuda.warp import ALIGNED, FLOATS, LANES, SUMS, at, device, kernel, sum_of_lanes
from daskw2v.objectives.base import DeviceTables
from daskw2v.objectives.cuda.access import FLUSH, TOGETHER, adds_four, contexts, mover, targets
from daskw2v.objectives.cuda.shape import Aim, Shape, WarpScratch, WarpTables
from daskw2v.objectives.windows import Windows
from daskw2v.sampling.dealing import reach_of
from daskw2v.types import Float32Array, Float64Array

PIECE = 256  # centers of a piece, at least: those of 64 cost 4 % of the quality
_WARPS = 16, 9  # that a multiprocessor has room for: compilers for GPUs before 9.0 take twice the registers
_NONE = np.float32(0.0)


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
        Device function (tables, text, aim, scratch, first, last, center, start, stop, slot, alpha, lane) ->
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
        scratch = WarpScratch(  # one a line: the simulator knows shared arrays by theirs
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
        take_top(tables, scratch, lane)
        start, stop = share_of(first, last, cuda.blockIdx.x), share_of(first, last, cuda.blockIdx.x + 1)
        sentence = sentence_of(text.bounds, start)
        while start < stop:
            low, high = int32(at(text.bounds, sentence)), int32(at(text.bounds, sentence + 1))
            begin, end = int32(start), int32(min(stop, high))
            for i in range(int32(max(low, begin - window)), int32(min(high, begin + window))):
                enter(tables, scratch, int32(i - begin + window), at(text.tokens, i), lane)
            slot = int32(window)  # of the center
            for center in range(begin, end):
                if center + window < high:
                    enter(tables, scratch, moved(slot, window), at(text.tokens, center + window), lane)
                position = at(text.positions, center)
                reach = int32(reach_of(window, windows.shrink_windows, windows.key, position))
                alpha = float32(windows.alpha) + float32(windows.slope) * float32(position - windows.origin)
                left, right = int32(max(low, center - reach)), int32(min(high, center + reach + 1))
                at_left = moved(slot, left - center)
                n, lost = train_window(
                    tables, text, aim, scratch, first, last, center, left, right, at_left, alpha, lane
                )
                examples += n
                loss += lost
                if center - window >= low:
                    leave(tables, scratch, moved(slot, -window), at(text.tokens, center - window), lane)
                slot = moved(slot, 1)
                if top > 0 and (center - first) % FLUSH == 0:
                    give_top(tables, scratch, lane)
                    take_top(tables, scratch, lane)
            for i in range(int32(max(low, end - window)), int32(min(high, end + window))):
                leave(tables, scratch, moved(slot, i - end), at(text.tokens, i), lane)
            start, sentence = end, sentence + 1
        give_top(tables, scratch, lane)
        loss = sum_of_lanes(loss)
        if lane == 0:
            cuda.atomic.add(totals, 0, float(examples))
            cuda.atomic.add(totals, 1, float(loss) / share)  # as many lanes had each of its terms

    return run


def launch(
    compiled: Callable[[Shape], Any],
    segment: Any,
    first: int,
    last: int,
    tables: DeviceTables,
    windows: Windows,
    aim: Any,
) -> None:
    """Train the centers first..last-1 of a segment on the GPU, without waiting for the end.

    Parameters
    ----------
    compiled
        Returns the kernel of a shape.
    segment, tables, aim
        Their arrays lie on the GPU.
    windows
        `objectives.windows.Windows`.
    """
    if first >= last:
        return
    kernel = compiled(Shape(tables.width, windows.window, adds_four()))
    pieces = n_pieces(last - first, tables.max_in_flight)
    trained = WarpTables(
        tables.source, tables.output, np.int32(tables.hot_rows), tables.source_touched, tables.output_touched,
        np.float32(pieces),
    )  # fmt: skip
    kernel[pieces, LANES, tables.stream](trained, segment, first, last, windows, aim, tables.totals)


def n_pieces(centers: int, max_in_flight: int) -> int:
    """Return how many pieces a range of centers is cut into: one a warp, unless they were short."""
    return max(1, min(max_in_flight, centers // PIECE))


def room(most: int | None = None) -> int:
    """Return how many warps, at most as many as wanted, the GPU has room for at a time; the simulator has for any."""
    if numba.config.ENABLE_CUDASIM:
        return most or 1 << 16
    recent, older = _WARPS
    warps = int(cuda.get_current_device().MULTIPROCESSOR_COUNT) * (recent if adds_four() else older)
    return min(most or warps, warps)


def crowded(touched: Float64Array, max_in_flight: int) -> Float32Array:
    """Return how likely a window touches each of the first rows, shape (n,) float32: as many as may be damped.

    Parameters
    ----------
    touched
        The same of all rows of a table, shape (rows,). The likely rows are its first ones.
    """
    rows = np.flatnonzero(max_in_flight * touched > TOGETHER)
    return touched[: int(rows[-1]) + 1 if len(rows) else 0].astype(np.float32)
