"""The kernel of an NVIDIA GPU for buckets is its float64 reference: `test_cuda` runs this in the simulator."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskw2v.config.params import Params
from daskw2v.sampling.hierarchy import make_word_table
from daskw2v.sampling.pairs import pack
from daskw2v.sampling.skipgrams import Bucket
from tests.support.cuda.cases import Pairs, PathPairs, count_table_rows, likely


def assert_is_truth(case):
    found, truth, d = case.on_gpu(), case.truth(), case.params.vector_size
    assert found.totals[1] == pytest.approx(truth.totals[1], rel=1e-5, abs=1e-5)
    for trained, own in zip(found.tables, truth.tables, strict=True):
        np.testing.assert_allclose(trained[:, :d], own, rtol=1e-4, atol=3e-5)
        assert not trained[:, d:].any(), "padding must stay zero"


def compare(n, m, rows, vector_size, negative, each, rng, dtype=np.uint32):
    tables = count_table_rows(rows, vector_size, rng)
    (contexts, centers), (others, missing) = ([rng.integers(0, size, k) for size in rows] for k in (n, m))
    missing[rng.random(m) < 0.5] = -1
    pairs, noise = pack([contexts, np.sort(centers)], dtype), pack([others, missing], dtype)
    words = make_word_table(rng.integers(1, 100, rows[1]), 0.75)
    params = Params(vector_size=vector_size)
    case = Pairs(params, Bucket(pairs, noise), negative, each, tables, words, likely(tables, rng))
    assert_is_truth(case)


@settings(max_examples=12)
@given(
    n=st.integers(0, 12),
    m=st.integers(0, 12),
    rows=st.tuples(st.sampled_from([1, 2, 30]), st.sampled_from([1, 2, 30])),
    vector_size=st.sampled_from([1, 16, 40, 130, 300]),
    negatives=st.sampled_from([(5, 0), (1, 0), (9, 0), (0, 1), (0, 5), (5, 5)]),
    seed=st.integers(0, 2**31),
)
def test_bucket__equals_its_reference(n, m, rows, vector_size, negatives, seed):
    """Centers with negatives, centers alone, negatives alone, and nothing at all."""
    negative, each = negatives
    compare(n, m if each else 0, rows, vector_size, negative, each, np.random.default_rng(seed))


def test_bucket__equals_its_reference_for_a_few_pairs():
    compare(3, 2, (4, 4), 16, 5, 5, np.random.default_rng(0))


def test_bucket__trains_pairs_and_noise_in_slices():
    compare(263, 17, (30, 20), 4, 1, 2, np.random.default_rng(0))


def test_bucket__equals_its_reference_for_large_partitions():
    compare(9, 5, (20, 30), 16, 5, 3, np.random.default_rng(0), dtype=np.uint64)


def compare_paths(n, rows, vector_size, rng, n_partitions=8, dtype=np.uint32):
    """Train n pairs against the nodes of trees of at least 16 words."""
    tables, counts = count_table_rows(rows, vector_size, rng), rng.integers(1, 1000, rows[1])
    contexts, centers = (rng.integers(0, size, n) for size in rows)
    params = Params(objective="sg_hs", vector_size=vector_size, n_partitions=n_partitions)
    case = PathPairs(params, pack([contexts, np.sort(centers)], dtype), tables, counts, likely(tables, rng))
    assert_is_truth(case)


@settings(max_examples=12)
@given(
    n=st.integers(0, 30),
    rows=st.tuples(st.sampled_from([1, 2, 30]), st.sampled_from([1, 2, 30, 200])),
    vector_size=st.sampled_from([1, 16, 40, 130, 300]),
    n_partitions=st.sampled_from([1, 8, 64]),
    seed=st.integers(0, 2**31),
)
def test_paths_of_a_bucket__equal_their_reference(n, rows, vector_size, n_partitions, seed):
    """Words without a parent, paths of one node, and paths of several groups."""
    compare_paths(n, rows, vector_size, np.random.default_rng(seed), n_partitions)


def test_paths_of_a_bucket__equal_their_reference_for_a_few_pairs():
    compare_paths(11, (4, 20), 16, np.random.default_rng(0), n_partitions=64)


def test_paths_of_a_bucket__equal_their_reference_for_large_partitions():
    compare_paths(9, (20, 30), 16, np.random.default_rng(0), dtype=np.uint64)
