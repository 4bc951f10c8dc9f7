"""Vectors of words and items that a model has not seen, composed of the rows of their features."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from daskw2v.errors import UnknownWordError
from daskw2v.features.keys import FeatureKeys, NGrams
from daskw2v.features.words import WordFeatures, sum_features, total_weights
from daskw2v.models.stored.coded_rows import CodedRows
from daskw2v.models.stored.rows import StoredRows
from daskw2v.types import BoolArray, Float32Array, Int64Array


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
    def of_buckets(cls, ngrams: NGrams, rows: Float32Array) -> Self:
        """Return the vectors of n-grams, given a row for each bucket, shape (bucket, D) float32, without zero rows."""
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
        """Return the rows of the table and of some n-grams, in memory, given the indices of their buckets."""
        first = self.keys.first_ngram
        rows = np.concatenate([np.arange(first), first + ngrams])
        return FeatureVectors(self.keys.kept(ngrams), np.ascontiguousarray(self.rows[rows]))

    def prefix(self, columns: int) -> "FeatureVectors":
        """Return these with the first columns of their rows, in memory."""
        return FeatureVectors(self.keys, np.ascontiguousarray(self.rows[:][:, :columns]))

    def vectors(self, words: Sequence[str]) -> Float32Array:
        """Return the means of words' n-grams, shape (n, D) float32.

        N-grams without a row count as zeros; in a pruned model they are left out of the mean.

        Raises
        ------
        UnknownWordError
            If a word has no n-gram with a row.
        """
        return self._composed(self.keys.of_words(words), words, "n-gram")

    def knows(self, words: Sequence[str]) -> BoolArray:
        """Tell which words have an n-gram with a row, shape (n,)."""
        return np.asarray(np.diff(self.keys.of_words(words).known().offsets) > 0)

    def of(self, items: Sequence[Mapping[str, Any]]) -> Float32Array:
        """Return the means of items' features, shape (n, D) float32; raises as `Vectors.of_features`."""
        return self._composed(self.keys.of_values(items), list(map(str, items)), "feature")

    def _composed(self, found: WordFeatures, names: Sequence[str], kind: str) -> Float32Array:
        for name, n in zip(names, np.diff(found.known().offsets), strict=True):
            if not n:
                raise UnknownWordError(
                    f"{name!r} has no {kind} that the model was trained on.",
                    "Ask for another one, or catch this error.",
                )
        return (
            sum_features(found, lambda rows: np.asarray(self.rows[rows]), self.vector_size)
            / total_weights(found)[:, None]
        )
