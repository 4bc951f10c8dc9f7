"""The references of kernels over pieces of text, in float64 NumPy, with one warp."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from daskw2v.config.params import Params
from daskw2v.objectives.base import Rate
from daskw2v.objectives.cuda.access import FLUSH
from daskw2v.objectives.noise import BATCH
from daskw2v.objectives.reference import Goals, Rows, Window, WindowRule, gradient, group_contexts, list_windows
from daskw2v.objectives.settings import ContextsTogether
from daskw2v.objectives.windows import Windows, make_windows
from daskw2v.sampling.segments import Segment
from daskw2v.types import Float64Array, Int64Array


class Damping(NamedTuple):
    """The damping of updates by a kernel, and the division of its work.

    Parameters
    ----------
    source, output
        Factors of the updates of each row of a table, shape (rows, 1).
    size
        Targets of a group.
    is_kept
        Function from a word to whether its contexts have copies in the ring.
    pieces
        Number of pieces of the range, which are trained one after the other.
    top, flushed
        Number of first rows of the output table that a warp copies; and the factors of their updates when the copies
        are flushed, shape (top, 1).
    """

    source: Rows
    output: Rows
    size: int
    is_kept: Callable[[int], bool] = lambda _: False
    pieces: int = 1
    top: int = 0
    flushed: Rows = np.ones((0, 1))


class WindowRows(NamedTuple):
    """A window, all input rows and their copies, the indices of its contexts' rows among these, and all output rows.

    The copies follow the input rows, one for each token; copies of the top rows follow the output rows.
    """

    window: Window
    rows: Float64Array
    contexts: list[int]
    output: Float64Array


def list_windows_of_warp(
    segment: Segment,
    first: int,
    last: int,
    source: Float64Array,
    output: Float64Array,
    windows: Windows,
    damping: Damping,
) -> Iterator[WindowRows]:
    """Yield the windows of the centers first..last-1, piece by piece, for the caller to train the rows in place.

    At the end `source` and `output` have the trained rows.
    """
    n_words, tokens, reach = len(source), segment.tokens, windows.window
    rows = np.concatenate([source, np.zeros((len(tokens), source.shape[1]))])
    before = rows.copy()

    top, n_output = min(damping.top, len(output)), len(output)
    targets, fetched = np.concatenate([output, output[:top]]), output[:top].copy()

    def fetch_top() -> None:
        """Copy the top rows behind the output rows."""
        fetched[:] = targets[n_output:] = targets[:top]

    def flush_top() -> None:
        """Add the damped changes of the copies to the top rows."""
        targets[:top] += damping.flushed[:top] * (targets[n_output:] - fetched)

    def enter(indices: range) -> None:
        """Copy the rows of the tokens at these indices to the ring."""
        for i in indices:
            before[n_words + i] = rows[n_words + i] = rows[tokens[i]]

    def leave(indices: range) -> None:
        """Add the damped changes of the rows at these indices of the ring to the input rows."""
        for i in indices:
            if damping.is_kept(tokens[i]):
                rows[tokens[i]] += damping.source[tokens[i]] * (rows[n_words + i] - before[n_words + i])

    for piece in range(damping.pieces):
        start, stop = (first + (last - first) * number // damping.pieces for number in (piece, piece + 1))
        fetch_top()
        while start < stop:
            sentence = int(np.searchsorted(segment.bounds, start, side="right"))
            low, high = int(segment.bounds[sentence - 1]), int(segment.bounds[sentence])
            end = min(stop, high)
            enter(range(max(low, start - reach), min(high, start + reach)))
            for center in range(start, end):
                enter(range(center + reach, min(high, center + reach + 1)))
                (window,) = list_windows(segment, center, center + 1, windows)
                contexts = [n_words + i if damping.is_kept(tokens[i]) else int(tokens[i]) for i in window.indices]
                yield WindowRows(window, rows, contexts, targets)
                leave(range(max(low, center - reach), center - reach + 1))
                if (center - first) % FLUSH == 0:
                    flush_top()
                    fetch_top()
            leave(range(max(low, end - reach), min(high, end + reach)))
            start = end
        flush_top()
    source[:], output[:] = rows[:n_words], targets[:n_output]


def train(
    segment: Segment,
    first: int,
    last: int,
    source: Rows,
    output: Rows,
    rate: Rate,
    epoch: int,
    prepared: Any,
    damping: Damping,
    rule: WindowRule,
) -> tuple[int, float]:
    """Train the centers first..last-1 in place like a kernel, by a rule, in tables of (rows, D) float64.

    Return the number of examples and their summed loss.
    """
    params: Params = prepared.params
    windows, examples, loss = make_windows(params, rate, epoch), 0, 0.0
    positions = segment.positions[first:last]
    for number, this in enumerate(list_windows_of_warp(segment, first, last, source, output, windows, damping)):
        window, rows, contexts, nodes = this
        goals: list[Goals] = [
            (np.where(targets < damping.top, targets + len(output), targets), signs)
            for targets, signs in rule.goals(prepared, epoch, window, number, positions)
        ]
        if rule.as_one:
            if contexts:
                mean = ContextsTogether.of(params).cbow_mean
                loss += train_hidden(rows, contexts, nodes, goals[0], window.alpha, mean, damping)
                examples += 1
            continue
        examples += len(contexts)
        for group, goal in zip(group_contexts(contexts, goals), goals, strict=True):
            loss += train_targets(rows, group, nodes, goal, window.alpha, damping)
    return examples, loss


def train_targets(rows: Rows, contexts: list[int], output: Rows, goals: Goals, alpha: float, damping: Damping) -> float:
    """Train contexts one by one against groups of targets, updated after all contexts; return the loss."""
    (targets, signs), loss = goals, 0.0
    for g in range(0, len(targets), damping.size):
        group, sign = targets[g : g + damping.size], signs[g : g + damping.size]
        near, updates = output[group], np.zeros((len(group), output.shape[1]))
        for context in contexts:
            x = rows[context].copy()
            gain, lost = gradient(near @ x, sign, alpha)
            is_row = context < len(damping.source)  # the row of a word, not a copy
            rows[context] += (damping.source[context] if is_row else 1.0) * (gain @ near)
            updates += gain[:, None] * x
            loss += lost
        np.add.at(output, group, _factors(damping.output, output)[group] * updates)
    return loss


def train_hidden(
    rows: Rows, contexts: list[int], output: Rows, goals: Goals, alpha: float, mean: bool, damping: Damping
) -> float:
    """Train the hidden vector of contexts against groups of targets, then update the contexts; return the loss."""
    (targets, signs), loss, n = goals, 0.0, len(contexts)
    x = rows[contexts].sum(axis=0) / (n if mean else 1)
    update = np.zeros_like(x)
    for g in range(0, len(targets), damping.size):
        group, sign = targets[g : g + damping.size], signs[g : g + damping.size]
        near = output[group]
        gain, lost = gradient(near @ x, sign, alpha)
        update += gain @ near
        loss += lost
        np.add.at(output, group, _factors(damping.output, output)[group] * gain[:, None] * x)
    np.add.at(rows, contexts, _factors(damping.source, rows)[contexts] * update / (1 if mean else n))
    return loss


def train_items(
    source: Rows,
    contexts: Int64Array,
    output: Rows,
    goals: Goals,
    own: Goals,
    alpha: float,
    _: int,
    *,
    damping: Damping,
) -> float:
    """Train a batch of a bucket, BATCH items at a time, against groups of targets, then one each; return the loss.

    Arguments are as in `objectives.reference.train_rows`; `damping` has the size of groups.
    """
    (targets, signs), (own_rows, own_signs), loss = goals, own, 0.0
    for batch in _cut_batches(contexts):
        groups = [*_cut_groups((targets, signs[batch]), damping.size), (own_rows[batch], np.diag(own_signs[batch]))]
        loss += _train_batch(source, contexts[batch], output, groups, alpha, damping)
    return loss


def train_step(
    source: Rows, contexts: list[int], output: Rows, goals: Goals, alpha: float, _: int, *, damping: Damping
) -> float:
    """Train contexts against groups of targets, BATCH contexts at a time; return the loss.

    Arguments are as in `objectives.reference.train_targets`; `damping` has the size of groups.
    """
    groups, rows = [*_cut_groups((goals[0], goals[1][None]), damping.size)], np.array(contexts)
    return sum(_train_batch(source, rows[batch], output, groups, alpha, damping) for batch in _cut_batches(rows))


def _cut_batches(contexts: Int64Array) -> Iterator[slice]:
    """Return slices of BATCH contexts."""
    return (slice(i, i + BATCH) for i in range(0, len(contexts), BATCH))


def _cut_groups(goals: Goals, size: int) -> Iterator[Goals]:
    """Return groups of at most `size` targets, with the signs of all n contexts, shape (n, size)."""
    targets, signs = goals
    return ((targets[g : g + size], signs[:, g : g + size]) for g in range(0, len(targets), size))


def _train_batch(
    source: Rows, contexts: Int64Array, output: Rows, groups: list[Goals], alpha: float, damping: Damping
) -> float:
    """Train a batch of contexts in place against groups of targets; return the loss."""
    x, loss = source[contexts], 0.0
    updates = np.zeros_like(x)
    for targets, sign in groups:
        near = output[targets]
        gain, lost = gradient(x @ near.T, sign, alpha)
        updates += gain @ near
        loss += lost
        np.add.at(output, targets, damping.output[targets] * (gain.T @ x))
    np.add.at(source, contexts, damping.source[contexts] * updates)
    return loss


def _factors(factors: Float64Array, rows: Float64Array) -> Float64Array:
    """Return the factor of each of `rows`, shape (rows, 1): 1 for copies, which follow the rows with `factors`."""
    return np.concatenate([factors, np.ones((len(rows) - len(factors), 1))])
