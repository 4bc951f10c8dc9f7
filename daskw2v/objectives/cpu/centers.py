"""The loop over the centers of a text on the CPU, and the rows and targets of a window.

An objective is composed of the training of a window (`skip_gram`, `hidden`) and of its targets (`targets`).
`make_center_trainer` compiles both into one kernel.

Each function is inlined into the kernels that call it. Inside the loop, rows and lists are passed by address, in tuples
of numbers, because Numba would count the references of arrays at each call. A list of rows has their addresses, int64.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from daskw2v.config.params import Params
from daskw2v.kernels.jit import inline, kernel
from daskw2v.objectives.base import Rate, Tables
from daskw2v.objectives.cpu.scratch import Scratch, count_due_rows, fetch_hot, flush_hot, read_loss, scratch_addresses
from daskw2v.objectives.cpu.steps import address, copy_row, load_int8, load_int32, load_int64, prefetch_row, store_int64
from daskw2v.objectives.windows import make_windows, window_width
from daskw2v.sampling.pairs import draw_window_size
from daskw2v.sampling.segments import Segment

RUN = 64  # windows, or batches of them, whose targets are listed at once


# Function (prepared, tables, epoch) that returns the arguments scratch, aim and tile of a kernel; `prepared` is the
# result of `Objective.prepare`
Preparation = Callable[[Any, Tables, int], tuple[Scratch, Any, tuple[int, ...]]]


class Targets(NamedTuple):
    """The targets of windows: two functions that are compiled into a kernel, and how it is called.

    Parameters
    ----------
    write
        Function (segment, first, last, aim, tables, scratch) that lists the targets of the windows first..last-1, at
        most RUN. `aim` is the argument of the kernel, `tables` are `TableAddresses`, `scratch` is a `Scratch`.
    trainer
        Function from a function that trains a window, (scratch, contexts, n, targets, width, alpha, tile) -> examples,
        to a function that trains the listed window of an index, (scratch, n, index, width, alpha, tile) -> examples.
        Here `scratch` is `ScratchAddresses`, `contexts` a list of n rows, and `targets` are `WindowTargets`.
    prepare
        Function that prepares the arguments scratch, aim and tile of the kernel.
    """

    write: Callable[..., Any]
    trainer: Callable[[Callable[..., Any]], Callable[..., Any]]
    prepare: Preparation


class WindowTargets(NamedTuple):
    """The targets of a window, or of a batch of windows, in groups of one size.

    Parameters
    ----------
    rows, stride
        Address of the list of rows, and the number of entries from one target to the next.
    ahead
        Bytes from an entry to the entry of the next window, whose row is prefetched.
    groups
        Number of groups.
    signs
        Address of the signs, float32, group by group: one for each target; in a batch, one for each value of each
        window (`objectives.cpu.hidden`).
    """

    rows: int
    stride: int
    ahead: int
    groups: int
    signs: int


class SegmentAddresses(NamedTuple):
    """Addresses of a segment's arrays, and of the numbers of its tokens' input rows; and the number of its tokens."""

    inputs: int
    positions: int
    bounds: int
    n: int


class TableAddresses(NamedTuple):
    """The fields of `objectives.base.Tables`, with the addresses of both tables; `frozen` is 0 if no row is frozen."""

    source: int
    output: int
    width: int
    hot: Any
    frozen: int = 0


@inline
def segment_addresses(segment: Any, tables: Any) -> Any:
    """Return the `SegmentAddresses` of a segment whose tokens have rows in these tables."""
    inputs = address(tables.inputs) if len(tables.inputs) else address(segment.tokens)
    return SegmentAddresses(inputs, address(segment.positions), address(segment.bounds), len(segment.tokens))


@inline
def table_addresses(tables: Any) -> Any:
    """Return the `TableAddresses` of `Tables`."""
    frozen = address(tables.frozen) if len(tables.frozen) else 0
    return TableAddresses(address(tables.source), address(tables.output), tables.width, tables.hot, frozen)


@inline
def _row_address(table: Any, index: Any, width: Any, hot_rows: Any, shift: Any) -> Any:
    """Return the address of a table's row; of one of the hottest, of the thread's copy, `shift` rows behind it."""
    row = np.int64(index)
    return table + (row + (shift if row < hot_rows else 0)) * (4 * width)


@inline
def source_row(tables: Any, index: Any) -> Any:
    """Return the address of a row of the input table, or of the thread's copy of it."""
    return _row_address(tables.source, index, tables.width, tables.hot.rows, tables.hot.source)


@inline
def output_row(tables: Any, index: Any) -> Any:
    """Return the address of a row of the output table, or of the thread's copy of it."""
    return _row_address(tables.output, index, tables.width, tables.hot.rows, tables.hot.output)


@inline
def _context_row(tables: Any, index: Any, copy: Any) -> Any:
    """Return the address of a context's row; a frozen row is copied to the address `copy`, which is then returned."""
    if tables.frozen != 0 and load_int8(tables.frozen, index) != 0:
        copy_row(tables.source + np.int64(index) * (4 * tables.width), copy, tables.width)
        return copy
    return source_row(tables, index)


@inline
def find_sentence(segment: Any, center: Any) -> Any:
    """Return the index of the sentence that holds a center, in a `Segment`."""
    return np.searchsorted(segment.bounds, center, side="right") - 1


@inline
def open_window(text: Any, sentence: Any, center: Any, windows: Any, tables: Any, contexts: Any, copies: Any) -> Any:
    """List the rows of a center's contexts, and prefetch the row that later windows reach first.

    Parameters
    ----------
    text, sentence, center
        `SegmentAddresses`, the sentence of the center or an earlier one, and the center.
    windows, tables
        `objectives.windows.Windows` and `TableAddresses`.
    contexts
        Address of the list that receives the rows, of 2 * window + 1 entries.
    copies
        Address of as many rows, which receive the updates of frozen contexts.

    Returns
    -------
    sentence, n, alpha
        The center's sentence, the number of its contexts, and its learning rate, float32.
    """
    while center >= load_int64(text.bounds, sentence + 1):
        sentence += 1
    position = load_int64(text.positions, center)
    reach = draw_window_size(windows.window, windows.shrink_windows, windows.key, position)
    start = max(load_int64(text.bounds, sentence), center - reach)
    stop = min(load_int64(text.bounds, sentence + 1), center + reach + 1)
    n = 0
    for i in range(start, stop):
        store_int64(contexts, n, _context_row(tables, load_int32(text.inputs, i), copies + n * (4 * tables.width)))
        n += 1 if i != center else 0
    next_token = min(center + windows.window + 1, text.n - 1)
    prefetch_row(source_row(tables, load_int32(text.inputs, next_token)), tables.width)
    return sentence, n, np.float32(windows.alpha + windows.slope * (position - windows.origin))


class CenterTrainer(NamedTuple):
    """A `Trainer` (`objectives.base`) of ranges of centers on the CPU.

    Parameters
    ----------
    kernel
        Kernel (segment, first, last, tables, scratch, windows, aim, tile) -> (examples, loss): trains the centers
        first..last-1 of a `sampling.segments.Segment`. `tables` are `objectives.base.Tables`, changed in place;
        `windows` are `objectives.windows.Windows`, `aim` is what targets are written from, and `tile` a tuple as long
        as a group has targets, or empty if that depends on the path.
    prepare
        Function that prepares `scratch`, `aim` and `tile`.
    """

    kernel: Any
    prepare: Preparation

    def __call__(
        self, segment: Segment, first: int, last: int, tables: Tables, rate: Rate, epoch: int, prepared: Any
    ) -> tuple[int, float]:
        """Train the centers first..last-1 of a segment, as a `Trainer` does."""
        scratch, aim, tile = self.prepare(prepared, tables, epoch)
        windows = make_windows(prepared.params, rate, epoch)
        examples, loss = self.kernel(segment, first, last, tables, scratch, windows, aim, tile)
        return int(examples), float(loss)


def train_by(
    find_trainer: Callable[[Params], CenterTrainer], segment: Segment, first: int, last: int, tables: Tables, *work: Any
) -> tuple[int, float]:
    """Train the centers first..last-1 of a segment in place; return the number of examples and their summed loss.

    `work` are the last arguments of a `Trainer`: rate, epoch and `prepared`, the result of `Objective.prepare`, for
    whose Params `find_trainer` returns the trainer.
    """
    return find_trainer(work[-1].params)(segment, first, last, tables, *work)


def make_center_trainer(targets: Targets, train_window: Callable[..., Any]) -> CenterTrainer:
    """Return a trainer of ranges of centers, window after window, compiled into one kernel.

    Parameters
    ----------
    targets
        The targets of windows.
    train_window
        Function that trains the contexts of one window, as `Targets.trainer` takes it.
    """
    write, train_listed = targets.write, targets.trainer(train_window)

    @kernel
    def train(segment: Any, first: Any, last: Any, tables: Any, scratch: Any, windows: Any, aim: Any, tile: Any) -> Any:
        text, rows, work = segment_addresses(segment, tables), table_addresses(tables), scratch_addresses(scratch)
        fetch_hot(tables, scratch)
        examples, sentence, index = 0, find_sentence(segment, first), RUN
        for center in range(first, last):
            if index >= RUN - 1:  # the targets of a run's last window are known for their prefetch only
                write(segment, center, min(center + RUN, last), aim, rows, scratch)
                index = 0
            sentence, n, alpha = open_window(text, sentence, center, windows, rows, work.contexts, work.copies)
            width = window_width(windows.prefixes, load_int64(text.positions, center), rows.width)
            examples += train_listed(work, n, index, width, alpha, tile)
            index += 1
            due = count_due_rows(rows.hot, center - first + 1, 1)
            if due:
                flush_hot(tables, scratch, due)
        flush_hot(tables, scratch, tables.hot.rows)
        return examples, read_loss(scratch)

    return CenterTrainer(train, targets.prepare)
