"""Negatives of the word-context matrix: words are drawn as often as they are its contexts."""

import numpy as np
import pytest

from daskw2v import Params, Resources
from daskw2v.objectives.context_matrix import prepare
from daskw2v.sampling.context_matrix import build_matrix, read_contexts
from daskw2v.sampling.run import Run
from daskw2v.sampling.settings import SampledContexts
from daskw2v.stages import Store, build_corpus, build_vocabulary
from daskw2v.store.arrays import read_array
from tests.support.alias import shares_of

WORDS = 60
PARAMS = Params(objective="context_matrix", strategy="columns", min_count=1, window=2, shrink_windows=False, sample=0.0)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """One sentence of Zipf's words."""
    path = tmp_path_factory.mktemp("negatives") / "text"
    drawn = np.minimum(np.random.default_rng(4).zipf(1.4, 40_000), WORDS)
    path.write_text(" ".join(f"w{word}" for word in drawn))
    return path


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "change", [{}, {"sample": 0.01}, {"context_sample": 0.01}, {"sample": 0.1, "context_sample": 0.03}]
)
def test_prepare__draws_words_as_often_as_they_are_contexts(client, text, change):
    params = PARAMS.replace(context_size=1 << 17, **change)  # more columns than any word has pairs
    store = Store(str(text.parent / "work"))
    corpus = build_corpus(text, store, params, Resources(), client)
    vocabulary = build_vocabulary(corpus, store, params, Resources(), client)
    matrix = build_matrix(client, Run(store, corpus.name, vocabulary, params, "cpu"))
    contexts = read_contexts(matrix.group, (0, matrix.words), (0, SampledContexts.of(params).context_size))
    seen = read_array((matrix.folder / matrix.build / "matrix").open_group(), "seen")
    assert seen.max() < SampledContexts.of(params).context_size
    met = sum(np.bincount(row[:n], minlength=matrix.words) for row, n in zip(contexts, seen, strict=True))
    drawn = shares_of(prepare(params, vocabulary.load().counts).noise)
    np.testing.assert_allclose(drawn, met / met.sum(), rtol=0.1, atol=3e-4)


def test_prepare__takes_another_power_where_it_is_given():
    counts = np.array([1000, 100, 10])
    for exponent in (0.0, 0.75, 1.0):
        expected = counts**exponent / (counts**exponent).sum()
        actual = shares_of(prepare(PARAMS.replace(ns_exponent=exponent), counts).noise)
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_prepare__gives_both_tables_one_optimum():
    """The best dot product of two words for the input row, and for the output row (the derivation in `prepare`)."""
    rng = np.random.default_rng(1)
    pairs = rng.integers(1, 100, (8, 8)) * np.outer(*[2.0 ** -np.arange(8)] * 2)
    pairs += pairs.T
    counts = np.rint(pairs.sum(axis=1) * 1e4).astype(np.int64)
    given = pairs / pairs.sum(axis=1, keepdims=True)

    def gap(params):
        share = shares_of(prepare(params, counts).noise)
        return np.abs(np.log(given / share) - np.log(given / share).T).max()

    assert gap(PARAMS) < 1e-4
    assert gap(PARAMS.replace(ns_exponent=0.75)) > 0.5
