"""Vectors of words and items that a model has not seen, composed of the rows of their features."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from daskw2v.errors import UnknownWordError
from daskw2v.features.keys import FeatureKeys, NGrams
from daskw2v.features.words import WordFeatures, sums, total_weights
from daskw2v.models.coded_rows import CodedRows
from daskw2v.models.rows import StoredRows
from daskw2v.types import Float32Array, Int64Array


@dataclass(frozen=True, eq=False)
class FeatureVectors:
    """The rows of features, and vectors that are composed of them alone.

    Parameters
    ----------
    keys
        What each row stands for.
    rows
        Shape (F, D) float32, in memory, there as codes, or in a store.
    """

    keys: FeatureKeys
    rows: Float32Array | CodedRows | StoredRows

    @classmethod
    def of_buckets(cls, ngrams: NGrams, rows: Float32Array) -> Self:
        """Return those of a row for each bucket, shape (bucket, D); rows of zeros are left out."""
        trained = rows.any(axis=1)
        keys = FeatureKeys(ngrams=ngrams, buckets=np.flatnonzero(trained).astype(np.int32))
        return cls(keys, rows if trained.all() else rows[trained])

    @property
    def vector_size(self) -> int:
        """Dimensions of a vector."""
        return int(self.rows.shape[1])

    @property
    def spells(self) -> bool:
        """Whether words have n-grams."""
        return self.keys.ngrams.maxn > 0

    def kept(self, ngrams: Int64Array) -> "FeatureVectors":
        """Return the rows of the table and of some n-grams, given their numbers among the buckets, in memory."""
        first = self.keys.first_ngram
        rows = np.concatenate([np.arange(first), first + ngrams])
        return FeatureVectors(self.keys.kept(ngrams), np.ascontiguousarray(self.rows[rows]))

    def prefix(self, columns: int) -> "FeatureVectors":
        """Return the same with the first columns, in memory."""
        return FeatureVectors(self.keys, np.ascontiguousarray(self.rows[:][:, :columns]))

    def vectors(self, words: Sequence[str]) -> Float32Array:
        """Return the means of words' n-grams, shape (n, D) float32.

        N-grams that no word of the text has count as zeros; those of pruned models without a row are left out.

        Raises
        ------
        UnknownWordError
            If a word has no n-gram of a word of the text.
        """
        return self._composed(self.keys.of_words(words), words, "n-gram")

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
        return sums(found, lambda rows: np.asarray(self.rows[rows]), self.vector_size) / total_weights(found)[:, None]
