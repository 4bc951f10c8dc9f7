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
from daskw2v.objectives.cpu.targets import batch_scratch, draw_batches, draw_targets, make_tile, target_scratch
from daskw2v.objectives.noise import BATCH, make_negatives, pick_in_market, prepare_noise, with_markets, word_table_rows
from daskw2v.objectives.reference import Window, draw_goals, draw_pair_targets
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
def test_draw_targets__equal_the_reference(negative, n_words):
    rng = np.random.default_rng(negative)
    params = Params(negative=negative, seed=3)
    prepared = prepare_noise(params, rng.integers(1, 99, n_words))
    negatives = make_negatives(prepared, epoch=2)
    hot = HotRows(min(3, n_words), n_words, n_words, 1)
    n, n_columns = 11, 13
    scratch = target_scratch(params, Tables(aligned_zeros(0), aligned_zeros(0), WIDTH, hot), n_columns)
    rows, signs = scratch.rows.reshape(-1, n_columns), scratch.signs[: len(scratch.rows)].reshape(n_columns, -1)
    words, positions = rng.integers(0, n_words, n).astype(np.int32), rng.integers(0, 10**12, n)
    draw_all(words, positions, negatives, hot, scratch.states, rows, signs)
    for i in range(n):
        window = Window(int(words[i]), int(positions[i]), [], [], 0.0)
        targets, expected = draw_pair_targets(prepared.noise, negatives.key, window, negative)
        targets = np.concatenate([targets, [words[i]] * (len(rows) - 1 - negative)]).astype(np.int64)
        assert rows[:, i].tolist() == (BASE + (targets + n_words * (targets < hot.rows)) * (4 * WIDTH)).tolist()
        assert signs[i].tolist() == [*expected, *[0.0] * (len(rows) - 1 - negative)], "padding does not count"
    assert not rows[:, n:].any(), "windows that are not drawn do not change"


def test_make_negatives__differ_by_epoch_and_seed():
    prepared = [prepare_noise(Params(seed=seed), np.array([3, 2])) for seed in (1, 2)]
    assert len({int(make_negatives(p, epoch).key) for p in prepared for epoch in range(3)}) == 6


@pytest.mark.parametrize("negative", [*range(1, 40), 1024])
def test_make_tile__holds_all_targets_in_the_fewest_groups(negative):
    groups, size = group_sizes(negative + 1)
    assert len(make_tile(Params(negative=negative))) == size <= MAX_TARGETS
    assert (groups - 1) * MAX_TARGETS < negative + 1 <= groups * size


def test_word_table_rows__has_two_rows_for_each_word():
    assert word_table_rows(Params(), 7) == {"input": 7, "output": 7}


@kernel
def draw_few_batches(segment, first, n, apart, last, negatives, hot, states, rows, signs, size):
    """Call `draw_batches` as the kernels do."""
    tables = TableAddresses(0, BASE, WIDTH, hot)
    draw_batches(segment, first, n, apart, last, negatives, tables, states, rows, signs, size)


@pytest.mark.parametrize("negative", [1, 5, 7, 8, 20])
def test_draw_batches__are_the_negatives_of_the_first_window_and_the_word_of_each(negative):
    rng, n_words = np.random.default_rng(negative), 6
    params = Params(negative=negative, seed=3)
    prepared = prepare_noise(params, rng.integers(1, 99, n_words))
    negatives, hot = make_negatives(prepared, epoch=2), HotRows(3, n_words, n_words, 1)
    scratch = batch_scratch(params, Tables(aligned_zeros(0), aligned_zeros(0), WIDTH, hot))
    groups, size = group_sizes(negative, OWN)
    rows = scratch.rows.reshape(-1, RUN)
    signs = scratch.signs[: RUN * groups * BATCH * MAX_TARGETS].reshape(RUN, groups, BATCH, MAX_TARGETS)
    tokens = rng.integers(0, n_words, 50).astype(np.int32)
    segment = Segment(tokens, np.arange(0, 500, 10), np.array([0, 50]))
    first, n, apart, last = 3, 9, 12, 50  # the last stream has 11 centers, the others have 12
    for start in (first, first + 6):  # the second call overwrites the results of the first
        draw_few_batches(
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
            drawn = draw_pair_targets(prepared.noise, negatives.key, window, negative)[0][1:]
            assert rows[:negative, i].tolist() == (BASE + (drawn + n_words * (drawn < 3)) * (4 * WIDTH)).tolist()
            for w, center in enumerate(centers):
                window_signs = signs[i, :, w]
                if center >= last:
                    assert not window_signs.any()
                    continue
                word = tokens[center]
                assert rows[groups * size + w, i] == BASE + (word + n_words * (word < 3)) * (4 * WIDTH)
                assert window_signs[-1, OWN] == 1.0
                expected = np.where(drawn == word, 0.0, -1.0)
                assert window_signs[:, :size].ravel()[:negative].tolist() == expected.tolist()
                assert np.abs(window_signs).sum() == np.abs(expected).sum() + 1, "padding does not count"


@kernel
def count_draws_in_market(markets, word, bits, counts):
    """Count the words that bits choose from the market of a word."""
    for i in range(len(bits)):
        counts[pick_in_market(markets, word, bits[i])] += 1


@pytest.mark.parametrize("exponent", [0.75, 0.0, -0.5])
def test_pick_in_market__draws_words_of_the_market_by_their_counts(exponent):
    counts, markets = np.array([500, 90, 80, 20, 7, 7, 1]), np.array([4, 1, -1, 4, 1, 4, 0], np.int32)
    params = Params(market_negative=1, ns_exponent=exponent)
    prepared = with_markets(prepare_noise(params, counts), counts, markets)
    bits = np.random.default_rng(0).integers(0, 2**64, 200_000, np.uint64)
    for word, market in enumerate(markets):
        drawn = np.zeros(len(counts), np.int64)
        count_draws_in_market(prepared.markets, word, bits, drawn)
        in_market = (markets == market) | (market < 0)  # a word without market draws all words
        weights = counts[in_market] ** exponent
        assert not drawn[~in_market].any()
        if len(weights) > 1:
            assert chisquare(drawn[in_market], len(bits) * weights / weights.sum()).pvalue > 1e-4


def test_markets__are_empty_if_no_negative_is_drawn_from_them():
    counts = np.array([3, 2])
    assert not any(map(len, prepare_noise(Params(), counts).markets))
    assert prepare_noise(Params(market_negative=1), counts).markets.spans.tolist() == [2, 2], "of all words"


def test_words_that_are_never_drawn__have_no_market():
    counts, params = np.array([5, 0, 0]), Params(market_negative=1)
    prepared = with_markets(prepare_noise(params, counts), counts, np.array([0, 0, 1], np.int32))
    assert prepared.markets.spans.tolist() == [3 << 32 | 1, 3, 3]


@pytest.mark.parametrize(("negative", "market_negative"), [(1, 1), (5, 3), (7, 9)])
def test_draw_targets__with_markets_equal_the_reference(negative, market_negative):
    rng, n_words = np.random.default_rng(negative), 30
    params = Params(negative=negative, market_negative=market_negative, seed=3)
    prepared = prepare(params, rng.integers(1, 99, n_words), rng)
    hot = HotRows(3, n_words, n_words, 1)
    n, n_columns = 11, 13
    scratch = target_scratch(params, Tables(aligned_zeros(0), aligned_zeros(0), WIDTH, hot), n_columns)
    rows, signs = scratch.rows.reshape(-1, n_columns), scratch.signs[: len(scratch.rows)].reshape(n_columns, -1)
    words, positions = rng.integers(0, n_words, n).astype(np.int32), rng.integers(0, 10**12, n)
    draw_all(words, positions, make_negatives(prepared, epoch=2), hot, scratch.states, rows, signs)
    filled = [0.0] * (len(rows) - 1 - negative - market_negative)
    for i in range(n):
        targets, expected = draw_goals(prepared, 2, Window(int(words[i]), int(positions[i]), [], [], 0.0))
        targets = np.concatenate([targets, [words[i]] * len(filled)]).astype(np.int64)
        assert rows[:, i].tolist() == (BASE + (targets + n_words * (targets < hot.rows)) * (4 * WIDTH)).tolist()
        assert signs[i].tolist() == [*expected, *filled]


@pytest.mark.parametrize("market_negative", [1, 4])
def test_draw_batches__separate_negatives_of_markets(market_negative):
    """Each window meets negatives of the market of its word, and no negatives of other windows' markets."""
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
    draw_few_batches(segment, first, n, apart, last, make_negatives(prepared, 2), hot, scratch.states, rows, flat, size)
    for i, w in np.ndindex(n, BATCH):
        center, window_signs = first + i + w * apart, signs[i, :, w, :size].ravel()
        if center >= last:
            assert not window_signs.any()
            continue
        window = Window(int(segment.tokens[center]), int(segment.positions[center]), [], [], 0.0)
        targets, expected = draw_goals(prepared, 2, window, 0, int(segment.positions[first + i]))
        own_rows = [*range(negative), *(negative + w * market_negative + m for m in range(market_negative))]
        assert rows[own_rows, i].tolist() == (BASE + targets[1:] * (4 * WIDTH)).tolist()
        assert window_signs[own_rows].tolist() == expected[1:].tolist()
        assert np.count_nonzero(window_signs) == np.count_nonzero(expected[1:]), "other negatives do not count"
