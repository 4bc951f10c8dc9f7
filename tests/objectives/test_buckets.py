"""Buckets of pairs: the kernel is its float64 reference up to float32 rounding."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskw2v.kernels.simd import aligned_zeros, padded
from daskw2v.objectives.sgns.buckets.cpu import train_bucket
from daskw2v.objectives.sgns.buckets.reference import train_bucket as train_by_reference
from daskw2v.sampling.hierarchy import make_word_table
from daskw2v.sampling.pairs import pack

KEY = np.uint64(99)


def compare(n, m, rows, vector_size, negative, noise_negative, rng, dtype=np.uint32):
    """Train n pairs and m items of noise of two partitions by the kernel and by the reference, and compare."""
    width, tables, truth = padded(vector_size), [], []
    for size in rows:
        table = aligned_zeros(size * width)
        trainable = table.reshape(-1, width)[:, :vector_size]
        trainable[:] = rng.normal(scale=0.3, size=trainable.shape)
        tables.append(table)
        truth.append(trainable.astype(np.float64))
    (contexts, centers), (noise_contexts, noise_centers) = ([rng.integers(0, size, k) for size in rows] for k in (n, m))
    noise_centers[rng.random(m) < 0.5] = -1
    pairs, noise = pack([contexts, np.sort(centers)], dtype), pack([noise_contexts, noise_centers], dtype)
    words = make_word_table(rng.integers(1, 100, rows[1]), 0.75)
    single = [trainable.astype(np.float32) for trainable in truth]
    result = train_bucket(pairs, noise, *tables, width, 0.05, negative, noise_negative, words, KEY)
    n_pairs, loss = train_by_reference(pairs, noise, *truth, 0.05, negative, noise_negative, words, KEY)
    _, rounded = train_by_reference(pairs, noise, *single, 0.05, negative, noise_negative, words, KEY)
    assert result[0] == n_pairs == n
    steps = (n * (1 + negative) + m * noise_negative) / min(rows)
    rounding = 1e-5 * (
        1 + steps / 2000
    )  # each step that moves a row rounds it, and the next step starts from the rounded row
    # if hundreds of steps move one row, the reference with rounded rows differs as much
    assert result[1] == pytest.approx(loss, abs=rounding * max(1.0, abs(loss)) + 2 * abs(rounded - loss))
    for table, trainable, single_rows in zip(tables, truth, single, strict=True):
        trained = table.reshape(-1, width)
        longest = max(1.0, np.abs(trainable).max())  # one row pushed by all noise grows long
        np.testing.assert_allclose(
            trained[:, :vector_size],
            trainable,
            rtol=1e-4,
            atol=3 * rounding * longest + 2 * np.abs(single_rows - trainable).max(),
        )
        assert not trained[:, vector_size:].any(), "padding must stay zero"


DRAWN = {
    "n": st.integers(0, 600),
    "m": st.one_of(st.just(0), st.integers(0, 900)),
    "rows": st.tuples(st.sampled_from([1, 2, 30, 200]), st.sampled_from([1, 2, 30, 200])),
    "vector_size": st.sampled_from([1, 15, 16, 17, 40, 100]),
    "seed": st.integers(0, 2**31),
}


def compare_drawn(n, m, rows, vector_size, negatives, seed):
    negative, noise_negative = negatives
    compare(n, m if noise_negative else 0, rows, vector_size, negative, noise_negative, np.random.default_rng(seed))


@settings(max_examples=60)
@given(**DRAWN, negatives=st.sampled_from([(5, 0), (0, 5), (5, 5)]))
def test_train_bucket__equals_its_reference(**drawn):
    """Centers with negatives, noise with negatives, and both."""
    compare_drawn(**drawn)


def test_batches__have_pairs_of_distant_indices():
    """Neighbours have one center, and no batch may have a center eight times; the kernel has the same batches."""
    batches = list[list[int]]()

    def batch(_source, contexts, _output, _goals, own, *_rest):
        batches.append(own[0].tolist())
        return float(len(contexts))

    centers = np.repeat(np.arange(8), 12)
    pairs, words = pack([np.zeros(96, np.int64), centers], np.uint32), make_word_table(np.ones(8), 0.75)
    rows = np.zeros((8, 2))
    assert train_by_reference(pairs, pairs[:0], rows, rows, 0.05, 5, 0, words, KEY, batch) == (96, 96.0)
    assert batches == 12 * [[*range(8)]]


@pytest.mark.slow
@settings(max_examples=60)
@given(**DRAWN, negatives=st.sampled_from([(0, 0), (1, 0), (17, 0), (0, 1), (0, 17), (5, 17)]))
def test_train_bucket__equals_its_reference_with_other_numbers_of_negatives(**drawn):
    compare_drawn(**drawn)


@pytest.mark.slow
@pytest.mark.parametrize("vector_size", [1, 15, 16, 17, 31, 33, 100, 300])
def test_train_bucket__equals_its_reference_in_every_dimension(vector_size):
    compare(150, 100, (20, 30), vector_size, 5, 3, np.random.default_rng(vector_size))


@pytest.mark.slow
def test_train_bucket__equals_its_reference_for_large_partitions():
    compare(150, 100, (20, 30), 16, 5, 3, np.random.default_rng(0), dtype=np.uint64)
