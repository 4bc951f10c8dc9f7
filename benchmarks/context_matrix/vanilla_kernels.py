"""Minibatches of skip-gram pairs and Adam on one core: the kernels of `vanilla`.

All dots of a batch are of the rows before it, so pairs need no batch in memory: their gradients add up in a place of
each row met, until the batch is full and Adam moves these rows, once each.

Dense Adam moves rows that a batch does not meet by what is left of their moments: where the second's root is far above
epsilon, by sums that are known beforehand. So a row catches up when it is next met.
"""

from typing import Any, NamedTuple

import numpy as np

from daskw2v.kernels.alias import pick
from daskw2v.kernels.jit import inline, kernel
from daskw2v.kernels.rng import GOLDEN, draw, mix
from daskw2v.kernels.simd import huge_zeros
from daskw2v.types import Float32Array, Float64Array, Int32Array, Int64Array, UInt64Array

BETA1, BETA2 = 0.9, 0.999  # Adam's, as Chainer has them
_NEW1, _NEW2, _EPSILON = np.float32(1 - BETA1), np.float32(1 - BETA2), np.float32(1e-8)
_ZERO, _ONE = np.float32(0), np.float32(1)
LONG = 1 << 14  # batches after which the moments' correction, and what is left of old ones, are nothing to float32


class Adam(NamedTuple):
    """Adam's batches, and its factors by number of batches up to LONG."""

    batch: int  # pairs
    lazy: bool  # whether rows that a batch does not meet stay
    alpha: Float64Array  # learning rate of batch t with the correction of both moments in it
    left: Float64Array  # sum of the rates of all batches after t, each by how far a row not met still moves then
    first: Float64Array  # powers of beta1, of beta2, and of beta1 / sqrt(beta2)
    second: Float64Array
    ratio: Float64Array


def adam_of(batch: int, lazy: bool, alpha: float) -> Adam:
    """Return Adam with a learning rate."""
    t = np.arange(LONG + 1, dtype=np.float64)
    first, second = np.power(BETA1, t), np.power(BETA2, t)
    ratio = first / np.sqrt(second)
    corrected = np.full(LONG + 1, alpha)
    corrected[1:] *= np.sqrt(1 - second[1:]) / (1 - first[1:])
    left = np.full(LONG + 1, alpha * ratio[1] / (1 - ratio[1]))
    for i in range(LONG, 0, -1):
        left[i - 1] = ratio[1] * (corrected[i] + left[i])
    return Adam(batch, lazy, corrected, left, first, second, ratio)


class State(NamedTuple):
    """What a training goes on from."""

    rows: Float32Array  # each input row, then each output row, beside its two moments: shape (2 V, 3, width)
    slots: Int32Array  # place of each row's gradient in this batch, or -1
    seen: Int32Array  # batch that last met each row
    met: Int64Array  # rows that this batch met
    gradients: Float32Array  # one for each of them, zeros elsewhere
    counters: Int64Array  # pairs of this batch so far, rows that it met, and batches done


def make_state(n_words: int, width: int, negative: int, batch: int) -> State:
    """Return the state of a training of so many words, all of its rows zeros."""
    most = min(n_words, batch) + min(n_words, (negative + 1) * batch)
    return State(
        rows=huge_zeros(2 * n_words * 3 * width).reshape(2 * n_words, 3, width),
        slots=np.full(2 * n_words, -1, np.int32),
        seen=np.zeros(2 * n_words, np.int32),
        met=np.zeros(most, np.int64),
        gradients=huge_zeros(most * width).reshape(most, width),
        counters=np.zeros(3, np.int64),
    )


class Draws(NamedTuple):
    """Windows, which do not shrink, and how many negatives are drawn from a stream by an alias table."""

    window: int
    negative: int
    key: np.uint64
    noise: UInt64Array


@kernel
def train(segment: Any, first: Any, last: Any, state: Any, draws: Any, adam: Any) -> Any:
    """Train the pairs of the centers first..last-1 of a segment; return how many there were."""
    tokens, positions, bounds = segment.tokens, segment.positions, segment.bounds
    rows, gradients, counters, noise = state.rows, state.gradients, state.counters, draws.noise
    n_words, width, negative = len(rows) // 2, rows.shape[2], draws.negative
    targets, places = np.empty(negative + 1, np.int64), np.empty(negative + 1, np.int64)
    dots = np.empty(negative + 1, np.float32)
    sentence, pairs = np.searchsorted(bounds, first, side="right") - 1, 0
    for center in range(first, last):
        while center >= bounds[sentence + 1]:
            sentence += 1
        drawn = draw(draws.key, positions[center])
        start = max(bounds[sentence], center - draws.window)
        stop = min(bounds[sentence + 1], center + draws.window + 1)
        for i in range(start, stop):
            if i == center:
                continue
            word = np.int64(tokens[i])
            own = _place(word, state, adam)
            targets[0] = n_words + tokens[center]
            for k in range(1, negative + 1):
                targets[k] = n_words + pick(noise, mix(drawn + np.uint64(k) * GOLDEN))
            drawn += np.uint64(negative) * GOLDEN
            for k in range(negative + 1):
                places[k] = _place(targets[k], state, adam)
            for k in range(negative + 1):
                target, dot = targets[k], _ZERO
                for c in range(width):
                    dot += rows[word, 0, c] * rows[target, 0, c]
                dots[k] = dot if k else -dot
            for k in range(negative + 1):
                target, place = targets[k], places[k]
                if k and target == targets[0]:
                    continue  # no negative of itself
                gain = _ONE / (_ONE + np.exp(-dots[k]))
                gain = -gain if k else gain
                for c in range(width):
                    gradients[place, c] += gain * rows[word, 0, c]
                for c in range(width):
                    gradients[own, c] += gain * rows[target, 0, c]
            pairs += 1
            counters[0] += 1
            if counters[0] == adam.batch:
                step(state, adam)
    return pairs


@inline
def _place(row: Any, state: Any, adam: Any) -> Any:
    """Return where a row's gradient adds up; one that the batch has not met catches up."""
    place = np.int64(state.slots[row])
    if place < 0:
        place, done = state.counters[1], state.counters[2]
        state.slots[row], state.met[place] = place, row
        state.counters[1] += 1
        if not adam.lazy and state.seen[row] < done:
            _catch_up(row, state, adam)
    return place


@inline
def _catch_up(row: Any, state: Any, adam: Any) -> None:
    """Move a row as the batches since it was met would have by its moments then."""
    seen, done, rows = np.int64(state.seen[row]), state.counters[2], state.rows
    rate = np.float32(adam.left[min(seen, LONG)] - adam.ratio[min(done - seen, LONG)] * adam.left[min(done, LONG)])
    for c in range(rows.shape[2]):
        rows[row, 0, c] += rate * rows[row, 1, c] / (np.sqrt(rows[row, 2, c]) + _EPSILON)


@kernel
def step(state: Any, adam: Any) -> None:
    """Take Adam's step of the rows that the batch met, and begin the next one."""
    rows, gradients, counters = state.rows, state.gradients, state.counters
    counters[2] += 1
    t = counters[2]
    alpha = np.float32(adam.alpha[min(t, LONG)])
    for i in range(counters[1]):
        row = state.met[i]
        since = 1 if adam.lazy else min(t - state.seen[row], LONG)
        keep1, keep2 = np.float32(adam.first[since]), np.float32(adam.second[since])
        for c in range(rows.shape[2]):
            g = gradients[i, c]
            first, second = keep1 * rows[row, 1, c] + _NEW1 * g, keep2 * rows[row, 2, c] + _NEW2 * g * g
            rows[row, 0, c] += alpha * first / (np.sqrt(second) + _EPSILON)
            rows[row, 1, c], rows[row, 2, c], gradients[i, c] = first, second, _ZERO
        state.slots[row], state.seen[row] = -1, t
    counters[0], counters[1] = 0, 0


@kernel
def settle(state: Any, adam: Any) -> None:
    """Let all rows of dense Adam catch up, at the end of a training."""
    for row in range(len(state.rows)):
        _catch_up(row, state, adam)
