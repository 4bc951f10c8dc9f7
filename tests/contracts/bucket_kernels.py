"""The kernel of an NVIDIA GPU for buckets is its float64 reference: `test_cuda` runs this in the simulator."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import cuda

from daskw2v.objectives.base import Warps
from daskw2v.objectives.cuda.access import TOGETHER
from daskw2v.objectives.cuda.reference import train_items
from daskw2v.objectives.sgns.cuda.buckets import group_of, train_bucket
from daskw2v.objectives.sgns.reference import train_bucket as expected_of
from daskw2v.sampling.hierarchy import word_table
from daskw2v.sampling.skipgrams import Bucket
from daskw2v.simd import padded

KEY = np.uint64(99)


def compare(n, m, rows, vector_size, negative, each, rng):
    width = padded(vector_size)
    tables = [np.zeros((size, width), np.float32) for size in rows]
    for table in tables:
        table[:, :vector_size] = rng.normal(scale=0.3, size=(len(table), vector_size))
    truth = [table[:, :vector_size].astype(np.float64) for table in tables]
    pairs, noise = (tuple(rng.integers(0, size, k).astype(np.int32) for size in rows) for k in (n, m))
    noise[1][rng.random(m) < 0.5] = -1
    words = word_table(rng.integers(1, 100, rows[1]), 0.75)
    there = [cuda.to_device(table.ravel()) for table in tables]
    bucket = Bucket(*(cuda.to_device(np.stack(items)) for items in (pairs, noise)))
    totals = cuda.to_device(np.zeros(2))
    touched = [np.sort(9 * rng.random(size // 2))[::-1].astype(np.float32) for size in rows]
    memory = Warps(*there, width, 0, 1, *map(cuda.to_device, touched), totals, cuda.default_stream())
    train_bucket(bucket, memory, 0.05, negative, each, cuda.to_device(words), KEY)
    factors = tuple(np.ones((size, 1)) for size in rows)
    for all_of, some in zip(factors, touched, strict=True):
        all_of[: len(some), 0] = TOGETHER / np.maximum(TOGETHER, some)
    batch = partial(train_items, size=group_of(width), factors=factors)
    _, loss = expected_of(pairs, noise, *truth, 0.05, negative, each, words, KEY, batch)
    assert totals.copy_to_host()[1] == pytest.approx(loss, rel=1e-5, abs=1e-5)
    for rows_there, own in zip(there, truth, strict=True):
        trained = rows_there.copy_to_host().reshape(-1, width)
        np.testing.assert_allclose(trained[:, :vector_size], own, rtol=1e-4, atol=3e-5)
        assert not trained[:, vector_size:].any(), "padding must stay zero"


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


def test_bucket__trains_pairs_and_noise_in_slices():
    compare(263, 17, (30, 20), 4, 1, 2, np.random.default_rng(0))
