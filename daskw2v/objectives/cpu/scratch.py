"""The working memory of kernels, and in it hot rows: a thread's own copies of the rows that all threads use most.

Working memory is allocated outside of kernels, so that they may use its addresses. A step is a window, or a batch of
windows that are trained together. A run is a number of steps whose targets are listed at once.

Words are numbered by falling count, and so are the tree's inner nodes: the hottest rows of a table are its first.
Threads that write the same cache lines wait for each other; so each works on copies of them, and adds what it changed
to the table from time to time: the hottest rows most often (Vuurens et al. 2016, algorithm 1).
"""

from typing import Any, NamedTuple

import numpy as np

from daskw2v.kernels.jit import inline, kernel
from daskw2v.kernels.simd import SLOTS, aligned_zeros
from daskw2v.objectives.base import Tables
from daskw2v.objectives.cpu.steps import MAX_TARGETS, address, merge_rows
from daskw2v.types import Float32Array, Int32Array, Int64Array, UInt64Array

_MIN_FLUSHED = 16  # rows


class Scratch(NamedTuple):
    """The arrays that a kernel works in.

    Parameters
    ----------
    contexts
        Addresses of the context rows of each window of a step, shape (windows * (2 * window + 1),) int64.
    values
        Dot products, then gradients, at most MAX_TARGETS for each context or hidden vector and group, float32.
    rows
        Addresses of target rows of all steps of a run, int64.
    sizes
        Number of nodes on the path of each step of a run, int64; for buckets of SGNS, flags of their batches.
    signs
        The sign of each target: 1, -1, or 0 for a target that does not count, float32.
    states
        Random states that the draws of the steps of a run start from, uint64.
    mantissa, exponent
        The loss as the logarithm of a product, mantissa * 2**exponent by lane, shapes (SLOTS,) float32 and int32.
    hidden
        Hidden vectors of a step, their updates, and zeros, shape ((2 * windows + 1) * width,) float32. The updates end
        where the zeros begin, however wide they are.
    vectors
        Addresses of the hidden vectors of a step, shape (windows,) int64.
    lengths, sentences
        Number of contexts of each window of a step, and its sentence, shapes (windows,) int64.
    sources, outputs
        The hot rows of both tables when they were last fetched, shape (hot rows * width,) float32.
    copies
        Rows that receive the updates of frozen contexts, as many as `contexts` is long, float32; empty if no row is
        frozen.
    """

    contexts: Int64Array
    values: Float32Array
    rows: Int64Array
    sizes: Int64Array
    signs: Float32Array
    states: UInt64Array
    mantissa: Float32Array
    exponent: Int32Array
    hidden: Float32Array
    vectors: Int64Array
    lengths: Int64Array
    sentences: Int64Array
    sources: Float32Array
    outputs: Float32Array
    copies: Float32Array


def make_scratch(
    tables: Tables, window: int, n_steps: int, groups: int, n_rows: int, n_signs: int, windows: int = 1
) -> Scratch:
    """Return the working memory of a kernel.

    It holds the targets of a run of `n_steps` steps, each with `groups` groups, `n_rows` rows and `n_signs` signs, and
    the contexts of one step of `windows` windows; `window` is as in Params. No two arrays share a cache line: threads
    that write one cache line would wait for each other.
    """
    mantissa = aligned_zeros(SLOTS)
    mantissa[:] = 1.0
    hidden = aligned_zeros((2 * windows + 1) * tables.width)
    vectors = aligned_zeros(windows, np.int64)
    vectors[:] = hidden.ctypes.data + 4 * tables.width * np.arange(windows)
    return Scratch(
        contexts=aligned_zeros(windows * (2 * window + 1), np.int64),
        values=aligned_zeros(SLOTS * max(window + 1, windows * groups)),
        rows=aligned_zeros(n_steps * n_rows, np.int64),
        sizes=aligned_zeros(n_steps, np.int64),
        signs=aligned_zeros(n_steps * n_signs + MAX_TARGETS),
        states=aligned_zeros(n_steps, np.uint64),
        mantissa=mantissa,
        exponent=aligned_zeros(SLOTS, np.int32),
        hidden=hidden,
        vectors=vectors,
        lengths=aligned_zeros(windows, np.int64),
        sentences=aligned_zeros(windows, np.int64),
        sources=aligned_zeros(tables.hot.rows * tables.width),
        outputs=aligned_zeros(tables.hot.rows * tables.width),
        copies=aligned_zeros(windows * (2 * window + 1) * tables.width if len(tables.frozen) else 0),
    )


class ScratchAddresses(NamedTuple):
    """Addresses of the arrays of a `Scratch` that a window's step uses.

    `zeros` is the address of the row of zeros in `hidden`; `n_targets` is the number of entries of a step in `rows`.
    """

    contexts: int
    values: int
    rows: int
    sizes: int
    signs: int
    mantissa: int
    exponent: int
    hidden: int
    zeros: int
    vectors: int
    copies: int
    n_targets: int


@inline
def scratch_addresses(scratch: Any) -> Any:
    """Return the `ScratchAddresses` of a `Scratch`."""
    hidden, windows = address(scratch.hidden), len(scratch.vectors)
    zeros = hidden + 8 * windows * (len(scratch.hidden) // (2 * windows + 1))
    return ScratchAddresses(
        address(scratch.contexts), address(scratch.values), address(scratch.rows), address(scratch.sizes),
        address(scratch.signs), address(scratch.mantissa), address(scratch.exponent), hidden, zeros,
        address(scratch.vectors), address(scratch.copies), len(scratch.rows) // len(scratch.states),
    )  # fmt: skip


@inline
def read_loss(scratch: Any) -> Any:
    """Return the loss summed since mantissas were 1 and exponents 0, float64."""
    loss = 0.0
    for lane in range(SLOTS):
        loss += scratch.exponent[lane] * np.log(2.0) + np.log(np.float64(scratch.mantissa[lane]))
    return loss


@kernel
def fetch_hot(tables: Any, scratch: Any) -> None:
    """Copy the hot rows of both tables to the thread's copies, and keep their values in `scratch`."""
    width, hot = tables.width, tables.hot
    n = hot.rows * width
    for table, shift, before in (
        (tables.source, hot.source, scratch.sources),
        (tables.output, hot.output, scratch.outputs),
    ):
        if shift:
            before[:] = table[:n]
            table[shift * width : shift * width + n] = before


@kernel
def flush_hot(tables: Any, scratch: Any, rows: Any) -> None:
    """Add the changes of the thread's copies of the first `rows` rows to both tables, and update the copies."""
    width, hot = tables.width, tables.hot
    n = rows * width
    for table, shift, before in (
        (tables.source, hot.source, scratch.sources),
        (tables.output, hot.output, scratch.outputs),
    ):
        start = address(table)
        if shift:
            merge_rows(start, start + 4 * shift * width, address(before), n)


@inline
def count_due_rows(hot: Any, n_trained: Any, step: Any) -> Any:
    """Return the number of hot rows to flush after `n_trained` centers, the last `step` of which were one step.

    Every flush has the first _MIN_FLUSHED rows, every second flush twice as many, every fourth four times: a row used
    half as often waits twice as long, so that all copies are about as far from the table, and a flush has few rows.
    """
    due = 0
    if hot.rows and n_trained % hot.flush < step:
        number = n_trained // hot.flush
        due = min(hot.rows, _MIN_FLUSHED * (number & -number))
    return due
