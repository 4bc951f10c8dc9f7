"""The features of words, and vectors that are composed of their rows.

A word's vector is the weighted mean of its own row and of its features' rows. For n-grams, fastText gives all rows the
weight 1 (Bojanowski et al. 2017, section 3.2, where it is their sum). Here the weight of a word's own row may grow with
its count: a frequent word's own row describes it better, and its features then learn from rare words, which need them.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from daskw2v.types import Float32Array, Int32Array, Int64Array

_AT_ONCE = 1 << 20  # numbers of feature rows that are added up at once
_HEAVIEST = 1e18  # largest weight of an own row: training squares it in float32


class WordFeatures(NamedTuple):
    """The features of n words, as a ragged array.

    Parameters
    ----------
    offsets
        Bounds of each word's features, shape (n + 1,) int64.
    rows
        The row of each feature in the table of features, int32; -1 if it has none.
    weights
        The weight of each feature, float32; of length 0 where all are 1.
    own
        Weight of each word's own row, shape (n,) float32.
    """

    offsets: Int64Array
    rows: Int32Array
    weights: Float32Array
    own: Float32Array

    @property
    def n_words(self) -> int:
        """Number of the words."""
        return len(self.offsets) - 1

    def of(self, words: Int64Array) -> "WordFeatures":
        """Return the features of the words with these numbers, in their order."""
        sizes = np.diff(self.offsets)[words]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        places = np.arange(offsets[-1]) + np.repeat(self.offsets[words] - offsets[:-1], sizes)
        weights = self.weights[places] if len(self.weights) else self.weights
        return WordFeatures(offsets, self.rows[places], weights, self.own[words])

    def known(self) -> "WordFeatures":
        """Return the features that have a row."""
        known = self.rows >= 0
        offsets = np.concatenate([[0], np.cumsum(known)])[self.offsets]
        weights = self.weights[known] if len(self.weights) else self.weights
        return WordFeatures(offsets, self.rows[known], weights, self.own)

    def with_weights(self) -> Float32Array:
        """Return the weight of each feature, float32, also where all are 1."""
        return self.weights if len(self.weights) else np.ones(len(self.rows), np.float32)


def join_features(first: WordFeatures, second: WordFeatures) -> WordFeatures:
    """Return the features of the same words from two sources, word by word; weights of own rows are from `first`."""
    sizes = np.diff(first.offsets), np.diff(second.offsets)
    owners = np.concatenate([np.repeat(np.arange(len(each)), each) for each in sizes])
    order = np.argsort(owners, kind="stable")
    alike = not len(first.weights) and not len(second.weights)
    weights = first.weights if alike else np.concatenate([first.with_weights(), second.with_weights()])[order]
    offsets = first.offsets + second.offsets
    return WordFeatures(offsets, np.concatenate([first.rows, second.rows])[order], weights, first.own)


def sum_features(features: WordFeatures, rows_of: Callable[[Int32Array], Float32Array], columns: int) -> Float32Array:
    """Return the weighted sum of each word's feature rows, shape (n, D) float32.

    Parameters
    ----------
    features
        The features of n words; features without a row add nothing.
    rows_of
        Function from m numbers of rows to these rows of the table of features, shape (m, D) float32.
    columns
        D.
    """
    totals, weights = np.zeros((features.n_words, columns), np.float32), features.with_weights()
    owners, known = np.repeat(np.arange(features.n_words), np.diff(features.offsets)), features.rows >= 0
    step = max(1, _AT_ONCE // max(1, columns))
    places = np.flatnonzero(known)
    for part in (places[i : i + step] for i in range(0, len(places), step)):
        values = rows_of(features.rows[part]) * weights[part, None]
        firsts = np.flatnonzero(np.diff(owners[part], prepend=-1))
        totals[owners[part][firsts]] += np.add.reduceat(values, firsts, axis=0)
    return totals


def total_weights(features: WordFeatures) -> Float32Array:
    """Return the sum of the weights of each word's features, without its own row, shape (n,) float32."""
    sizes = np.diff(features.offsets)
    if not len(features.weights):
        return sizes.astype(np.float32)
    return np.bincount(np.repeat(np.arange(len(sizes)), sizes), features.weights, len(sizes)).astype(np.float32)


def weigh_own_rows(features: WordFeatures, counts: Int64Array, prior_count: int) -> WordFeatures:
    """Return features with the weight of each word's own row.

    Parameters
    ----------
    features
        The features of n words.
    counts
        The count of each word, shape (n,) int64.
    prior_count
        As in Params. At this count the own row weighs as much as all features together, at twice this count four
        times as much; it never weighs less than 1. With 0 all own rows have the weight 1.
    """
    if not prior_count:
        return features._replace(own=np.ones(features.n_words, np.float32))
    own = total_weights(features) * (counts / prior_count) ** 2
    return features._replace(own=np.clip(own, 1.0, _HEAVIEST).astype(np.float32))


def compose_vectors(
    features: WordFeatures, own: Float32Array, rows_of: Callable[[Int32Array], Float32Array]
) -> Float32Array:
    """Return the vectors of n words from their own rows, both shape (n, D) float32; the rest as in `sum_features`."""
    totals = sum_features(features, rows_of, own.shape[1])
    vectors: Float32Array = (features.own[:, None] * own + totals) / (features.own + total_weights(features))[:, None]
    return vectors


def own_rows(
    features: WordFeatures, vectors: Float32Array, rows_of: Callable[[Int32Array], Float32Array]
) -> Float32Array:
    """Return the own rows with which words have these vectors, shape (n, D): the inverse of `compose_vectors`."""
    totals = sum_features(features, rows_of, vectors.shape[1])
    own: Float32Array = (vectors * (features.own + total_weights(features))[:, None] - totals) / features.own[:, None]
    return own
