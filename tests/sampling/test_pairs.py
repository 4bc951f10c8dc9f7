"""Buckets of pairs: all pairs of the windows, each in its bucket, in the order of the text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.objectives import Rate
from daskw2v.objectives.reference import windows_in
from daskw2v.objectives.windows import windows_of
from daskw2v.params import Params
from daskw2v.sampling.pairs import deal_pairs
from daskw2v.sampling.segments import Segment
from daskw2v.vocabulary.partition import Partitions


@given(
    lengths=st.lists(st.integers(1, 15), max_size=8),
    n_words=st.sampled_from([1, 2, 9, 40]),
    n_partitions=st.integers(1, 9),
    window=st.integers(1, 6),
    shrink_windows=st.booleans(),
    seed=st.integers(0, 2**31),
    data=st.data(),
)
def test_deal_pairs__are_those_of_the_windows_in_their_order(
    lengths, n_words, n_partitions, window, shrink_windows, seed, data
):
    rng, n, p = np.random.default_rng(seed), sum(lengths), min(n_partitions, n_words)
    tokens = rng.integers(0, n_words, n).astype(np.int32)
    positions = np.cumsum(rng.integers(1, 5, n)).astype(np.int64)
    segment = Segment(tokens, positions, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))
    first = data.draw(st.integers(0, n))
    last = data.draw(st.integers(first, n))
    windows = windows_of(Params(window=window, shrink_windows=shrink_windows, seed=seed), Rate(0.1, 0.0, 0), 3)
    found = deal_pairs(segment, first, last, window, shrink_windows, windows.key, p)
    partitions = Partitions(n_words, p)
    expected = [[] for _ in range(p * p)]
    for seen in windows_in(segment, first, last, windows):
        (center_part, *contexts_part), (center_row, *contexts_row) = partitions.place(
            np.array([seen.word, *seen.contexts])
        )
        for part, row in zip(contexts_part, contexts_row, strict=True):
            expected[part * p + center_part].append((row, center_row))
    for number, pairs in enumerate(expected):
        contexts, centers = found.bucket(number)
        assert contexts.dtype == centers.dtype == np.int32
        assert list(zip(contexts.tolist(), centers.tolist(), strict=True)) == pairs
    assert found.edges[-1] == len(found.contexts) == len(found.centers) == sum(map(len, expected))


@pytest.mark.parametrize("p", [1, 8])
def test_deal_pairs__of_no_text_are_none(p):
    segment = Segment(np.empty(0, np.int32), np.empty(0, np.int64), np.zeros(1, np.int64))
    found = deal_pairs(segment, 0, 0, 5, True, np.uint64(1), p)
    assert found.edges.tolist() == [0] * (p * p + 1)
