"""Two partitions on the CPU: what the reference does to their rows, and nothing to those that came."""

import numpy as np
import pytest

from daskw2v.config.params import Params
from daskw2v.kernels.simd import padded
from daskw2v.objectives.registry import find_objective
from daskw2v.objectives.sg_hs.buckets import reference as tree_reference
from daskw2v.objectives.sgns.buckets.reference import train_bucket
from daskw2v.sampling.hierarchy import make_word_table
from daskw2v.sampling.pairs import pack
from daskw2v.sampling.skipgrams import Bucket
from daskw2v.training.devices import find_device

EACH = {"tns": (5, 0), "sns": (0, 5), "bns": (0, 1)}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rule", EACH)
@pytest.mark.parametrize("vector_size", [10, 32])
def test_cpu_buckets__trains_as_the_reference(rule, vector_size):
    rng = np.random.default_rng(0)
    source, output = (rng.normal(scale=0.3, size=(n, vector_size)).astype(np.float32) for n in (20, 30))
    before = source.copy(), output.copy()
    (contexts, centers), (others, missing) = ((rng.integers(0, 20, n), rng.integers(0, 30, n)) for n in (200, 150))
    missing[::3] = -1
    noise = pack([others, missing], np.uint32)
    bucket = Bucket(pack([contexts, centers], np.uint32), noise if rule != "tns" else noise[:0])
    words, key = make_word_table(rng.integers(1, 100, 30), 0.75), np.uint64(7)
    params = Params(vector_size=vector_size, negative_rule=rule)
    other = np.ones((3, vector_size), np.float32)
    sources, outputs = {2: lambda: other, 5: lambda: source}, {7: lambda: output, 5: lambda: other}
    both = find_device("cpu").partition_trainer(find_objective("sgns"), params, sources, outputs, dict, 0, None)
    n, loss = both.train(5, 7, bucket, 0.05, words, key)
    truth = [rows.astype(np.float64) for rows in (source, output)]
    expected = train_bucket(*bucket, *truth, 0.05, *EACH[rule], words, key)
    assert n == expected[0] == 200
    assert loss == pytest.approx(expected[1], rel=1e-5)
    for rows in (both.take("input", 2), both.take("output", 5)):
        np.testing.assert_array_equal(rows[:, :vector_size], other, "these were not trained")
    trained = both.take("input", 5), both.take("output", 7)
    for found, rows, own, old in zip(trained, truth, (source, output), before, strict=True):
        np.testing.assert_allclose(found[:, :vector_size], rows, rtol=1e-4, atol=3e-5)
        assert found.flags.c_contiguous
        assert found.shape == (len(own), padded(vector_size))
        assert not found[:, vector_size:].any()
        np.testing.assert_array_equal(own, old)


def test_cpu_buckets__trains_hierarchical_softmax_as_the_reference():
    rng = np.random.default_rng(0)
    source, output = (rng.normal(scale=0.3, size=(n, 10)).astype(np.float32) for n in (20, 300))
    pairs = pack([rng.integers(0, 20, 200), np.sort(rng.integers(0, 300, 200))], np.uint32)
    counts, params = rng.integers(1, 100, 300), Params(objective="sg_hs", vector_size=10, n_partitions=8)
    kind = find_objective("sg_hs")
    both = find_device("cpu").partition_trainer(kind, params, {2: lambda: source}, {3: lambda: output}, dict, 0, None)
    bucket, links = Bucket(pairs, pairs[:0]), kind.partition_table(params, counts)
    n, loss = both.train(2, 3, bucket, 0.05, links, np.uint64(7))
    truth = [rows.astype(np.float64) for rows in (source, output)]
    expected = tree_reference.train_bucket(pairs, *truth, 0.05, tree_reference.word_paths(counts, 64 // 8))
    assert n == expected[0] == 200
    assert loss == pytest.approx(expected[1], rel=1e-5)
    for found, rows in zip((both.take("input", 2), both.take("output", 3)), truth, strict=True):
        np.testing.assert_allclose(found[:, :10], rows, rtol=1e-4, atol=3e-5)
