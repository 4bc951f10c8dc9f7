"""Buckets of pairs: all pairs of the windows, each in its bucket, ordered by spans of the text and by center."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from daskw2v.config.params import Params
from daskw2v.kernels.alias import alias_table
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.objectives.base import Rate
from daskw2v.objectives.reference import list_windows
from daskw2v.objectives.windows import make_windows
from daskw2v.sampling import pairs
from daskw2v.sampling.hierarchy import BNS, SNS
from daskw2v.sampling.pairs import Noise, WindowSize, distribute_pairs, unpack
from daskw2v.sampling.segments import Segment
from daskw2v.sampling.weights import word_weights
from daskw2v.vocabulary.partition import Partitions


def deal(segment, start, stop, windows, partitions, noise=None):
    """Deal pairs; return p * p buckets of (context, center), first those of output partition 0."""
    dealt = distribute_pairs(segment, start, stop, windows, partitions, noise)
    assert len(dealt.edges) == partitions.n**2 + 1
    assert dealt.edges[-1] == len(dealt.entries)
    assert dealt.entries.dtype == np.uint32
    return [np.stack(unpack(dealt.entries[a:b]), axis=1) for a, b in itertools.pairwise(dealt.edges)]


@given(
    lengths=st.lists(st.integers(1, 15), max_size=8),
    n_words=st.sampled_from([1, 2, 9, 40]),
    n_partitions=st.integers(1, 9),
    window=st.integers(1, 6),
    shrink_windows=st.booleans(),
    seed=st.integers(0, 2**31),
    data=st.data(),
)
def test_distribute_pairs__are_those_of_the_windows_ordered_by_center_in_each_span(
    lengths, n_words, n_partitions, window, shrink_windows, seed, data
):
    rng, n, p = np.random.default_rng(seed), sum(lengths), min(n_partitions, n_words)
    tokens = rng.integers(0, n_words, n).astype(np.int32)
    positions = np.cumsum(rng.integers(1, 5, n)).astype(np.int64)
    segment = Segment(tokens, positions, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))
    start = data.draw(st.integers(0, 5 * n))
    stop = data.draw(st.integers(start, 5 * n + 1))
    windows = make_windows(Params(window=window, shrink_windows=shrink_windows, seed=seed), Rate(0.1, 0.0, 0), 3)
    partitions = Partitions(n_words, p)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "SPAN", data.draw(st.sampled_from([3, 10, 1 << 17])))
        actual = deal(segment, start, stop, WindowSize(window, shrink_windows, windows.key), partitions)
        span = pairs.SPAN
    expected = [[] for _ in range(p * p)]
    centers = segment.centers(start, stop)
    for at, seen in zip(range(*centers), list_windows(segment, *centers, windows), strict=True):
        (center_part, *contexts_part), (center_row, *contexts_row) = partitions.locate(
            np.array([seen.word, *seen.contexts])
        )
        order = (positions[at] - start) // span, center_row
        for part, row in zip(contexts_part, contexts_row, strict=True):
            expected[center_part * p + part].append((order, (row, center_row)))
    for bucket, those in zip(actual, expected, strict=True):
        assert list(map(tuple, bucket.tolist())) == [pair for _, pair in sorted(those, key=lambda one: one[0])]


@pytest.mark.parametrize("p", [1, 8])
def test_distribute_pairs__of_no_text_are_none(p):
    segment = Segment(np.empty(0, np.int32), np.empty(0, np.int64), np.zeros(1, np.int64))
    for stop in (0, 9):
        actual = deal(segment, 0, stop, WindowSize(5, True, np.uint64(1)), Partitions(8, p))
        assert list(map(len, actual)) == [0] * (p * p)


def test_distribute_pairs__of_large_partitions_take_eight_bytes():
    segment = Segment(np.array([70_000, 3], np.int32), np.arange(2), np.array([0, 2]))
    dealt = distribute_pairs(segment, 0, 2, WindowSize(1, False, np.uint64(1)), Partitions(70_001, 1))
    assert dealt.entries.dtype == np.uint64
    contexts, centers = unpack(dealt.entries)
    assert [contexts.tolist(), centers.tolist()] == [[70_000, 3], [3, 70_000]]


@pytest.fixture(scope="module")
def dealt():
    """A text of Zipf's law, its pairs dealt by each rule into 6 * 6 buckets, and the weights of the partitions."""
    rng, n_words, n, p, negative = np.random.default_rng(0), 300, 40_000, 6, 5
    counts = (1e5 / np.arange(1, n_words + 1)).astype(np.int64)
    partitions = Partitions(n_words, p)
    weights = word_weights(counts, 0.75)
    sums = np.array([weights[partitions.words(k)].sum() for k in range(p)])
    tokens = rng.choice(n_words, n, p=counts / counts.sum()).astype(np.int32)
    segment = Segment(tokens, np.arange(n), np.arange(0, n + 1, 20))
    windows, key = WindowSize(5, True, stream(1, Purpose.WINDOW)), stream(1, Purpose.PARTITION)

    def by(rule):
        return deal(segment, 0, n, windows, partitions, Noise(rule, negative, alias_table(sums), key))

    return deal(segment, 0, n, windows, partitions), {SNS: by(SNS), BNS: by(BNS)}, sums


def sizes_of(buckets, p):
    return np.array(list(map(len, buckets))).reshape(p, p)


@pytest.mark.parametrize(("rule", "items"), [(SNS, 1), (BNS, 5)])
def test_distribute_pairs__negatives_of_each_context_go_to_partitions_by_their_weights(dealt, rule, items):
    pairs, negatives, sums = dealt
    actual, p = negatives[rule], len(sums)
    sizes, own = sizes_of(actual, p), sizes_of(pairs, p)
    np.testing.assert_array_equal(sizes.sum(axis=0), items * own.sum(axis=0), "contexts keep their partition")
    assert chisquare(sizes.sum(axis=1), sizes.sum() * sums / sums.sum()).pvalue > 1e-4
    for i in range(p):
        rows = [np.concatenate(by[i::p])[:, 0] for by in (pairs, actual)]
        np.testing.assert_array_equal(np.repeat(np.sort(rows[0]), items), np.sort(rows[1]))


@pytest.mark.parametrize("rule", [SNS, BNS])
def test_distribute_pairs__negatives_know_the_center_only_where_it_could_be_drawn(dealt, rule):
    """A pair's negatives meet its center's partition by chance: as often as that partition is drawn."""
    pairs, negatives, sums = dealt
    actual, p = negatives[rule], len(sums)
    into = sizes_of(pairs, p).sum(axis=1)  # pairs by the partition of the center
    for j in range(p):
        centers = np.concatenate(actual[j * p : (j + 1) * p])[:, 1]
        expected = into[j] / into.sum()
        assert (centers >= 0).mean() == pytest.approx(expected, abs=5 * np.sqrt(expected / len(centers)) + 0.01)
