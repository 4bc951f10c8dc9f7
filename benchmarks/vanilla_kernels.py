"""Minibatches of skip-gram pairs and Adam on one core: the kernels of `benchmarks.vanilla`.

One table holds a record for each row, input rows first, then output rows: the row and its two moments, side by side.
All dots of a batch are of the rows before it, so pairs need no batch in memory: they come CHUNK at a time, and their
gradients add up in a place of each row met, until the batch is full and Adam moves these rows, once each.

Dense Adam moves all rows at each batch, those not met by what is left of their moments. Where the root of the second is
far above epsilon, these moves are a series in beta1 / sqrt(beta2) that both moments' correction alone keeps from being
geometric: its sums are known beforehand. So a row catches up when it is next met, and a batch costs the rows it meets.

Nanoseconds on one core with AVX-512 (d=100, V=18,032, five negatives), each part repeated alone, on a machine in use:
to draw a pair's negatives and find its rows 65, dots 23, sigmoids 4, to add gradients up 51; Adam 50 a row, which is
what 2.7 KB take to read and write, and batches of 1024 have 3.4 rows a pair. So up to there Adam is most of the work.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from daskw2v.kernels import simd
from daskw2v.kernels.alias import pick
from daskw2v.kernels.jit import inline, kernel
from daskw2v.kernels.rng import GOLDEN, draw, mix
from daskw2v.kernels.simd import LANES, SLOTS, aligned_zeros, huge_zeros
from daskw2v.objectives.cpu.steps import (
    MAX_TARGETS,
    address,
    bring,
    columns,
    dots_one,
    floats,
    gradients_each,
    load_int64,
    prefetch_row,
    rows_at,
    splat_of,
)
from daskw2v.sampling.dealing import reach_of
from daskw2v.types import Float32Array

CHUNK = 64  # pairs whose targets are drawn at once: an even number
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # Adam's, as Chainer has them
LONG = 1 << 14  # batches after which the moments' correction, and what is left of old ones, are nothing to float32
_AHEAD = 2  # records that Adam brings close
_PARTS = 3  # of a record

_i64 = ir.IntType(64)


class Decay(NamedTuple):
    """Adam's factors, by number of batches up to LONG.

    Parameters
    ----------
    alpha
        Learning rate of batch t with the correction of both moments in it.
    left
        Sum of the rates of all batches after t, each by how far a row not met still moves then.
    first, second, ratio
        Powers of beta1, of beta2, and of beta1 / sqrt(beta2).
    """

    alpha: npt.NDArray[np.float64]
    left: npt.NDArray[np.float64]
    first: npt.NDArray[np.float64]
    second: npt.NDArray[np.float64]
    ratio: npt.NDArray[np.float64]


def decay_of(alpha: float) -> Decay:
    """Return Adam's factors of a learning rate."""
    t = np.arange(LONG + 1, dtype=np.float64)
    first, second = np.power(BETA1, t), np.power(BETA2, t)
    ratio = first / np.sqrt(second)
    corrected = np.full(LONG + 1, alpha)
    corrected[1:] *= np.sqrt(1 - second[1:]) / (1 - first[1:])
    left = np.full(LONG + 1, alpha * ratio[1] / (1 - ratio[1]))
    for i in range(LONG, 0, -1):
        left[i - 1] = ratio[1] * (corrected[i] + left[i])
    return Decay(corrected, left, first, second, ratio)


class State(NamedTuple):
    """What a training goes on from, and works in.

    Parameters
    ----------
    records
        For each input row, then for each output row: the row, its first moment, its second, `width` floats each.
    slots
        Place of each row's gradient in this batch, or -1, shape (2 V,) int32.
    seen
        Batch that last met each row, shape (2 V,) int32.
    met, gradients
        Rows that this batch met, and a gradient for each of them, zeros elsewhere.
    counters
        Pairs of this batch so far, rows that it met, batches done, and rows met by all of these, int64.
    pairs, states
        Contexts and centers of a chunk, shape (2, CHUNK) int32, and what their draws start from.
    rows
        Addresses of the rows of each pair of a chunk, its input row and its targets, and of their gradients: shape
        (2, 1 + targets, CHUNK + 1) int64.
    signs, values
        Of each pair MAX_TARGETS, float32.
    mantissa, exponent
        The loss as a product.
    """

    records: Float32Array
    slots: npt.NDArray[np.int32]
    seen: npt.NDArray[np.int32]
    met: npt.NDArray[np.int64]
    gradients: Float32Array
    counters: npt.NDArray[np.int64]
    pairs: npt.NDArray[np.int32]
    states: npt.NDArray[np.uint64]
    rows: npt.NDArray[np.int64]
    signs: Float32Array
    values: Float32Array
    mantissa: Float32Array
    exponent: npt.NDArray[np.int32]


def make_state(n_words: int, width: int, negative: int, batch: int) -> State:
    """Return the state of a training of so many words, all of its rows zeros."""
    records, n = huge_zeros(2 * n_words * _PARTS * width), negative + 1
    most = min(n_words, batch) + min(n_words, n * batch)
    return State(
        records=records,
        slots=np.full(2 * n_words, -1, np.int32),
        seen=np.zeros(2 * n_words, np.int32),
        met=np.zeros(most + _AHEAD, np.int64),
        gradients=huge_zeros(most * width),
        counters=np.zeros(4, np.int64),
        pairs=np.zeros((2, CHUNK), np.int32),
        states=np.zeros(CHUNK, np.uint64),
        rows=np.full((2, 1 + n, CHUNK + 1), records.ctypes.data, np.int64),
        signs=aligned_zeros(MAX_TARGETS * CHUNK),
        values=aligned_zeros(MAX_TARGETS * (CHUNK + 1)),
        mantissa=aligned_zeros(SLOTS),
        exponent=aligned_zeros(SLOTS, np.int32),
    )


class Draws(NamedTuple):
    """How pairs are drawn in an epoch.

    Parameters
    ----------
    window, shrink_windows, negative
        As in Params.
    window_key, negative_key
        Streams of the draws of window sizes and of negatives.
    noise
        Alias table of the negatives, shape (V,) uint64.
    """

    window: int
    shrink_windows: bool
    window_key: np.uint64
    negative_key: np.uint64
    negative: int
    noise: npt.NDArray[np.uint64]


class Watched(NamedTuple):
    """Losses of some words' pairs: those whose input row is the word's.

    Parameters
    ----------
    number
        Place of each word in the others, or -1, shape (V,) int32; of length 0 where no word is watched.
    batch
        Pairs and summed loss of each word in this batch, shape (words, 2).
    records
        Batches that met the word, and the sum, and the sum of squares, of its mean loss in each of them: shape
        (stretches of the text, words, 3).
    stretch
        Corpus positions of a stretch.
    """

    number: npt.NDArray[np.int32]
    batch: npt.NDArray[np.float64]
    records: npt.NDArray[np.float64]
    stretch: float


@intrinsic
def _add_gradients(
    typingctx: Any, source: Any, gradient: Any, targets: Any, apart: Any, stride: Any, width: Any, values: Any,
    tile: Any,
) -> Any:  # fmt: skip
    """Add what a pair says to the gradients of its rows, which stay.

    The targets' gradients are named `apart` bytes behind the targets; other arguments as in `objectives.cpu.steps`.
    Equal targets are met one after the other, so that none loses its share.
    """
    i = types.int64

    def codegen(condraws: Any, builder: Any, sig: Any, args: Any) -> Any:
        source, gradient, targets, apart, stride, width, values = args[:7]
        x, gx = floats(builder, source), floats(builder, gradient)
        ys = rows_at(builder, targets, stride, len(tile))
        gys = rows_at(builder, builder.add(targets, apart), stride, len(tile))
        g = [splat_of(builder, floats(builder, values), t) for t in range(len(tile))]
        with columns(builder, width) as k:
            value = simd.load(builder, builder.gep(x, [k]), LANES)
            total = simd.load(builder, builder.gep(gx, [k]), LANES)
            for y, gy, factor in zip(ys, gys, g, strict=True):
                place = builder.gep(gy, [k])
                simd.store(builder, place, simd.fma(builder, factor, value, simd.load(builder, place, LANES)))
                total = simd.fma(builder, factor, simd.load(builder, builder.gep(y, [k]), LANES), total)
            simd.store(builder, builder.gep(gx, [k]), total)
        return condraws.get_dummy_value()

    return types.void(i, i, i, i, i, i, i, tile), codegen


def _root(builder: Any, second: Any) -> Any:
    return simd.inverse_root(builder, builder.fadd(second, simd.constant(EPSILON**2, LANES)))


@intrinsic
def _adam(
    typingctx: Any, record: Any, gradient: Any, ahead: Any, width: Any, alpha: Any, keep1: Any, keep2: Any
) -> Any:
    """Take Adam's step of a record, uphill, and clear its gradient; the record `ahead` comes close meanwhile.

    `keep1` and `keep2` are what is left of the moments.
    """
    i, f = types.int64, types.float32

    def codegen(condraws: Any, builder: Any, sig: Any, args: Any) -> Any:
        record, gradient, ahead, width = args[:4]
        rate, b1, b2 = (simd.splat(builder, value, LANES) for value in args[4:])
        a1, a2 = simd.constant(1 - BETA1, LANES), simd.constant(1 - BETA2, LANES)
        with columns(builder, width) as k:
            places = [_part(builder, record, part, width, k) for part in range(_PARTS)]
            bring(builder, [_part(builder, ahead, part, width, k) for part in range(_PARTS)], _i64(0))
            place = builder.gep(floats(builder, gradient), [k])
            g = simd.load(builder, place, LANES)
            simd.store(builder, place, simd.constant(0.0, LANES))
            row, first, second = (simd.load(builder, p, LANES) for p in places)
            first = simd.fma(builder, a1, g, builder.fmul(b1, first))
            second = simd.fma(builder, builder.fmul(a2, g), g, builder.fmul(b2, second))
            row = simd.fma(builder, builder.fmul(rate, first), _root(builder, second), row)
            for p, value in zip(places, (row, first, second), strict=True):
                simd.store(builder, p, value)
        return condraws.get_dummy_value()

    return types.void(i, i, i, i, f, f, f), codegen


@intrinsic
def _catch_up(typingctx: Any, record: Any, width: Any, rate: Any) -> Any:
    """Move a row by its moments, which stay, as far as `rate` says."""

    def codegen(condraws: Any, builder: Any, sig: Any, args: Any) -> Any:
        rate = simd.splat(builder, args[2], LANES)
        with columns(builder, args[1]) as k:
            places = [_part(builder, args[0], part, args[1], k) for part in range(_PARTS)]
            row, first, second = (simd.load(builder, p, LANES) for p in places)
            row = simd.fma(builder, builder.fmul(rate, first), _root(builder, second), row)
            simd.store(builder, places[0], row)
        return condraws.get_dummy_value()

    return types.void(types.int64, types.int64, types.float32), codegen


def _part(builder: Any, record: Any, part: int, width: Any, k: Any) -> Any:
    return builder.gep(floats(builder, record), [builder.add(builder.mul(width, _i64(part)), k)])


@kernel
def train(
    segment: Any, first: Any, last: Any, most: Any, state: Any, width: Any, batch: Any, lazy: Any, decay: Any,
    draws: Any, watched: Any, origin: Any, tile: Any,
) -> Any:  # fmt: skip
    """Train the pairs of the centers first..last-1 of a segment.

    Parameters
    ----------
    segment, first, last
        Text, and a range of indices into its tokens.
    most
        Pairs after which no center begins.
    state, width, batch
        `State`, the row length in floats, and pairs in a batch.
    lazy, decay
        Whether rows that a batch does not meet stay, and `Decay`.
    draws, watched
        `Draws` and `Watched`.
    origin
        Corpus positions gone through in the epochs before.
    tile
        Tuple as long as a pair has targets.

    Returns
    -------
    pairs, loss, center
        Trained pairs, their summed loss, and the center that is next.
    """
    state.mantissa[:], state.exponent[:] = 1.0, 0
    n_words, (contexts, centers), states, counters = len(state.slots) // 2, state.pairs, state.states, state.counters
    tokens, positions, bounds = segment.tokens, segment.positions, segment.bounds
    sentence = np.searchsorted(bounds, first, side="right") - 1
    n, pairs, center = 0, 0, first
    while center < last and pairs < most:
        while center >= bounds[sentence + 1]:
            sentence += 1
        position = positions[center]
        reach = reach_of(draws.window, draws.shrink_windows, draws.window_key, position)
        start = max(bounds[sentence], center - reach)
        stop = min(bounds[sentence + 1], center + reach + 1)
        drawn = draw(draws.negative_key, position)
        for i in range(start, stop):
            if i == center:
                continue
            contexts[n], centers[n], states[n] = tokens[i], n_words + tokens[center], drawn
            drawn += np.uint64(draws.negative) * GOLDEN
            n += 1
            pairs += 1
            if n == CHUNK or counters[0] + n == batch:
                _add_chunk(n, state, width, lazy, decay, draws, watched, tile)
                n = 0
                if counters[0] == batch:
                    step(state, width, lazy, decay, watched, origin + position)
        center += 1
    if n:
        _add_chunk(n, state, width, lazy, decay, draws, watched, tile)
    product = 1.0
    for lane in range(len(state.mantissa)):
        product *= state.mantissa[lane]
    return pairs, np.log(product) + np.sum(state.exponent) * np.log(2.0), center


@kernel
def _add_chunk(n: Any, state: Any, width: Any, lazy: Any, decay: Any, draws: Any, watched: Any, tile: Any) -> None:
    """Add the gradients of n pairs to those of the batch."""
    _find_rows(n, state, width, lazy, decay, draws)
    sources, stride = address(state.rows), CHUNK + 1
    targets, apart = sources + 8 * stride, 8 * stride * (1 + len(tile))
    values, signs = address(state.values), address(state.signs)
    for i in range(n):
        target = targets + 8 * i
        dots_one((load_int64(sources, i),), target, target + 8, stride, width, values + i * (4 * MAX_TARGETS), tile)
    if len(watched.number):
        _watch(n, state, watched)
    if n % 2:
        state.signs[n * MAX_TARGETS : (n + 1) * MAX_TARGETS] = 0.0
    mantissa, exponent = address(state.mantissa), address(state.exponent)
    for at in range(0, 4 * MAX_TARGETS * n, 4 * SLOTS):
        gradients_each(values + at, SLOTS, signs + at, np.float32(1.0), mantissa, exponent, tile)
    for i in range(n):
        _add_gradients(
            load_int64(sources, i), load_int64(sources + apart, i), targets + 8 * i, apart, stride, width,
            values + i * (4 * MAX_TARGETS), tile,
        )  # fmt: skip
    state.counters[0] += n


@kernel
def _find_rows(n: Any, state: Any, width: Any, lazy: Any, decay: Any, draws: Any) -> None:
    """Draw the targets of n pairs; write the addresses of all rows and of their gradients, and the signs.

    A row that the batch has not met comes close, or catches up.
    """
    (contexts, centers), states, noise = state.pairs, state.states, draws.noise
    slots, seen, met, counters = state.slots, state.seen, state.met, state.counters
    signs, (rows, gradients) = state.signs.reshape(-1, MAX_TARGETS), state.rows
    n_words, left, ratio = len(slots) // 2, decay.left, decay.ratio
    own = rows[1]
    for i in range(n):
        rows[0, i], own[i], signs[i, 0] = contexts[i], centers[i], 1.0
    for k in range(1, len(rows) - 1):
        drawn, salt = rows[k + 1], np.uint64(k) * GOLDEN
        for i in range(n):
            drawn[i] = n_words + pick(noise, mix(states[i] + salt))
        for i in range(n):
            signs[i, k] = np.float32(0.0 if drawn[i] == own[i] else -1.0)
    first_record, first_gradient = address(state.records), address(state.gradients)
    n_met, done, size = counters[1], counters[2], 4 * width
    for k in range(len(rows)):
        for i in range(n):
            row = rows[k, i]
            record, slot = first_record + row * (_PARTS * size), np.int64(slots[row])
            if slot < 0:
                slots[row], met[n_met], slot = n_met, row, n_met
                n_met += 1
                if lazy:
                    prefetch_row(record, width)
                elif seen[row] < done:
                    _catch_up(record, width, _rate_since(np.int64(seen[row]), done, left, ratio))
            rows[k, i], gradients[k, i] = record, first_gradient + slot * size
    counters[1] = n_met


@inline
def _rate_since(seen: Any, done: Any, left: Any, ratio: Any) -> Any:
    """Return how far the batches after `seen` up to `done` have moved a row they did not meet, by its moments then."""
    return np.float32(left[min(seen, LONG)] - ratio[min(done - seen, LONG)] * left[min(done, LONG)])


@inline
def _watch(n: Any, state: Any, watched: Any) -> None:
    """Add the losses of watched words to those of the batch."""
    for i in range(n):
        word = watched.number[state.pairs[0, i]]
        if word < 0:
            continue
        loss = 0.0
        for k in range(i * MAX_TARGETS, i * MAX_TARGETS + state.rows.shape[1] - 1):
            if state.signs[k] != 0.0:
                loss += np.log1p(np.exp(-np.float64(state.signs[k] * state.values[k])))
        watched.batch[word, 0] += 1.0
        watched.batch[word, 1] += loss


@kernel
def step(state: Any, width: Any, lazy: Any, decay: Any, watched: Any, position: Any) -> None:
    """Take Adam's step of the rows that the batch met, and begin the next one."""
    counters, records, gradients = state.counters, address(state.records), address(state.gradients)
    met, seen, slots, record = state.met, state.seen, state.slots, 4 * _PARTS * width
    counters[2] += 1
    t, n, first, second = counters[2], counters[1], decay.first, decay.second
    alpha = np.float32(decay.alpha[min(t, LONG)])
    for i in range(n):
        row, ahead = met[i], met[min(i + _AHEAD, n - 1)]
        since = 1 if lazy else min(t - seen[row], LONG)
        _adam(
            records + row * record, gradients + i * (4 * width), records + ahead * record, width, alpha,
            np.float32(first[since]), np.float32(second[since]),
        )  # fmt: skip
        slots[row], seen[row] = -1, t
    counters[0], counters[1] = 0, 0
    counters[3] += n
    for word in range(len(watched.batch)):
        met = watched.batch[word, 0]
        if met:
            mean = watched.batch[word, 1] / met
            at = min(int(position / watched.stretch), len(watched.records) - 1)
            watched.records[at, word, 0] += 1.0
            watched.records[at, word, 1] += mean
            watched.records[at, word, 2] += mean * mean
            watched.batch[word, :] = 0.0


@kernel
def settle(state: Any, width: Any, decay: Any) -> None:
    """Let all rows of dense Adam catch up, at the end of a training."""
    seen, records, record, done = state.seen, address(state.records), 4 * _PARTS * width, state.counters[2]
    left, ratio = decay.left, decay.ratio
    for row in range(len(seen)):
        _catch_up(records + row * record, width, _rate_since(np.int64(seen[row]), done, left, ratio))
