"""Counts of partitions: each has those of its own words, however the work is cut."""

import numpy as np
import pytest

from daskw2v import Params, Resources
from daskw2v.sampling import weights
from daskw2v.sampling.weights import partition_counts, word_weights
from daskw2v.stages import Store, build_corpus, build_vocabulary
from daskw2v.vocabulary.partition import Partitions


@pytest.fixture(scope="module")
def vocabulary(client, tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("weights"), np.random.default_rng(0)
    (folder / "text.txt").write_text(" ".join(f"w{w}" for w in rng.zipf(1.3, 3000) if w < 500))
    store, params = Store(str(folder / "work")), Params(min_count=1)
    corpus = build_corpus(folder / "text.txt", store, params, Resources(), client)
    return build_vocabulary(corpus, store, params, Resources(), client)


@pytest.mark.parametrize("n", [1, pytest.param(3, marks=pytest.mark.slow), 8, pytest.param(64, marks=pytest.mark.slow)])
@pytest.mark.parametrize("at_once", [pytest.param(1, marks=pytest.mark.slow), 40, 1 << 22])
def test_partition_counts__are_those_of_the_partitions_words(client, vocabulary, tmp_path, monkeypatch, n, at_once):
    monkeypatch.setattr(weights, "TASK_WORDS", at_once)
    partitions, folder = Partitions(vocabulary.size, n), Store(str(tmp_path))
    actual = partition_counts(client, vocabulary, partitions, 0.75, folder)
    counts = vocabulary.load().counts
    for k in range(n):
        own = counts[partitions.words(k)]
        np.testing.assert_array_equal(actual.read(k), own)
        assert actual.weights[k] == pytest.approx(word_weights(own, 0.75).sum())
    assert partition_counts(client, vocabulary, partitions, 0.75, folder) == actual, "read, not made again"
    (folder / "0" / actual.attempts[0]).remove()
    assert partition_counts(client, vocabulary, partitions, 0.75, folder).attempts[0] != actual.attempts[0]
