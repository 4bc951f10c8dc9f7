"""Targets of negative sampling: the word itself and its negatives, drawn for many windows at once.

The draws of a run of windows are one loop without branches, so that the compiler makes vector code of it.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.jit import inline
from daskw2v.objectives.base import Memory
from daskw2v.objectives.hidden import BATCH, OWN
from daskw2v.objectives.scratch import Scratch, make_scratch
from daskw2v.objectives.steps import MAX_TARGETS, group_sizes
from daskw2v.objectives.windows import row_of
from daskw2v.params import Params
from daskw2v.sampling.alias import pick
from daskw2v.sampling.hierarchy import word_table
from daskw2v.sampling.rng import GOLDEN, Purpose, draw, mix, stream

RUN = 64  # windows, or batches of them, whose targets are drawn at once


class Negatives(NamedTuple):
    """What a kernel needs to know about negatives.

    Parameters
    ----------
    negative
        As in Params.
    table
        Alias table of the words, shape (V,) uint64.
    key
        Stream of this epoch's draws.
    """

    negative: int
    table: npt.NDArray[np.uint64]
    key: np.uint64


class Prepared(NamedTuple):
    """The Params, and the alias table of the negatives, shape (V,) uint64."""

    params: Params
    noise: npt.NDArray[np.uint64]


def prepare_noise(params: Params, counts: npt.NDArray[np.int64]) -> Prepared:
    """Build the table that negatives are drawn from."""
    return Prepared(params, word_table(counts, params.ns_exponent))


def word_tables(params: Params, n_words: int) -> dict[str, int]:
    """Return the numbers of rows: two vectors for each word."""
    return {"input": n_words, "output": n_words}


def negatives_of(prepared: Prepared, epoch: int) -> Negatives:
    """Return the kernel's view of the negatives of an epoch."""
    params = prepared.params
    return Negatives(params.negative, prepared.noise, stream(params.seed, Purpose.NEGATIVE, epoch))


def tile_of(params: Params) -> tuple[int, ...]:
    """Return a tuple as long as a group has targets; being part of a type, its length lets loops unroll."""
    return (0,) * group_sizes(params.negative + 1)[1]


def target_scratch(params: Params, memory: Memory, n_windows: int) -> Scratch:
    """Return the scratch of a kernel that draws the targets of n_windows at once."""
    groups, size = group_sizes(params.negative + 1)
    return make_scratch(memory, params.window, n_windows, groups, groups * size, groups * size)


def shared_tile_of(params: Params) -> tuple[int, ...]:
    """Return a tuple as long as a group of a batch has negatives."""
    return (0,) * group_sizes(params.negative, OWN)[1]


def batch_scratch(params: Params, memory: Memory) -> Scratch:
    """Return the scratch of a kernel that draws the targets of RUN batches at once."""
    groups, size = group_sizes(params.negative, OWN)
    rows, signs = groups * size + BATCH, groups * BATCH * MAX_TARGETS
    return make_scratch(memory, params.window, RUN, groups, rows, signs, BATCH)


@inline
def draw_targets(
    words: Any, states: Any, negatives: Any, output: Any, width: Any, hot: Any, rows: Any, signs: Any
) -> None:
    """Draw the targets of n windows.

    Parameters
    ----------
    words, states
        Each window's word, and the state that its draws start from, shapes (n,).
    negatives
        `Negatives`.
    output, width, hot
        Address of the output table, its row length, and `HotRows`.
    rows
        Receives the row of target t of window i at [t, i], shape (targets, at least n). What fills the last group is
        the word once more, and does not count.
    signs
        Receives the signs of window i at [i], shape (at least n, targets).
    """
    n = len(words)
    own = rows[0, :n]
    for i in range(n):
        own[i] = row_of(output, words[i], width, hot.rows, hot.output)
        signs[i, 0] = 1.0
    for k in range(1, len(rows)):
        drawn = rows[k, :n]
        if k > negatives.negative:
            drawn[:] = own
            continue
        salt = np.uint64(k) * GOLDEN
        table = negatives.table
        for i in range(n):
            drawn[i] = row_of(output, pick(table, mix(states[i] + salt)), width, hot.rows, hot.output)
        for i in range(n):
            signs[i, k] = np.float32(0.0 if drawn[i] == own[i] else -1.0)


@inline
def draw_run(
    segment: Any, first: Any, last: Any, negatives: Any, output: Any, width: Any, hot: Any, states: Any, rows: Any,
    signs: Any,
) -> None:  # fmt: skip
    """Draw the targets of the windows around the centers first..last-1, at most RUN of them, as `draw_targets` does."""
    for i in range(first, last):
        states[i - first] = draw(negatives.key, segment.positions[i])
    draw_targets(segment.tokens[first:last], states, negatives, output, width, hot, rows, signs)


@inline
def draw_batches(
    segment: Any, first: Any, n: Any, apart: Any, last: Any, negatives: Any, output: Any, width: Any, hot: Any,
    states: Any, rows: Any, signs: Any, size: Any,
) -> None:  # fmt: skip
    """Draw the targets of n batches, at most RUN of them: negatives for all of a batch, and each window's own word.

    Parameters
    ----------
    segment, first, apart, last
        Batch i has the windows around the centers first + i, and BATCH - 1 more, each `apart` from the one before, as
        far as they are before `last`.
    negatives, output, width, hot, states
        As in `draw_targets`.
    rows
        Receives the row of negative k of batch i at [k, i], those of its own words behind, shape (negatives and what
        fills the last group, and BATCH, RUN).
    signs
        Receives the signs of batch i at [i], MAX_TARGETS for each window, shape (RUN, groups, BATCH * MAX_TARGETS).
    size
        Negatives in a group.
    """
    n_shared, groups = len(rows) - BATCH, signs.shape[1]
    for i in range(n):
        states[i] = draw(negatives.key, segment.positions[first + i])
    for k in range(n_shared):
        salt = np.uint64(k + 1) * GOLDEN
        for i in range(n):
            rows[k, i] = row_of(output, pick(negatives.table, mix(states[i] + salt)), width, hot.rows, hot.output)
    for window in range(BATCH):
        own, center, at = rows[n_shared + window], first + window * apart, window * MAX_TARGETS
        inside = min(n, max(last - center, 0))
        for i in range(inside):
            own[i] = row_of(output, segment.tokens[center + i], width, hot.rows, hot.output)
            signs[i, groups - 1, at + OWN] = 1.0
        for k in range(negatives.negative):
            group, lane, drawn = k // size, at + k % size, rows[k]
            for i in range(inside):
                signs[i, group, lane] = np.float32(0.0 if drawn[i] == own[i] else -1.0)
        for i in range(inside, n):  # no window is left: its targets are any row, and do not count
            own[i] = rows[0, i]
            signs[i, :, at : at + MAX_TARGETS] = 0.0
