"""Segments: the same tokens, positions and sentences whatever shards and ranges they are read in."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.kernels.rng import Purpose, draws, stream
from daskw2v.sampling.segments import SegmentBuilder, count_known, cut_range, keep_thresholds, max_dropped_words

KEY = stream(1, Purpose.SUBSAMPLE)


def build(words, starts, keep, cuts, position=0):
    """Read `words` (-1: unknown) as if stored in shards cut at `cuts`, each with its own code order."""
    words = np.array(words, np.int32)
    builder = SegmentBuilder(len(words), keep, KEY)
    edges = [0, *sorted(cuts), len(words)]
    for a, b in itertools.pairwise(edges):
        ids, codes = np.unique(words[a:b], return_inverse=True)
        local = np.array([s - a for s in sorted(starts) if a <= s < b], np.int64)
        builder.add(codes.astype(np.int32), local, ids.astype(np.int32), position + a)
    return builder.finish()


def expected(words, starts, keep, position=0):
    """Plain Python: drop, draw, and cut into sentences."""
    chance = draws(KEY, np.arange(position, position + len(words), dtype=np.uint64)) >> np.uint64(32)
    sentences, current = [], []
    for i, word in enumerate(words):
        if i in starts:
            sentences.append(current)
            current = []
        if word >= 0 and chance[i] < keep[word]:
            current.append((word, position + i))
    sentences.append(current)
    return [s for s in sentences if s]


corpora = st.lists(st.integers(-1, 5), max_size=80).flatmap(
    lambda words: st.tuples(
        st.just(words), st.sets(st.integers(0, len(words))), st.lists(st.integers(0, len(words)), max_size=5)
    )
)


@given(corpora, st.integers(0, 2**40))
def test_segment__is_the_same_for_all_cuts(corpus, position):
    words, starts, cuts = corpus
    keep = (np.array([0.2, 0.5, 1.0, 0.0, 0.9, 0.7]) * 2**32).astype(np.uint64)
    segment = build(words, starts, keep, cuts, position)
    sentences = expected(words, starts, keep, position)
    assert segment.tokens.tolist() == [w for s in sentences for w, _ in s]
    assert segment.positions.tolist() == [p for s in sentences for _, p in s]
    assert segment.bounds.tolist() in ([0, *np.cumsum([len(s) for s in sentences])], [0, 0])


def test_segment__has_centers_by_position():
    keep = keep_thresholds(np.array([10, 10]), 0)
    segment = build([0, 1, -1, 0, 1, 1], [0, 3], keep, [2], position=100)
    assert segment.positions.tolist() == [100, 101, 103, 104, 105]
    assert segment.centers(101, 104) == (1, 3)
    assert segment.centers(90, 200) == (0, 5)


def test_keep_thresholds__are_word2vecs():
    counts = np.array([900, 90, 10])
    f = counts / 1000
    chance = np.minimum(1, np.sqrt(0.01 / f) + 0.01 / f)
    np.testing.assert_allclose(keep_thresholds(counts, 0.01) / 2**32, chance)
    assert (keep_thresholds(counts, 0) == 2**32).all()


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=200), st.sampled_from([1e-5, 1e-3, 0.01, 0.3, 1.0]))
def test_max_dropped_words__are_the_only_words_that_may_be_dropped(counts, sample):
    counts = np.sort(np.array(counts))[::-1]
    keep, n = keep_thresholds(counts, sample), max_dropped_words(sample)
    assert (keep[n:] == 2**32).all()
    np.testing.assert_array_equal(keep_thresholds(counts[:n], sample, counts.sum()), keep[:n])
    assert max_dropped_words(0) == 0


def test_segment__keeps_words_without_a_threshold():
    words, starts = [0, 1, 2, 1, 0, 2], {0, 3}
    keep = np.array([0, 2**32, 2**32], np.uint64)
    whole, known = (build(words, starts, thresholds, []) for thresholds in (keep, keep[:1]))
    assert whole.tokens.tolist() == known.tokens.tolist() == [1, 2, 1, 2]


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(1, 300))
def test_cut_range__covers_the_range_once(start, n, length):
    ranges = list(cut_range(start, start + n, length))
    assert [p for a, b in ranges for p in range(a, b)] == list(range(start, start + n))
    assert all(b - a <= length for a, b in ranges)


@pytest.mark.parametrize(("codes", "known"), [([], 0), ([0, 1, 1, 2], 3)])
def test_count_known__leaves_out_unknown_words(codes, known):
    assert count_known(np.array(codes, np.int32), np.array([-1, 7, 3], np.int32)) == known
