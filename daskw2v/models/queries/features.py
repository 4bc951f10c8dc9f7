"""Rows of features, which compose vectors of words from their n-grams and of items from their features.

N-grams can be fitted to any model.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

import numpy as np

from daskw2v.errors import ParameterError, UnknownWordError
from daskw2v.features.keys import FeatureKeys, HashedNGrams
from daskw2v.features.words import WordFeatures, sum_features, total_weights
from daskw2v.models.stored.blocks import cut, scaled
from daskw2v.models.stored.quantization import CodedRows
from daskw2v.models.stored.tables import StoredRows
from daskw2v.types import BoolArray, Float32Array, Int64Array
from daskw2v.vocabulary.vocabulary import Vocabulary

_SURE = 200  # count from which on a word has its full weight
_WORDS_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class FeatureVectors:
    """The rows of features, and vectors that are composed of them alone.

    Parameters
    ----------
    keys
        The meaning of each row.
    rows
        The rows, shape (F, D) float32: in memory, quantized in memory, or in a store.
    """

    keys: FeatureKeys
    rows: Float32Array | CodedRows | StoredRows

    @classmethod
    def of_buckets(cls, ngrams: HashedNGrams, rows: Float32Array) -> Self:
        """Return the vectors of n-grams of a row for each bucket, shape (bucket, D) float32; zero rows are left out."""
        trained = rows.any(axis=1)
        keys = FeatureKeys(ngrams=ngrams, buckets=np.flatnonzero(trained).astype(np.int32))
        return cls(keys, rows if trained.all() else rows[trained])

    @property
    def vector_size(self) -> int:
        """Dimensions of a vector."""
        return int(self.rows.shape[1])

    @property
    def spells(self) -> bool:
        """True if words have n-grams."""
        return self.keys.ngrams.maxn > 0

    def kept(self, ngrams: Int64Array) -> "FeatureVectors":
        """Return the rows of the table and of the n-grams with these indices of buckets, in memory."""
        first = self.keys.first_ngram
        rows = np.concatenate([np.arange(first), first + ngrams])
        return FeatureVectors(self.keys.select_ngrams(ngrams), np.ascontiguousarray(self.rows[rows]))

    def prefix(self, columns: int) -> "FeatureVectors":
        """Return the vectors of the first columns of the rows, in memory."""
        return FeatureVectors(self.keys, np.ascontiguousarray(self.rows[:][:, :columns]))

    def vectors(self, words: Sequence[str]) -> Float32Array:
        """Return the means of words' n-grams, shape (n, D) float32.

        N-grams without a row count as zeros; in a pruned model they are left out of the mean.

        Raises
        ------
        UnknownWordError
            If a word has no n-gram with a row.
        """
        return self._composed(self.keys.find_ngrams(words), words, "n-gram")

    def knows(self, words: Sequence[str]) -> BoolArray:
        """Return which words have an n-gram with a row, shape (n,)."""
        return np.asarray(np.diff(self.keys.find_ngrams(words).drop_missing().offsets) > 0)

    def of(self, items: Sequence[Mapping[str, Any]]) -> Float32Array:
        """Return the means of items' features, shape (n, D) float32; raises as `Vectors.of_features`."""
        return self._composed(self.keys.find_values(items), list(map(str, items)), "feature")

    def _composed(self, features: WordFeatures, names: Sequence[str], kind: str) -> Float32Array:
        for name, n in zip(names, np.diff(features.drop_missing().offsets), strict=True):
            if not n:
                raise UnknownWordError(
                    f"{name!r} has no {kind} that the model was trained on.",
                    "Ask for another one, or catch this error.",
                )
        sums = sum_features(features, lambda rows: np.asarray(self.rows[rows]), self.vector_size)
        return np.asarray(sums / total_weights(features)[:, None])


def fit_ngrams(
    vocabulary: Vocabulary,
    pieces: Iterable[tuple[slice, Float32Array]],
    columns: int,
    ngrams: HashedNGrams,
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
        Number of n-grams with rows, the n-grams of the most words; all by default.

    Raises
    ------
    ParameterError
        If no word has an n-gram of that length.
    """
    # These modules load Numba, which queries do not load
    fitting, kernel = map(import_module, ("daskw2v.features.fitting", "daskw2v.features.ngram_kernel"))
    units = np.empty((len(vocabulary), columns), np.float32)
    for ids, vectors in pieces:
        units[ids] = scaled(vectors)
    offsets, buckets = kernel.hash_stored_words(vocabulary.data, vocabulary.offsets, *ngrams)
    if not len(buckets):
        raise ParameterError(f"No word has an n-gram of {ngrams.minn} characters.", "Give a smaller minn.")
    used, positions = np.unique(buckets, return_inverse=True)
    order = np.argsort(-np.bincount(positions), kind="stable")[:most]
    often = np.bincount(positions, np.repeat(_weights_of(vocabulary), np.diff(offsets)))
    order = order[np.argsort(-often[order], kind="stable")]
    rank = np.full(len(used), -1, np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    ones, none = np.ones(len(vocabulary), np.float32), np.zeros(0, np.float32)
    features = WordFeatures(offsets, rank[positions], none, ones).drop_missing()
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
    for ids in cut(len(vocabulary), _WORDS_AT_ONCE):
        bounds = vocabulary.offsets[ids.start : ids.stop + 1]
        starts, buckets = kernel.hash_stored_words(vocabulary.data, bounds, *keys.ngrams)
        rows, counts = keys.find_rows(buckets), np.repeat(often[ids], np.diff(starts))
        totals += np.bincount(rows[rows >= 0], counts[rows >= 0], len(keys))
    return np.argsort(-totals[keys.first_ngram :], kind="stable")


def _weights_of(vocabulary: Vocabulary) -> Int64Array:
    """Return the counts of words, shape (V,) int64; ones if no word has a count."""
    return vocabulary.counts if vocabulary.counts.any() else np.ones(len(vocabulary), np.int64)
