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
from daskw2v.models.stored.blocks import cut, normalize_rows
from daskw2v.models.stored.quantization import CodedRows
from daskw2v.models.stored.tables import StoredRows
from daskw2v.types import BoolArray, Float32Array, Int64Array
from daskw2v.vocabulary.vocabulary import Vocabulary

_FULL_COUNT = 200  # count from which on a word has its full weight
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
    def from_buckets(cls, ngrams: HashedNGrams, rows: Float32Array) -> Self:
        """Return the rows of n-grams, from one for each bucket, (bucket, D) float32; zero rows are left out."""
        is_trained = rows.any(axis=1)
        keys = FeatureKeys(ngrams=ngrams, buckets=np.flatnonzero(is_trained).astype(np.int32))
        return cls(keys, rows if is_trained.all() else rows[is_trained])

    @property
    def vector_size(self) -> int:
        """Dimensions of a vector."""
        return int(self.rows.shape[1])

    @property
    def has_ngrams(self) -> bool:
        """Whether words have n-grams; otherwise all features are of a table."""
        return self.keys.ngrams.maxn > 0

    def select_ngrams(self, ngrams: Int64Array) -> "FeatureVectors":
        """Return the rows of the user's table, and of the n-grams with these indices in `keys.buckets`, in memory."""
        first = self.keys.first_ngram
        rows = np.concatenate([np.arange(first), first + ngrams])
        return FeatureVectors(self.keys.select_ngrams(ngrams), np.ascontiguousarray(self.rows[rows]))

    def prefix(self, columns: int) -> "FeatureVectors":
        """Return the features with the first columns of their rows, in memory."""
        return FeatureVectors(self.keys, np.ascontiguousarray(self.rows[:][:, :columns]))

    def vectors(self, words: Sequence[str]) -> Float32Array:
        """Return the mean of the rows of each word's n-grams, shape (n, D) float32.

        N-grams without a row count as zeros; in a pruned model they are left out of the mean.

        Raises
        ------
        UnknownWordError
            If a word has no n-gram with a row.
        """
        return self._compose(self.keys.find_ngrams(words), words, "n-gram")

    def knows(self, words: Sequence[str]) -> BoolArray:
        """Return whether each of n words has an n-gram with a row, shape (n,)."""
        return np.asarray(np.diff(self.keys.find_ngrams(words).drop_missing().offsets) > 0)

    def item_vectors(self, items: Sequence[Mapping[str, Any]]) -> Float32Array:
        """Return the mean of the rows of each item's features, shape (n, D); raises as `Vectors.of_features`."""
        return self._compose(self.keys.find_values(items), list(map(str, items)), "feature")

    def _compose(self, features: WordFeatures, names: Sequence[str], kind: str) -> Float32Array:
        """Return the mean row of the features of each of n words or items, shape (n, D).

        Parameters
        ----------
        features
            The features of each.
        names, kind
            Names of the words or items, and of their features, for the error if one has no feature with a row.
        """
        for name, n in zip(names, np.diff(features.drop_missing().offsets), strict=True):
            if not n:
                problem = f"{name!r} has no {kind} that the model was trained on."
                raise UnknownWordError(problem, "Ask for another one, or catch this error.")
        sums = sum_features(features, lambda rows: np.asarray(self.rows[rows]), self.vector_size)
        return np.asarray(sums / total_weights(features)[:, None])


def fit_ngrams(
    vocabulary: Vocabulary,
    blocks: Iterable[tuple[slice, Float32Array]],
    columns: int,
    ngrams: HashedNGrams,
    max_ngrams: int | None = None,
) -> FeatureVectors:
    """Return rows of n-grams whose means approximate the directions of words' vectors.

    Each row is the mean of all directions plus a fitted difference. The weight of a word in the fit is the square root
    of (count / _FULL_COUNT), at most 1; it is 1 if no word has a count. The most frequent n-grams come first, as in a
    model that is trained with n-grams.

    Parameters
    ----------
    vocabulary
        The words.
    blocks
        Ranges of ids, and the vectors of their words, shape (n, D).
    columns
        Dimensions of the vectors, D.
    ngrams
        Lengths and buckets of the n-grams.
    max_ngrams
        Largest number of n-grams with rows; the n-grams of the most words are kept, and all by default.

    Raises
    ------
    ParameterError
        If no word has an n-gram of that length.
    """
    # These modules load Numba, which queries do not load
    fitting, kernel = map(import_module, ("daskw2v.features.fitting", "daskw2v.features.ngram_kernel"))
    units = np.empty((len(vocabulary), columns), np.float32)
    for ids, vectors in blocks:
        units[ids] = normalize_rows(vectors)
    offsets, buckets = kernel.hash_stored_words(vocabulary.data, vocabulary.offsets, *ngrams)
    if not len(buckets):
        raise ParameterError(f"No word has an n-gram of {ngrams.minn} characters.", "Give a smaller minn.")
    distinct, positions = np.unique(buckets, return_inverse=True)
    order = np.argsort(-np.bincount(positions), kind="stable")[:max_ngrams]
    frequencies = np.bincount(positions, np.repeat(_counts_or_ones(vocabulary), np.diff(offsets)))
    order = order[np.argsort(-frequencies[order], kind="stable")]
    rank = np.full(len(distinct), -1, np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    ones, no_weights = np.ones(len(vocabulary), np.float32), np.zeros(0, np.float32)
    features = WordFeatures(offsets, rank[positions], no_weights, ones).drop_missing()
    counts = vocabulary.counts
    confidence = np.sqrt(np.minimum(1.0, counts / _FULL_COUNT)).astype(np.float32) if counts.any() else ones
    mean = units.mean(axis=0)
    units -= mean
    fitted = fitting.fit_rows(features, len(order), units, confidence)
    fitted *= np.float32(np.sqrt(np.maximum(1, np.diff(features.offsets))).mean())  # sums by roots become means
    fitted += mean
    keys = FeatureKeys(ngrams=ngrams, buckets=distinct[order].astype(np.int32), pruned=len(order) < len(distinct))
    return FeatureVectors(keys, fitted)


def rank_ngrams(keys: FeatureKeys, vocabulary: Vocabulary) -> Int64Array:
    """Return the indices of all n n-grams in `keys.buckets`, the most frequent in the text first, shape (n,) int64."""
    kernel = import_module("daskw2v.features.ngram_kernel")
    word_counts, totals = _counts_or_ones(vocabulary), np.zeros(len(keys))
    for ids in cut(len(vocabulary), _WORDS_AT_ONCE):
        bounds = vocabulary.offsets[ids.start : ids.stop + 1]
        starts, buckets = kernel.hash_stored_words(vocabulary.data, bounds, *keys.ngrams)
        rows, counts = keys.find_rows(buckets), np.repeat(word_counts[ids], np.diff(starts))
        totals += np.bincount(rows[rows >= 0], counts[rows >= 0], len(keys))
    return np.argsort(-totals[keys.first_ngram :], kind="stable")


def _counts_or_ones(vocabulary: Vocabulary) -> Int64Array:
    """Return the count of each word, shape (V,) int64; ones if no word has a count."""
    return vocabulary.counts if vocabulary.counts.any() else np.ones(len(vocabulary), np.int64)
