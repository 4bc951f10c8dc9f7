"""Buckets of pairs with a tree: the kernel is its float64 reference up to float32 rounding."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskw2v.config.params import Params
from daskw2v.kernels.simd import aligned_zeros, padded
from daskw2v.objectives.base import HotRows, Tables
from daskw2v.objectives.sg_hs.buckets.cpu import MAX_CONTEXTS, cut_steps, find_stride, train_bucket
from daskw2v.objectives.sg_hs.buckets.reference import train_bucket as train_by_reference
from daskw2v.objectives.sg_hs.buckets.reference import word_paths
from daskw2v.objectives.tree import make_linked_trees
from daskw2v.sampling.pairs import pack
from daskw2v.vocabulary.huffman import ALONE, huffman_forest


def compare(n, rows, vector_size, rng, n_trees=1, dtype=np.uint32, counts=None):
    """Train n pairs of two partitions by the kernel and by the reference, and compare."""
    width, tables, truth = padded(vector_size), [], []
    for size in rows:
        table = aligned_zeros(size * width)
        trainable = table.reshape(-1, width)[:, :vector_size]
        trainable[:] = rng.normal(scale=0.3, size=trainable.shape)
        tables.append(table)
        truth.append(trainable.astype(np.float64))
    counts = rng.integers(0, 100, rows[1]) if counts is None else counts
    centers = np.sort(np.minimum(rng.zipf(1.4, n), rows[1]) - 1)
    pairs = pack([rng.integers(0, rows[0], n), centers], dtype)
    single = [trainable.astype(np.float32) for trainable in truth]
    result = train_bucket(pairs, Tables(*tables, width, HotRows(0, 0, 0, 1)), 0.05, huffman_forest(counts, n_trees))
    n_pairs, loss = train_by_reference(pairs, *truth, 0.05, word_paths(counts, n_trees))
    _, rounded = train_by_reference(pairs, *single, 0.05, word_paths(counts, n_trees))
    assert result[0] == n_pairs == n
    # if hundreds of steps move one row, the reference with rounded rows differs as much
    assert result[1] == pytest.approx(loss, abs=2e-5 * max(1.0, abs(loss)) + 2 * abs(rounded - loss))
    for table, trainable, single_rows in zip(tables, truth, single, strict=True):
        trained = table.reshape(-1, width)
        np.testing.assert_allclose(
            trained[:, :vector_size], trainable, rtol=1e-4, atol=5e-5 + 2 * np.abs(single_rows - trainable).max()
        )
        assert not trained[:, vector_size:].any(), "padding must stay zero"


@settings(max_examples=60)
@given(
    n=st.integers(0, 600),
    rows=st.tuples(st.sampled_from([1, 2, 30, 200]), st.sampled_from([1, 2, 30, 200, 2000])),
    vector_size=st.sampled_from([1, 15, 16, 17, 40, 100]),
    n_trees=st.sampled_from([1, 2, 7, 100]),
    seed=st.integers(0, 2**31),
)
def test_train_bucket__equals_its_reference(n, rows, vector_size, n_trees, seed):
    """A word alone in its tree, which has no path, and paths of one group and of several."""
    compare(n, rows, vector_size, np.random.default_rng(seed), n_trees)


def test_train_bucket__equals_its_reference_with_long_paths():
    compare(300, (30, 50), 16, np.random.default_rng(0), counts=2 ** np.arange(50)[::-1])


@pytest.mark.slow
def test_train_bucket__equals_its_reference_for_large_partitions():
    compare(300, (30, 50), 16, np.random.default_rng(0), dtype=np.uint64)


@pytest.mark.slow
@pytest.mark.parametrize("vector_size", [1, 15, 16, 17, 31, 33, 100, 300])
def test_train_bucket__equals_its_reference_in_every_dimension(vector_size):
    compare(150, (20, 30), vector_size, np.random.default_rng(vector_size))


@given(st.lists(st.integers(0, 5), max_size=80))
def test_steps__are_of_one_center_and_few_pairs(centers):
    pairs = pack([np.arange(len(centers)), np.sort(centers)], np.uint32)
    bounds = cut_steps(pairs).tolist()
    assert (bounds[0], bounds[-1]) == (0, len(centers))
    steps = [np.sort(centers)[a:b].tolist() for a, b in pairwise(bounds)]
    assert all(1 <= len(step) <= MAX_CONTEXTS and len({*step}) == 1 for step in steps)
    assert len(steps) == sum(-(-centers.count(center) // MAX_CONTEXTS) for center in {*centers})


@given(st.integers(0, 3000))
def test_find_stride__trains_each_step_once(n):
    assert sorted(i * find_stride(n) % n for i in range(n)) == [*range(n)]


@pytest.mark.parametrize("n_words", [2, 15, 16, 40, 1000])
def test_make_linked_trees__gives_each_word_a_path(n_words):
    """A small vocabulary would learn nothing."""
    links = make_linked_trees(Params(objective="sg_hs", n_partitions=2), np.arange(n_words, 0, -1))
    assert (links[:n_words] != ALONE).all()
