"""Targets of negative sampling: the kernels' draws are the reference's."""

import numpy as np
import pytest

from daskw2v.config.params import Params
from daskw2v.kernels.jit import kernel
from daskw2v.kernels.rng import draw
from daskw2v.kernels.simd import aligned_zeros
from daskw2v.objectives.base import HotRows, Tables
from daskw2v.objectives.cpu.centers import RUN, TableAddresses
from daskw2v.objectives.cpu.hidden import OWN
from daskw2v.objectives.cpu.negatives import batch_scratch, draw_batches, draw_targets, target_scratch, tile_of
from daskw2v.objectives.cpu.steps import MAX_TARGETS, group_sizes
from daskw2v.objectives.noise import BATCH, negatives_of, prepare_noise, word_tables
from daskw2v.objectives.reference import Window, targets_of
from daskw2v.sampling.segments import Segment

WIDTH, BASE = 16, 4096


@kernel
def draw_all(words, positions, negatives, hot, states, rows, signs):
    """Call `draw_targets` as the kernels do."""
    for i in range(len(words)):
        states[i] = draw(negatives.key, positions[i])
    draw_targets(words, states, negatives, TableAddresses(0, BASE, WIDTH, hot), rows, signs)


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
