"""A warp for each piece of text, on an NVIDIA GPU: the loop of all objectives that go over centers.

A range of centers is cut into as many pieces as there are warps, of equal length, regardless of sentences. Only the GPU
knows the range, for text is subsampled there: warps that would have too few centers end at once. Windows of a piece are
trained in order, and reach beyond the piece. Pieces are long: neighbouring windows have rare words in common, and
should not be in flight, being trained, at the same time. The contexts that are in reach of a warp are in its ring in
shared memory (Randall et al. 2021, FULL-W2V, section 3.2): a row is read once when its token comes into reach, and its
changes are added to the table when it leaves. Rows of the output table are read for each window, and their updates are
added to the table at once. Additions are atomic.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import cuda, float32, int32

from daskw2v.kernels.cuda import gpus
from daskw2v.kernels.cuda.gpus import WarpKernel, shared_memory
from daskw2v.kernels.cuda.gpus import room as room  # trainers import it from this module
from daskw2v.kernels.cuda.warp import ALIGNED, FLOATS, SUMS, at, device, kernel, sum_of_sums
from daskw2v.objectives.base import DeviceTables, Rate
from daskw2v.objectives.cuda import access
from daskw2v.objectives.cuda.access import FLUSH, TOGETHER, gpu_adds_four, make_warp_tables
from daskw2v.objectives.cuda.shape import Aim, Shape, WarpScratch, kernel_tables, shared_bytes_of_warp
from daskw2v.objectives.windows import make_windows
from daskw2v.sampling.pairs import draw_window_size
from daskw2v.types import Float32Array, Float64Array

MIN_PIECE = 256  # centers of a piece: shorter pieces cost quality
_NONE = np.float32(0.0)


def count_pieces(centers: int, warps: int) -> int:
    """Return the number of pieces for a number of centers: one for each warp, or fewer so that none is short."""
    return max(1, min(warps, centers // MIN_PIECE))


_count_pieces = device(count_pieces)


@device
def find_sentence(bounds: Any, center: Any) -> Any:
    """Return the index of the sentence that holds a center, by a segment's bounds; sentences may be empty."""
    low, high = 0, bounds.size - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if at(bounds, middle) <= center:
            low = middle
        else:
            high = middle
    return low


def make_piece_kernel(shape: Shape, aim: Aim, train_window: Callable[..., Any], slots: int) -> WarpKernel:
    """Return the kernel that trains pieces of text, in blocks of one warp.

    Parameters
    ----------
    shape, aim, slots
        The sizes of the kernel, the targets of windows, and the slots of the ring, 0 for no ring.
    train_window
        Device function (tables, text, aim, scratch, first, last, center, start, stop, slot, alpha, lane) -> (examples,
        loss of the lane) that trains the contexts start..stop-1 of a center, which lies among them; `slot` is the
        ring's slot of the first. `text` is the `Segment`, first..last-1 the range of centers.
    """
    window, width = shape.window, shape.width
    floats, listed_size, size, moved = shape.floats, aim.listed, aim.size, access.make_mover(shape)
    both = 2 * SUMS
    _, _, enter, leave = access.make_context_access(shape, slots)
    _, _, fetch_top, flush_top = access.make_target_access(shape, aim)
    top, top_floats = aim.top, max(FLOATS, 2 * aim.top * width)

    @kernel
    def run(trained: Any, text: Any, range_first: Any, range_last: Any, windows: Any, aim: Any, totals: Any) -> None:
        lane, piece, first, last = cuda.threadIdx.x, cuda.blockIdx.x, range_first[0], range_last[0]
        pieces = _count_pieces(last - first, cuda.gridDim.x)
        if piece >= pieces or first >= last:
            return
        tables = make_warp_tables(trained, pieces)
        scratch = WarpScratch(  # one a line: the simulator knows shared arrays by theirs
            cuda.shared.array(0, float32, ALIGNED),  # its size is an argument of the launch, and may exceed 48 KB
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
        fetch_top(tables, scratch, lane)
        start, stop = first + (last - first) * piece // pieces, first + (last - first) * (piece + 1) // pieces
        sentence = find_sentence(text.bounds, start)
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
                    flush_top(tables, scratch, lane)
                    fetch_top(tables, scratch, lane)
            for i in range(int32(max(low, end - window)), int32(min(high, end + window))):
                leave(tables, scratch, moved(slot, i - end), at(text.tokens, i), lane)
            start, sentence = end, sentence + 1
        flush_top(tables, scratch, lane)
        loss = sum_of_sums(loss)
        if lane == 0:
            cuda.atomic.add(totals, 0, float(examples))
            cuda.atomic.add(totals, 1, float(loss))

    return WarpKernel(run, shape.ring_bytes(slots))


class PieceTrainer(NamedTuple):
    """A `Trainer` (`objectives.base`) of pieces of text on a GPU.

    Parameters
    ----------
    find_kernel
        Function from a `Shape` and the result of `Objective.prepare` to the kernel.
    make_aim
        Function from the result of `Objective.prepare` and the epoch to the argument `aim` of the kernel.
    """

    find_kernel: Callable[[Shape, Any], WarpKernel]
    make_aim: Callable[[Any, int], Any]

    def __call__(
        self, segment: Any, first: Any, last: Any, tables: DeviceTables, rate: Rate, epoch: int, prepared: Any
    ) -> int:
        """Launch the training of the centers first..last-1 of a segment; return the number of warps launched.

        Parameters
        ----------
        segment, tables, prepared
            Their arrays are on the GPU. Arrays of the segment may be longer than its text, whose length is the last
            bound.
        first, last
            Arrays of one number, int64, on the GPU. Without centers nothing is trained.
        rate, epoch
            As in `Trainer`.
        """
        windows = make_windows(prepared.params, rate, epoch)
        kernel = self.find_kernel(make_shape(tables.width, windows.window), prepared)
        arguments = kernel_tables(tables), segment, first, last, windows, self.make_aim(prepared, epoch), tables.totals
        return gpus.launch(kernel, tables.max_in_flight, tables.stream, *arguments)


def make_shape(width: int, window: int) -> Shape:
    """Return the `Shape` of kernels on the GPU of this process."""
    return Shape(width, window, gpu_adds_four(), shared_bytes_of_warp(*shared_memory()))


def damped_chances(touched: Float64Array, max_in_flight: int) -> Float32Array:
    """Return the chance that a window touches each of the first rows, up to the last damped row, shape (n,) float32.

    Parameters
    ----------
    touched
        The chances of all rows of a table, shape (rows,), likely rows first; or the updates of rows by a batch.
    max_in_flight
        Largest number of warps that train at the same time.
    """
    rows = np.flatnonzero(max_in_flight * touched > TOGETHER)
    return touched[: int(rows[-1]) + 1 if len(rows) else 0].astype(np.float32)
