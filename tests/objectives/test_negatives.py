"""Targets of negative sampling: the kernels' draws are the reference's."""

import numpy as np
import pytest
from scipy.stats import chisquare

from daskw2v.config.params import Params
from daskw2v.kernels.jit import kernel
from daskw2v.kernels.rng import draw
from daskw2v.kernels.simd import aligned_zeros
from daskw2v.objectives.base import HotRows, Tables
from daskw2v.objectives.cpu.centers import RUN, TableAddresses
from daskw2v.objectives.cpu.hidden import OWN
from daskw2v.objectives.cpu.steps import MAX_TARGETS, group_sizes
from daskw2v.objectives.cpu.targets import batch_scratch, draw_batches, draw_targets, target_scratch, tile_of
from daskw2v.objectives.noise import BATCH, negatives_of, pick_in_market, prepare_noise, with_markets, word_tables
from daskw2v.objectives.reference import Window, goals_of, targets_of
from daskw2v.sampling.segments import Segment
from tests.support.markets import prepare

WIDTH, BASE = 16, 4096


@kernel
def draw_all(words, positions, negatives, hot, states, rows, signs):
    """Call `draw_targets` as the kernels do."""
    for i in range(len(words)):
        states[i] = draw(negatives.key, positions[i])
    draw_targets(words, states, negatives, TableAddresses(0, BASE, WIDTH, hot), rows, signs)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("negative", [1, 2, 5, 7, 8, 10, 20])
@pytest.mark.parametrize("n_words", [1, 2, 40])
def test_draw_targets__are_those_of_the_reference(negative, n_words):
    rng = np.random.default_rng(negative)
    params = Params(negative=negative, seed=3)
    prepared = prepare_noise(params, rng.integers(1, 99, n_words))
    negatives = negatives_of(prepared, epoch=2)
    hot = HotRows(min(3, n_words), n_words, n_words, 1)
    n, room = 11, 13
    scratch = target_scratch(params, Tables(aligned_zeros(0), aligned_zeros(0), WIDTH, hot), room)
    rows, signs = scratch.rows.reshape(-1, room), scratch.signs[: len(scratch.rows)].reshape(room, -1)
    words, positions = rng.integers(0, n_words, n).astype(np.int32), rng.integers(0, 10**12, n)
    draw_all(words, positions, negatives, hot, scratch.states, rows, signs)
    for i in range(n):
        window = Window(int(words[i]), int(positions[i]), [], [], 0.0)
        targets, expected = targets_of(prepared.noise, negatives.key, window, negative)
        targets = np.concatenate([targets, [words[i]] * (len(rows) - 1 - negative)]).astype(np.int64)
        assert rows[:, i].tolist() == (BASE + (targets + n_words * (targets < hot.rows)) * (4 * WIDTH)).tolist()
        assert signs[i].tolist() == [*expected, *[0.0] * (len(rows) - 1 - negative)], "what fills up does not count"
    assert not rows[:, n:].any(), "windows that are not drawn stay as they were"


def test_negatives_of__differ_by_epoch_and_seed():
    prepared = [prepare_noise(Params(seed=seed), np.array([3, 2])) for seed in (1, 2)]
    assert len({int(negatives_of(p, epoch).key) for p in prepared for epoch in range(3)}) == 6


@pytest.mark.parametrize("negative", [*range(1, 40), 1024])
def test_tile_of__holds_all_targets_in_as_few_groups_as_can_be(negative):
    groups, size = group_sizes(negative + 1)
    assert len(tile_of(Params(negative=negative))) == size <= MAX_TARGETS
    assert (groups - 1) * MAX_TARGETS < negative + 1 <= groups * size


def test_word_tables__have_two_vectors_for_each_word():
    assert word_tables(Params(), 7) == {"input": 7, "output": 7}


@kernel
def draw_some(segment, first, n, apart, last, negatives, hot, states, rows, signs, size):
    """Call `draw_batches` as the kernels do."""
    tables = TableAddresses(0, BASE, WIDTH, hot)
    draw_batches(segment, first, n, apart, last, negatives, tables, states, rows, signs, size)


@pytest.mark.parametrize("negative", [1, 5, 7, 8, 20])
def test_draw_batches__are_the_negatives_of_the_first_window_and_each_ones_own_word(negative):
    rng, n_words = np.random.default_rng(negative), 6
    params = Params(negative=negative, seed=3)
    prepared = prepare_noise(params, rng.integers(1, 99, n_words))
    negatives, hot = negatives_of(prepared, epoch=2), HotRows(3, n_words, n_words, 1)
    scratch = batch_scratch(params, Tables(aligned_zeros(0), aligned_zeros(0), WIDTH, hot))
    groups, size = group_sizes(negative, OWN)
    rows = scratch.rows.reshape(-1, RUN)
    signs = scratch.signs[: RUN * groups * BATCH * MAX_TARGETS].reshape(RUN, groups, BATCH, MAX_TARGETS)
    tokens = rng.integers(0, n_words, 50).astype(np.int32)
    segment = Segment(tokens, np.arange(0, 500, 10), np.array([0, 50]))
    first, n, apart, last = 3, 9, 12, 50  # the last stream has 11 centers left where the others have 12
    for start in (first, first + 6):  # the second finds what the first left
        draw_some(
            segment,
            start,
            n - 3,
            apart,
            last,
            negatives,
            hot,
            scratch.states,
            rows,
            signs.reshape(RUN, groups, -1),
            size,
        )
        for i in range(n - 3):
            centers = [start + i + w * apart for w in range(BATCH)]
            window = Window(-1, int(segment.positions[start + i]), [], [], 0.0)
            drawn = targets_of(prepared.noise, negatives.key, window, negative)[0][1:]
            assert rows[:negative, i].tolist() == (BASE + (drawn + n_words * (drawn < 3)) * (4 * WIDTH)).tolist()
            for w, center in enumerate(centers):
                told = signs[i, :, w]
                if center >= last:
                    assert not told.any()
                    continue
                word = tokens[center]
                assert rows[groups * size + w, i] == BASE + (word + n_words * (word < 3)) * (4 * WIDTH)
                assert told[-1, OWN] == 1.0
                expected = np.where(drawn == word, 0.0, -1.0)
                assert told[:, :size].ravel()[:negative].tolist() == expected.tolist()
                assert np.abs(told).sum() == np.abs(expected).sum() + 1, "what fills up does not count"


@kernel
def draw_near(markets, word, bits, drawn):
    """Count the words that bits choose from the market of a word."""
    for i in range(len(bits)):
        drawn[pick_in_market(markets, word, bits[i])] += 1


@pytest.mark.parametrize("exponent", [0.75, 0.0, -0.5])
def test_pick_in_market__draws_words_of_the_market_by_their_counts(exponent):
    counts, markets = np.array([500, 90, 80, 20, 7, 7, 1]), np.array([4, 1, -1, 4, 1, 4, 0], np.int32)
    params = Params(market_negative=1, ns_exponent=exponent)
    prepared = with_markets(prepare_noise(params, counts), counts, markets)
    bits = np.random.default_rng(0).integers(0, 2**64, 200_000, np.uint64)
    for word, market in enumerate(markets):
        drawn = np.zeros(len(counts), np.int64)
        draw_near(prepared.markets, word, bits, drawn)
        of_market = (markets == market) | (market < 0)  # a word without market draws all words
        weights = counts[of_market] ** exponent
        assert not drawn[~of_market].any()
        if len(weights) > 1:
            assert chisquare(drawn[of_market], len(bits) * weights / weights.sum()).pvalue > 1e-4


def test_markets__are_none_where_nobody_draws_from_them():
    counts = np.array([3, 2])
    assert not any(map(len, prepare_noise(Params(), counts).markets))
    assert prepare_noise(Params(market_negative=1), counts).markets.spans.tolist() == [2, 2], "of all words"


def test_words_that_are_never_drawn__have_no_market():
    counts, params = np.array([5, 0, 0]), Params(market_negative=1)
    prepared = with_markets(prepare_noise(params, counts), counts, np.array([0, 0, 1], np.int32))
    assert prepared.markets.spans.tolist() == [3 << 32 | 1, 3, 3]


@pytest.mark.parametrize(("negative", "market_negative"), [(1, 1), (5, 3), (7, 9)])
def test_draw_targets__with_those_of_markets_are_those_of_the_reference(negative, market_negative):
    rng, n_words = np.random.default_rng(negative), 30
    params = Params(negative=negative, market_negative=market_negative, seed=3)
    prepared = prepare(params, rng.integers(1, 99, n_words), rng)
    hot = HotRows(3, n_words, n_words, 1)
    n, room = 11, 13
    scratch = target_scratch(params, Tables(aligned_zeros(0), aligned_zeros(0), WIDTH, hot), room)
    rows, signs = scratch.rows.reshape(-1, room), scratch.signs[: len(scratch.rows)].reshape(room, -1)
    words, positions = rng.integers(0, n_words, n).astype(np.int32), rng.integers(0, 10**12, n)
    draw_all(words, positions, negatives_of(prepared, epoch=2), hot, scratch.states, rows, signs)
    filled = [0.0] * (len(rows) - 1 - negative - market_negative)
    for i in range(n):
        targets, expected = goals_of(prepared, 2, Window(int(words[i]), int(positions[i]), [], [], 0.0))
        targets = np.concatenate([targets, [words[i]] * len(filled)]).astype(np.int64)
        assert rows[:, i].tolist() == (BASE + (targets + n_words * (targets < hot.rows)) * (4 * WIDTH)).tolist()
        assert signs[i].tolist() == [*expected, *filled]


@pytest.mark.parametrize("market_negative", [1, 4])
def test_draw_batches__keep_negatives_of_markets_apart(market_negative):
    """Each window meets those of its own word's market, and not those of the others."""
    rng, n_words, negative = np.random.default_rng(1), 9, 5
    params = Params(objective="cbow_ns", negative=negative, market_negative=market_negative, seed=3)
    prepared, hot = prepare(params, rng.integers(1, 99, n_words), rng), HotRows(0, n_words, n_words, 1)
    scratch = batch_scratch(params, Tables(aligned_zeros(0), aligned_zeros(0), WIDTH, hot))
    groups, size = group_sizes(negative + BATCH * market_negative, OWN)
    rows = scratch.rows.reshape(-1, RUN)
    signs = scratch.signs[: RUN * groups * BATCH * MAX_TARGETS].reshape(RUN, groups, BATCH, MAX_TARGETS)
    segment = Segment(rng.integers(0, n_words, 50).astype(np.int32), np.arange(0, 500, 10), np.array([0, 50]))
    first, n, apart, last = 3, 9, 12, 50
    flat = signs.reshape(RUN, groups, -1)
    draw_some(segment, first, n, apart, last, negatives_of(prepared, 2), hot, scratch.states, rows, flat, size)
    for i, w in np.ndindex(n, BATCH):
        center, told = first + i + w * apart, signs[i, :, w, :size].ravel()
        if center >= last:
            assert not told.any()
            continue
        window = Window(int(segment.tokens[center]), int(segment.positions[center]), [], [], 0.0)
        targets, expected = goals_of(prepared, 2, window, 0, int(segment.positions[first + i]))
        mine = [*range(negative), *(negative + w * market_negative + m for m in range(market_negative))]
        assert rows[mine, i].tolist() == (BASE + targets[1:] * (4 * WIDTH)).tolist()
        assert told[mine].tolist() == expected[1:].tolist()
        assert np.count_nonzero(told) == np.count_nonzero(expected[1:]), "others do not count"
