"""N-grams for any model: their rows are fitted to its vectors, and the vectors of unseen words are composed of them."""

from collections.abc import Iterable
from importlib import import_module

import numpy as np

from daskw2v.errors import ParameterError
from daskw2v.features.keys import FeatureKeys, NGrams
from daskw2v.features.words import WordFeatures
from daskw2v.models.queries.composed import FeatureVectors
from daskw2v.models.stored.threads import cut
from daskw2v.models.stored.units import scaled
from daskw2v.types import Float32Array, Int64Array
from daskw2v.vocabulary.vocabulary import Vocabulary

_SURE = 200  # count from which on a word has its full weight
_WORDS_AT_ONCE = 1 << 20


def fit_ngrams(
    vocabulary: Vocabulary,
    pieces: Iterable[tuple[slice, Float32Array]],
    columns: int,
    ngrams: NGrams,
    most: int | None = None,
) -> FeatureVectors:
    """Return rows of n-grams whose means approximate the directions of words' vectors.

    Each row is the mean of all directions and a fitted difference from it. The weight of a word in the fit is the
    square root of its count / _SURE, at most 1. The most frequent n-grams come first, as in a model that is trained
    with n-grams.

    Parameters
    ----------
    vocabulary
        The words.
    pieces
        Ranges of their ids, and the vectors, shape (n, D).
    columns
        D.
    ngrams
        Which n-grams.
    most
        Number of n-grams with rows, those that occur in the most words; all by default.

    Raises
    ------
    ParameterError
        If no word has an n-gram of that length.
    """
    # They load Numba, which queries do not
    fitting, kernel = map(import_module, ("daskw2v.features.fitting", "daskw2v.features.ngram_kernel"))
    units = np.empty((len(vocabulary), columns), np.float32)
    for ids, vectors in pieces:
        units[ids] = scaled(vectors)
    offsets, buckets = kernel.ngrams_in(vocabulary.data, vocabulary.offsets, *ngrams)
    if not len(buckets):
        raise ParameterError(f"No word has an n-gram of {ngrams.minn} characters.", "Give a smaller minn.")
    used, places = np.unique(buckets, return_inverse=True)
    order = np.argsort(-np.bincount(places), kind="stable")[:most]
    often = np.bincount(places, np.repeat(_weights_of(vocabulary), np.diff(offsets)))
    order = order[np.argsort(-often[order], kind="stable")]
    rank = np.full(len(used), -1, np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    ones, none = np.ones(len(vocabulary), np.float32), np.zeros(0, np.float32)
    features = WordFeatures(offsets, rank[places], none, ones).known()
    counts = vocabulary.counts
    sure = np.sqrt(np.minimum(1.0, counts / _SURE)).astype(np.float32) if counts.any() else ones
    mean = units.mean(axis=0)
    units -= mean
    fitted = fitting.fit_rows(features, len(order), units, sure)
    fitted *= np.float32(np.sqrt(np.maximum(1, np.diff(features.offsets))).mean())  # sums by roots become means
    fitted += mean
    keys = FeatureKeys(ngrams=ngrams, buckets=used[order].astype(np.int32), pruned=len(order) < len(used))
    return FeatureVectors(keys, fitted)


def most_frequent(keys: FeatureKeys, vocabulary: Vocabulary) -> Int64Array:
    """Return the indices of the buckets of `keys`, the most frequent in the text first, shape (n,) int64."""
    kernel = import_module("daskw2v.features.ngram_kernel")
    often, totals = _weights_of(vocabulary), np.zeros(len(keys))
    for some in cut(len(vocabulary), _WORDS_AT_ONCE):
        bounds = vocabulary.offsets[some.start : some.stop + 1]
        starts, buckets = kernel.ngrams_in(vocabulary.data, bounds, *keys.ngrams)
        rows, counts = keys.rows_of(buckets), np.repeat(often[some], np.diff(starts))
        totals += np.bincount(rows[rows >= 0], counts[rows >= 0], len(keys))
    return np.argsort(-totals[keys.first_ngram :], kind="stable")


def _weights_of(vocabulary: Vocabulary) -> Int64Array:
    """Return the counts of words, shape (V,) int64; ones if a file of vectors had none."""
    return vocabulary.counts if vocabulary.counts.any() else np.ones(len(vocabulary), np.int64)
