"""Targets of negative sampling on the CPU: a word and its negatives, drawn for many windows at once.

The draws of a run of windows are one loop without branches, so that the compiler makes vector code of it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from daskw2v.config.params import Params
from daskw2v.kernels.alias import pick
from daskw2v.kernels.jit import inline, kernel
from daskw2v.kernels.rng import GOLDEN, draw, mix
from daskw2v.objectives.base import Tables
from daskw2v.objectives.cpu.centers import RUN, Targets, WindowTargets, output_row
from daskw2v.objectives.cpu.hidden import OWN
from daskw2v.objectives.cpu.scratch import Scratch, make_scratch
from daskw2v.objectives.cpu.steps import MAX_TARGETS, group_sizes
from daskw2v.objectives.noise import BATCH, pick_in_market
from daskw2v.objectives.settings import SharedNegatives


def _groups_of(params: Params) -> tuple[int, int]:
    """Return the groups that the targets of a window are spread over, and the targets of each."""
    of = SharedNegatives.of(params)
    return group_sizes(1 + of.negative + of.market_negative)


def _shared_groups_of(params: Params) -> tuple[int, int]:
    """Return the groups of a batch and the size of each: shared negatives and those of each window's market."""
    of = SharedNegatives.of(params)
    return group_sizes(of.negative + BATCH * of.market_negative, OWN)


def tile_of(params: Params) -> tuple[int, ...]:
    """Return a tuple as long as a group has targets; being part of a type, its length lets loops unroll."""
    return (0,) * _groups_of(params)[1]


def target_scratch(params: Params, tables: Tables, n_windows: int) -> Scratch:
    """Return the scratch of a kernel that draws the targets of n_windows at once."""
    groups, size = _groups_of(params)
    return make_scratch(tables, params.window, n_windows, groups, groups * size, groups * size)


def shared_tile_of(params: Params) -> tuple[int, ...]:
    """Return a tuple as long as a group of a batch has negatives."""
    return (0,) * _shared_groups_of(params)[1]


def batch_scratch(params: Params, tables: Tables) -> Scratch:
    """Return the scratch of a kernel that draws the targets of RUN batches at once."""
    groups, size = _shared_groups_of(params)
    rows, signs = groups * size + BATCH, groups * BATCH * MAX_TARGETS
    return make_scratch(tables, params.window, RUN, groups, rows, signs, BATCH)


@inline
def draw_targets(words: Any, states: Any, negatives: Any, tables: Any, rows: Any, signs: Any) -> None:
    """Draw the targets of n windows.

    Parameters
    ----------
    words, states
        Each window's word, and the state that its draws start from, shapes (n,).
    negatives, tables
        `objectives.noise.Negatives` and `objectives.cpu.centers.TableAddresses`.
    rows
        Receives the row of target t of window i at [t, i], shape (targets, at least n). The rest of
        the last group is filled with the word, whose sign there is 0.
    signs
        Receives the signs of window i at [i], shape (at least n, targets).
    """
    n = len(words)
    own = rows[0, :n]
    for i in range(n):
        own[i] = output_row(tables, words[i])
        signs[i, 0] = 1.0
    last = 1 + negatives.negative + negatives.market_negative
    for k in range(1, 1 + negatives.negative):
        drawn, salt, table = rows[k, :n], np.uint64(k) * GOLDEN, negatives.table
        for i in range(n):
            drawn[i] = output_row(tables, pick(table, mix(states[i] + salt)))
        for i in range(n):
            signs[i, k] = np.float32(0.0 if drawn[i] == own[i] else -1.0)
    if negatives.market_negative > 0:
        _draw_near(words, states, negatives, tables, rows, signs)
    for k in range(last, len(rows)):
        rows[k, :n] = own


@kernel
def _draw_near(words: Any, states: Any, negatives: Any, tables: Any, rows: Any, signs: Any) -> None:
    """Draw the negatives of markets, apart from the others: the loops of these stay as short as without."""
    n, first = len(words), 1 + negatives.negative
    for k in range(first, first + negatives.market_negative):
        drawn, salt, markets = rows[k, :n], np.uint64(k) * GOLDEN, negatives.markets
        for i in range(n):
            drawn[i] = output_row(tables, pick_in_market(markets, words[i], mix(states[i] + salt)))
        for i in range(n):
            signs[i, k] = np.float32(0.0 if drawn[i] == rows[0, i] else -1.0)


@inline
def _write(segment: Any, first: Any, last: Any, negatives: Any, tables: Any, scratch: Any) -> None:
    rows, signs = scratch.rows.reshape(-1, RUN), scratch.signs[: len(scratch.rows)].reshape(RUN, -1)
    for i in range(first, last):
        scratch.states[i - first] = draw(negatives.key, segment.positions[i])
    draw_targets(segment.tokens[first:last], scratch.states, negatives, tables, rows, signs)


def _trainer(train_window: Callable[..., Any]) -> Callable[..., Any]:
    @inline
    def train(scratch: Any, n: Any, at: Any, width: Any, alpha: Any, tile: Any) -> Any:
        groups, signs = scratch.n_targets // len(tile), scratch.signs + at * scratch.n_targets * 4
        targets = WindowTargets(scratch.rows + at * 8, RUN, 8, groups, signs)
        return train_window(scratch, scratch.contexts, n, targets, width, alpha, tile)

    return train


NEGATIVES = Targets(_write, _trainer)


@inline
def draw_batches(
    segment: Any, first: Any, n: Any, apart: Any, last: Any, negatives: Any, tables: Any, states: Any, rows: Any,
    signs: Any, size: Any,
) -> None:  # fmt: skip
    """Draw the targets of n batches, at most RUN of them: negatives for all of a batch, and each window's own.

    Its own are its word, and the negatives of its market, which other windows do not meet.

    Parameters
    ----------
    segment, first, apart, last
        Batch i has the windows around the centers first + i, and BATCH - 1 more, each `apart` from the one before, as
        far as they are before `last`.
    negatives, tables, states
        As in `draw_targets`.
    rows
        Receives the row of negative k of batch i at [k, i], those of markets window by window behind, and then those
        of its own words, shape (negatives and what fills the last group, and BATCH, RUN).
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
            rows[k, i] = output_row(tables, pick(negatives.table, mix(states[i] + salt)))
    for window in range(BATCH):
        own, center, at = rows[n_shared + window], first + window * apart, window * MAX_TARGETS
        inside = min(n, max(last - center, 0))
        for i in range(inside):
            own[i] = output_row(tables, segment.tokens[center + i])
            signs[i, groups - 1, at + OWN] = 1.0
        for k in range(negatives.negative):
            group, lane, drawn = k // size, at + k % size, rows[k]
            for i in range(inside):
                signs[i, group, lane] = np.float32(0.0 if drawn[i] == own[i] else -1.0)
        for i in range(inside, n):  # no window is left: its targets are any row, and do not count
            own[i] = rows[0, i]
            signs[i, :, at : at + MAX_TARGETS] = 0.0
    if negatives.market_negative > 0:
        _draw_batches_near(segment, first, n, apart, last, negatives, tables, rows, signs, size)


@kernel
def _draw_batches_near(
    segment: Any, first: Any, n: Any, apart: Any, last: Any, negatives: Any, tables: Any, rows: Any, signs: Any,
    size: Any,
) -> None:  # fmt: skip
    """Draw the negatives of each window's market, apart from the others as `_draw_near` does."""
    n_shared, markets = len(rows) - BATCH, negatives.markets
    for window in range(BATCH):
        own, center = rows[n_shared + window], first + window * apart
        for m in range(negatives.market_negative):
            k = negatives.negative + window * negatives.market_negative + m
            group, lane, drawn = k // size, window * MAX_TARGETS + k % size, rows[k]
            salt = np.uint64(negatives.negative + 1 + m) * GOLDEN
            for i in range(min(n, max(last - center, 0))):
                word, state = segment.tokens[center + i], draw(negatives.key, segment.positions[center + i])
                drawn[i] = output_row(tables, pick_in_market(markets, word, mix(state + salt)))
                signs[i, group, lane] = np.float32(0.0 if drawn[i] == own[i] else -1.0)
