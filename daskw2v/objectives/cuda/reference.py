"""The references of kernels over pieces of text, in float64 NumPy, with one warp."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from daskw2v.config.params import Params
from daskw2v.objectives.base import Rate
from daskw2v.objectives.cuda.access import FLUSH
from daskw2v.objectives.noise import BATCH
from daskw2v.objectives.reference import Goals, Rows, Window, WindowRule, gradient, sharing, windows_in
from daskw2v.objectives.settings import ContextsTogether
from daskw2v.objectives.windows import Windows, windows_of
from daskw2v.sampling.segments import Segment
from daskw2v.types import Float64Array, Int64Array


class Care(NamedTuple):
    """The damping of updates by a kernel, and the cuts of its work.

    Parameters
    ----------
    source, output
        Factors of the updates of each row, shape (rows, 1).
    size
        Targets of a group.
    kept
        Function that returns whether contexts of a word have a copy in each slot.
    pieces
        Number of pieces of the range, which are trained one after the other.
    top, flushed
        The first rows of the output table, of which a warp has a copy; and what their updates are multiplied by when it
        is flushed, shape (top, 1).
    """

    source: Rows
    output: Rows
    size: int
    kept: Callable[[int], bool] = lambda _: False
    pieces: int = 1
    top: int = 0
    flushed: Rows = np.ones((0, 1))


class WindowRows(NamedTuple):
    """A window, all rows of contexts and their copies, the rows of its contexts, and all rows of targets.

    Of the output rows, copies of the top stand behind the table's own.
    """

    window: Window
    rows: Float64Array
    contexts: list[int]
    output: Float64Array


def windows_of_warp(
    segment: Segment, first: int, last: int, source: Float64Array, output: Float64Array, windows: Windows, care: Care
) -> Iterator[WindowRows]:
    """Yield the windows of a range piece by piece; trained rows are back in both tables at the end."""
    n_words, tokens, reach = len(source), segment.tokens, windows.window
    rows = np.concatenate([source, np.zeros((len(tokens), source.shape[1]))])
    before = rows.copy()

    top, n_output = min(care.top, len(output)), len(output)
    targets, taken = np.concatenate([output, output[:top]]), output[:top].copy()

    def take_top() -> None:
        taken[:] = targets[n_output:] = targets[:top]

    def give_top() -> None:
        targets[:top] += care.flushed[:top] * (targets[n_output:] - taken)

    def enter(places: range) -> None:
        for i in places:
            before[n_words + i] = rows[n_words + i] = rows[tokens[i]]

    def leave(places: range) -> None:
        for i in places:
            if care.kept(tokens[i]):
                rows[tokens[i]] += care.source[tokens[i]] * (rows[n_words + i] - before[n_words + i])

    for piece in range(care.pieces):
        start, stop = (first + (last - first) * number // care.pieces for number in (piece, piece + 1))
        take_top()
        while start < stop:
            sentence = int(np.searchsorted(segment.bounds, start, side="right"))
            low, high = int(segment.bounds[sentence - 1]), int(segment.bounds[sentence])
            end = min(stop, high)
            enter(range(max(low, start - reach), min(high, start + reach)))
            for center in range(start, end):
                enter(range(center + reach, min(high, center + reach + 1)))
                (window,) = windows_in(segment, center, center + 1, windows)
                contexts = [n_words + i if care.kept(tokens[i]) else int(tokens[i]) for i in window.places]
                yield WindowRows(window, rows, contexts, targets)
                leave(range(max(low, center - reach), center - reach + 1))
                if (center - first) % FLUSH == 0:
                    give_top()
                    take_top()
            leave(range(max(low, end - reach), min(high, end + reach)))
            start = end
        give_top()
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
    care: Care,
    rule: WindowRule,
) -> tuple[int, float]:
    """Train like the kernel of an objective, by its rule and its `prepared`; tables are (rows, D) float64."""
    params: Params = prepared.params
    windows, examples, loss = windows_of(params, rate, epoch), 0, 0.0
    positions = segment.positions[first:last]
    for number, this in enumerate(windows_of_warp(segment, first, last, source, output, windows, care)):
        window, rows, contexts, nodes = this
        goals: list[Goals] = [
            (np.where(targets < care.top, targets + len(output), targets), signs)
            for targets, signs in rule.goals(prepared, epoch, window, number, positions)
        ]
        if rule.as_one:
            if contexts:
                mean = ContextsTogether.of(params).cbow_mean
                loss += train_hidden(rows, contexts, nodes, goals[0], window.alpha, mean, care)
                examples += 1
            continue
        examples += len(contexts)
        for group, goal in zip(sharing(contexts, goals), goals, strict=True):
            loss += train_targets(rows, group, nodes, goal, window.alpha, care)
    return examples, loss


def train_targets(rows: Rows, contexts: list[int], output: Rows, goals: Goals, alpha: float, care: Care) -> float:
    """Train contexts one by one against targets, which are updated when all have met them, group by group."""
    (targets, signs), loss = goals, 0.0
    for g in range(0, len(targets), care.size):
        group, sign = targets[g : g + care.size], signs[g : g + care.size]
        near, updates = output[group], np.zeros((len(group), output.shape[1]))
        for context in contexts:
            x = rows[context].copy()
            gain, lost = gradient(near @ x, sign, alpha)
            own = context < len(care.source)  # a word's row itself, no copy of it
            rows[context] += (care.source[context] if own else 1.0) * (gain @ near)
            updates += gain[:, None] * x
            loss += lost
        np.add.at(output, group, _factors(care.output, output)[group] * updates)
    return loss


def train_hidden(
    rows: Rows, contexts: list[int], output: Rows, goals: Goals, alpha: float, mean: bool, care: Care
) -> float:
    """Train the hidden vector of contexts against targets group by group; it stays until all are updated."""
    (targets, signs), loss, n = goals, 0.0, len(contexts)
    x = rows[contexts].sum(axis=0) / (n if mean else 1)
    update = np.zeros_like(x)
    for g in range(0, len(targets), care.size):
        group, sign = targets[g : g + care.size], signs[g : g + care.size]
        near = output[group]
        gain, lost = gradient(near @ x, sign, alpha)
        update += gain @ near
        loss += lost
        np.add.at(output, group, _factors(care.output, output)[group] * gain[:, None] * x)
    np.add.at(rows, contexts, _factors(care.source, rows)[contexts] * update / (1 if mean else n))
    return loss


def train_items(
    source: Rows, contexts: Int64Array, output: Rows, goals: Goals, own: Goals, alpha: float, _: int, *, care: Care
) -> float:
    """Train a batch of a bucket, BATCH items at a time: contexts against groups of targets, then one target each."""
    (targets, signs), (alone, kind), loss = goals, own, 0.0
    for batch in _batches(contexts):
        groups = [*_groups((targets, signs[batch]), care.size), (alone[batch], np.diag(kind[batch]))]
        loss += _train_batch(source, contexts[batch], output, groups, alpha, care)
    return loss


def train_step(
    source: Rows, contexts: list[int], output: Rows, goals: Goals, alpha: float, _: int, *, care: Care
) -> float:
    """Train contexts against groups of targets, BATCH contexts at a time."""
    groups, rows = [*_groups((goals[0], goals[1][None]), care.size)], np.array(contexts)
    return sum(_train_batch(source, rows[batch], output, groups, alpha, care) for batch in _batches(rows))


def _batches(contexts: Int64Array) -> Iterator[slice]:
    return (slice(i, i + BATCH) for i in range(0, len(contexts), BATCH))


def _groups(goals: Goals, size: int) -> Iterator[Goals]:
    targets, signs = goals
    return ((targets[g : g + size], signs[:, g : g + size]) for g in range(0, len(targets), size))


def _train_batch(
    source: Rows, contexts: Int64Array, output: Rows, groups: list[Goals], alpha: float, care: Care
) -> float:
    x, loss = source[contexts], 0.0
    updates = np.zeros_like(x)
    for met, sign in groups:
        near = output[met]
        gain, lost = gradient(x @ near.T, sign, alpha)
        updates += gain @ near
        loss += lost
        np.add.at(output, met, care.output[met] * (gain.T @ x))
    np.add.at(source, contexts, care.source[contexts] * updates)
    return loss


def _factors(factors: Float64Array, rows: Float64Array) -> Float64Array:
    """Return the factor of each row; copies behind the table's own have none."""
    return np.concatenate([factors, np.ones((len(rows) - len(factors), 1))])
