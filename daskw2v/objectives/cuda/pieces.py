"""A warp for each piece of text, on an NVIDIA GPU: the loop of all objectives that go over centers.

A range of centers is cut into as many pieces as there are warps, of equal length, whatever sentences they lie in. Only
the GPU knows the range, for text is subsampled there: warps that would have too few centers end at once. Windows of a
piece go in order, and see as much text around it as any others: a piece is no border. Pieces are long: neighbouring
windows have rare words in common, and should not be in flight at the same time. The contexts that are in reach of a
warp lie in its ring in shared memory (Randall et al. 2021, FULL-W2V, section 3.2): a row is read once when its place
comes into reach, and what was added to it is added to the table when it falls out. Rows of the output table are read
for each window, and their updates are added to the table at once. Additions are atomic.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import cuda, float32, int32

from daskw2v.kernels.cuda import gpus
from daskw2v.kernels.cuda.gpus import WarpKernel, shared_memory
from daskw2v.kernels.cuda.gpus import room as room  # trainers take it from here
from daskw2v.kernels.cuda.warp import ALIGNED, FLOATS, SUMS, at, device, kernel, sum_of_sums
from daskw2v.objectives.base import DeviceTables, Rate
from daskw2v.objectives.cuda.access import FLUSH, TOGETHER, adds_four, contexts, mover, of_warp, targets
from daskw2v.objectives.cuda.shape import Aim, Shape, WarpScratch, kernel_tables, share_of_warp
from daskw2v.objectives.windows import windows_of
from daskw2v.sampling.pairs import draw_window_size
from daskw2v.types import Float32Array, Float64Array

PIECE = 256  # centers of a piece, at least: pieces of 64 cost 4 % of the quality
_NONE = np.float32(0.0)


def n_pieces(centers: int, warps: int) -> int:
    """Return how many pieces a range of centers is cut into: one a warp, unless they were short."""
    return max(1, min(warps, centers // PIECE))


_pieces_of = device(n_pieces)


@device
def sentence_of(bounds: Any, center: Any) -> Any:
    """Return the number of the sentence that holds a center; sentences may be empty."""
    low, high = 0, bounds.size - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if at(bounds, middle) <= center:
            low = middle
        else:
            high = middle
    return low


def over_pieces(shape: Shape, aim: Aim, train_window: Callable[..., Any], slots: int) -> WarpKernel:
    """Return the kernel that trains pieces of text, in blocks of one warp.

    Parameters
    ----------
    shape, aim, slots
        As in `contexts`, and the targets.
    train_window
        Device function (tables, text, aim, scratch, first, last, center, start, stop, slot, alpha, lane) -> (examples,
        loss) that trains the contexts start..stop-1 of a center; `slot` is the ring's slot of the first.
    """
    window, width = shape.window, shape.width
    floats, listed_size, size, moved = shape.floats, aim.listed, aim.size, mover(shape)
    both = 2 * SUMS
    _, _, enter, leave = contexts(shape, slots)
    _, _, take_top, give_top = targets(shape, aim)
    top, top_floats = aim.top, max(FLOATS, 2 * aim.top * width)

    @kernel
    def run(trained: Any, text: Any, first_of: Any, last_of: Any, windows: Any, aim: Any, totals: Any) -> None:
        lane, piece, first, last = cuda.threadIdx.x, cuda.blockIdx.x, first_of[0], last_of[0]
        pieces = _pieces_of(last - first, cuda.gridDim.x)
        if piece >= pieces or first >= last:
            return
        tables = of_warp(trained, pieces)
        scratch = WarpScratch(  # one a line: the simulator knows shared arrays by theirs
            cuda.shared.array(0, float32, ALIGNED),  # as long as the launch says, which may be more than 48 KB
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
        start, stop = first + (last - first) * piece // pieces, first + (last - first) * (piece + 1) // pieces
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
                reach = int32(draw_window_size(window, windows.shrink_windows, windows.key, position))
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
        loss = sum_of_sums(loss)
        if lane == 0:
            cuda.atomic.add(totals, 0, float(examples))
            cuda.atomic.add(totals, 1, float(loss))

    return WarpKernel(run, shape.ring_bytes(slots))


class PieceTrainer(NamedTuple):
    """A `Trainer` (`objectives.base`) of pieces of text on a GPU.

    Parameters
    ----------
    kernel_of
        Function from a shape and the result of `Objective.prepare` to the kernel.
    aim_of
        Function from the result of `Objective.prepare` and the epoch to what targets are written from.
    """

    kernel_of: Callable[[Shape, Any], WarpKernel]
    aim_of: Callable[[Any, int], Any]

    def __call__(
        self, segment: Any, first: Any, last: Any, tables: DeviceTables, rate: Rate, epoch: int, prepared: Any
    ) -> int:
        """Train the centers first..last-1 of a segment, without waiting; return how many warps do so at most.

        Parameters
        ----------
        segment, tables, prepared
            Their arrays lie on the GPU. Those of the segment may be longer than its text, whose length is the last
            bound.
        first, last
            Arrays of one number, int64, on the GPU. Without centers nothing is trained.
        rate, epoch
            As in `Trainer`.
        """
        windows = windows_of(prepared.params, rate, epoch)
        kernel = self.kernel_of(shape_here(tables.width, windows.window), prepared)
        arguments = kernel_tables(tables), segment, first, last, windows, self.aim_of(prepared, epoch), tables.totals
        return gpus.launch(kernel, tables.max_in_flight, tables.stream, *arguments)


def shape_here(width: int, window: int) -> Shape:
    """Return the `Shape` that kernels have on this process's GPU."""
    return Shape(width, window, adds_four(), share_of_warp(*shared_memory()))


def crowded(touched: Float64Array, max_in_flight: int) -> Float32Array:
    """Return the chance that a window touches each of the first rows, shape (n,) float32, up to the last damped one.

    Parameters
    ----------
    touched
        The chances of all rows of a table, shape (rows,). Likely rows come first.
    max_in_flight
        Largest number of warps that train at the same time.
    """
    rows = np.flatnonzero(max_in_flight * touched > TOGETHER)
    return touched[: int(rows[-1]) + 1 if len(rows) else 0].astype(np.float32)
