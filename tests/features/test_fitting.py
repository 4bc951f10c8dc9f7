"""Rows of n-grams fitted to vectors: the solution of the normal equations, and what it is good for."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from daskw2v import Vectors
from daskw2v.errors import ParameterError, UnknownWordError
from daskw2v.features.fitting import fit_rows, fit_rows_exactly
from daskw2v.features.words import WordFeatures
from daskw2v.models.queries.features import FeatureVectors
from daskw2v.models.stored.blocks import normalize_rows
from daskw2v.models.stored.tables import PiecedRows
from daskw2v.vocabulary.vocabulary import Vocabulary

STEMS, ENDINGS = ["gard", "comput", "swimm", "cook"], ["en", "ing", "ers", "ed", "able", "ment"]


def features_at_random(n_words, n_rows, rng):
    sizes = rng.integers(0, 7, n_words)
    rows = rng.integers(0, n_rows, sizes.sum()).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return WordFeatures(offsets, rows, np.zeros(0, np.float32), np.ones(n_words, np.float32))


@pytest.mark.parametrize("columns", [1, 16, 40])
def test_the_fit__equals_its_reference(columns):
    rng = np.random.default_rng(columns)
    features = features_at_random(60, 25, rng)
    targets = rng.normal(size=(60, columns)).astype(np.float32)
    weights = rng.uniform(0.1, 1, 60).astype(np.float32)
    actual = fit_rows(features, 25, targets, weights, ridge=0.1, steps=60)
    expected = fit_rows_exactly(features, 25, targets.astype(np.float64), weights.astype(np.float64), 0.1)
    np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-4)


def test_columns__are_fitted_apart():
    """So threads may share them out: the first columns are the same whatever stands beside them."""
    rng = np.random.default_rng(0)
    features, targets = features_at_random(60, 25, rng), rng.normal(size=(60, 48)).astype(np.float32)
    ones = np.ones(60, np.float32)
    np.testing.assert_array_equal(
        fit_rows(features, 25, targets, ones)[:, :16], fit_rows(features, 25, targets[:, :16], ones)
    )


def test_nothing_to_explain__gives_zeros():
    features = features_at_random(9, 5, np.random.default_rng(0))
    assert not fit_rows(features, 5, np.zeros((9, 3), np.float32), np.ones(9, np.float32)).any()


def stems(counts=True, size=12):
    """Vectors of words that are near the direction of their stem."""
    rng = np.random.default_rng(1)
    words = [stem + ending for stem in STEMS for ending in ENDINGS if stem + ending != "cooking"]
    directions = {stem: rng.normal(size=size) for stem in STEMS}
    rows = [directions[next(s for s in STEMS if word.startswith(s))] + rng.normal(0, 0.2, size) for word in words]
    numbers = range(len(words) + 1, 1, -1) if counts else [0] * len(words)
    return Vectors(Vocabulary.from_words(words, numbers), np.array(rows, np.float32))


@pytest.mark.parametrize("counts", [True, False])
def test_any_model__has_unseen_words_then(counts, tmp_path):
    plain = stems(counts)
    with pytest.raises(UnknownWordError):
        plain["cooking"]
    vectors = plain.with_ngrams(maxn=4, bucket=3000)
    assert all(word.startswith("cook") for word, _ in vectors.most_similar("cooking", topn=4))
    np.testing.assert_array_equal(vectors["cooked"], plain["cooked"])
    vectors.save(tmp_path / "model")
    np.testing.assert_array_equal(Vectors.open(tmp_path / "model")["cooking"], vectors["cooking"])


def test_the_most_frequent_ngrams__come_first():
    vectors = stems().with_ngrams(maxn=4, bucket=3000)
    words, keys = vectors.index_to_key, vectors.features.keys
    actual = keys.find_ngrams(words)
    often = np.bincount(actual.rows, np.repeat(vectors.vocabulary.counts, np.diff(actual.offsets)), len(keys))
    assert (np.diff(often) <= 0).all()


def test_a_mapped_model__stays_in_its_files(tmp_path):
    stems().save(tmp_path / "model")
    opened = Vectors.open(tmp_path / "model")
    for vectors in (opened.with_ngrams(maxn=4, bucket=3000), opened.with_ngrams(maxn=4, bucket=3000).prune(10)):
        assert vectors._rows is opened._rows
        assert isinstance(opened._rows, PiecedRows)


def test_pruning__keeps_the_most_frequent_ngrams_in_whatever_order_they_lie():
    vectors = stems().with_ngrams(maxn=4, bucket=3000)
    order = np.argsort(vectors.features.keys.buckets)  # that of fastText's files
    kept = replace(vectors.features.keys, buckets=vectors.features.keys.buckets[order])
    ordered = replace(vectors, features=FeatureVectors(kept, vectors.features.rows[order]))
    words, n = vectors.index_to_key, vectors.features.keys.buckets
    actual = kept.find_ngrams(words)
    often = np.bincount(actual.rows, np.repeat(vectors.vocabulary.counts, np.diff(actual.offsets)), len(n))
    small = ordered.prune(20).features
    assert sorted(often[kept.find_rows(small.keys.buckets)]) == sorted(often)[-20:]
    np.testing.assert_array_equal(small.rows, ordered.features.rows[kept.find_rows(small.keys.buckets)])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"minn": 0}, "minn=0"),
        ({"minn": 5, "maxn": 4}, "minn=5 is above maxn=4"),
        ({"bucket": 0}, "bucket=0"),
        ({"minn": 60, "maxn": 60}, "No word has an n-gram of 60 characters"),
        ({"bucket": 2**31}, "bucket=2147483648 is"),
        ({"maxn": 256}, "maxn=256 is"),
    ],
)
def test_wrong_lengths__are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        stems().with_ngrams(**options)


def test_queries__load_no_numba(tmp_path):
    assert "daskw2v.features.fitting" in sys.modules, "this test is about what others do not import"
    code = (
        "import sys, daskw2v; from daskw2v.models.queries.features import fit_ngrams; "
        "assert not {'numba', 'daskw2v.features.fitting'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_few_ngrams__are_fitted_alone():
    """Those of the most words; the others are left out of means, as of a pruned model."""
    whole, few = stems().with_ngrams(maxn=4, bucket=3000), stems().with_ngrams(maxn=4, bucket=3000, features=9)
    words, keys = whole.index_to_key, whole.features.keys
    rows = keys.find_ngrams(words).rows
    often = np.bincount(rows, minlength=len(keys))
    kept = keys.find_rows(few.features.keys.buckets)
    assert (len(few.features.keys), few.features.keys.pruned, keys.pruned) == (9, True, False)
    assert often[kept].min() >= np.delete(often, kept).max()
    residuals = []
    for vectors in (few, whole.prune(9)):
        spelled = [word for word in words if len(vectors.features.keys.find_ngrams([word]).rows)]
        residuals.append(
            np.linalg.norm(normalize_rows(vectors.features.vectors(spelled)) - normalize_rows(vectors[spelled]))
        )
    assert residuals[0] < residuals[1]
    with pytest.raises(ParameterError, match="features=0"):
        stems().with_ngrams(features=0)
    assert len(stems().with_ngrams(maxn=4, bucket=3000, features=10**6).features.keys) == len(keys)
