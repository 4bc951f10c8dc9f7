"""Lengths of vectors and rankings of scores, in any division into blocks."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.models.stored.blocks import Ranking, row_lengths


@pytest.mark.parametrize("n", [0, 1, 256, 257, 700])
def test_row_lengths__equal_float64_for_any_number_of_rows(n):
    vectors = np.random.default_rng(n).standard_normal((n, 5), np.float32)
    vectors[::3] *= np.float32(1e30)  # squares exceed float32
    vectors[1::7] = 0
    expected = np.linalg.norm(vectors.astype(np.float64), axis=1)
    expected[expected == 0] = 1
    result = row_lengths(vectors)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, expected, rtol=1e-7)


@given(
    seed=st.integers(0, 2**32 - 1),
    queries=st.integers(1, 5),
    words=st.integers(1, 200),
    topn=st.integers(1, 12),
    cuts=st.lists(st.integers(0, 200), max_size=8),
    levels=st.sampled_from([3, 50, 10**6]),
    lost=st.floats(0, 1),
)
def test_best__are_those_of_all_scores(seed, queries, words, topn, cuts, levels, lost):
    rng = np.random.default_rng(seed)
    scores = (rng.integers(0, levels, (queries, words)) / levels).astype(np.float32)
    scores[rng.random((queries, words)) < lost * 0.9] = -np.inf  # words that are left out
    ranking, edges = Ranking(queries, topn), sorted({0, words, *(cut for cut in cuts if cut < words)})
    ids = rng.permutation(words)
    for start, stop in pairwise(edges):
        ranking.add(scores[:, ids[start:stop]], ids[start:stop])
    ids, best = ranking.best()
    np.testing.assert_array_equal(best, -np.sort(-scores, axis=1)[:, :topn])
    np.testing.assert_array_equal(np.take_along_axis(scores, ids, axis=1), best)
    assert all(len(set(row)) == len(row) for row in ids.tolist())
