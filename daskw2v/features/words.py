"""The features of words, and vectors that are composed of their rows.

A word's vector is the weighted mean of its own row and of its features' rows. For n-grams, fastText gives all rows the
weight 1 (Bojanowski et al. 2017, section 3.2, where it is their sum). Here the weight of a word's own row may grow with
its count: a frequent word's own row describes it better, and its features then learn from rare words, which need them.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from daskw2v.types import Float32Array, Int32Array, Int64Array

_NUMBERS_AT_ONCE = 1 << 20  # numbers of feature rows that are added up at once
_MAX_OWN_WEIGHT = 1e18  # training squares it in float32
RowReader = Callable[[Int32Array], Float32Array]  # returns the rows of features with these numbers


class WordFeatures(NamedTuple):
    """The features of n words, as a ragged array.

    Parameters
    ----------
    offsets
        Bounds of each word's features, shape (n + 1,) int64.
    rows
        The row of each feature in the table of features, int32; -1 for a feature without a row.
    weights
        The weight of each feature, float32; of length 0 where all weights are 1.
    own
        Weight of each word's own row, shape (n,) float32.
    """

    offsets: Int64Array
    rows: Int32Array
    weights: Float32Array
    own: Float32Array

    @property
    def n_words(self) -> int:
        """Number of words."""
        return len(self.offsets) - 1

    def select(self, words: Int64Array) -> "WordFeatures":
        """Return the features of the words with these indices, in the order of the indices."""
        sizes = np.diff(self.offsets)[words]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        indices = np.arange(offsets[-1]) + np.repeat(self.offsets[words] - offsets[:-1], sizes)
        weights = self.weights[indices] if len(self.weights) else self.weights
        return WordFeatures(offsets, self.rows[indices], weights, self.own[words])

    def drop_missing(self) -> "WordFeatures":
        """Return the features of the words, without the features that have no row."""
        has_row = self.rows >= 0
        offsets = np.concatenate([[0], np.cumsum(has_row)])[self.offsets]
        weights = self.weights[has_row] if len(self.weights) else self.weights
        return WordFeatures(offsets, self.rows[has_row], weights, self.own)

    def expand_weights(self) -> Float32Array:
        """Return the weight of each feature, float32, of full length also where all weights are 1."""
        return self.weights if len(self.weights) else np.ones(len(self.rows), np.float32)


def join_features(first: WordFeatures, second: WordFeatures) -> WordFeatures:
    """Return features of n words joined with further features of these words; `own` is that of `first`."""
    sizes = np.diff(first.offsets), np.diff(second.offsets)
    owners = np.concatenate([np.repeat(np.arange(len(counts)), counts) for counts in sizes])
    order = np.argsort(owners, kind="stable")
    unweighted = not len(first.weights) and not len(second.weights)
    weights = first.weights if unweighted else np.concatenate([first.expand_weights(), second.expand_weights()])[order]
    offsets = first.offsets + second.offsets
    return WordFeatures(offsets, np.concatenate([first.rows, second.rows])[order], weights, first.own)


def sum_features(features: WordFeatures, read_rows: RowReader, columns: int) -> Float32Array:
    """Return the weighted sum of each word's feature rows, shape (n, D) float32.

    Parameters
    ----------
    features
        The features of n words; features without a row add nothing.
    read_rows
        Function from m indices of rows to these rows of the table of features, shape (m, D) float32.
    columns
        D.
    """
    totals, weights = np.zeros((features.n_words, columns), np.float32), features.expand_weights()
    owners, has_row = np.repeat(np.arange(features.n_words), np.diff(features.offsets)), features.rows >= 0
    step = max(1, _NUMBERS_AT_ONCE // max(1, columns))
    indices = np.flatnonzero(has_row)
    for part in (indices[i : i + step] for i in range(0, len(indices), step)):
        values = read_rows(features.rows[part]) * weights[part, None]
        firsts = np.flatnonzero(np.diff(owners[part], prepend=-1))
        totals[owners[part][firsts]] += np.add.reduceat(values, firsts, axis=0)
    return totals


def total_weights(features: WordFeatures) -> Float32Array:
    """Return the sum of the weights of each word's features, also of those without a row, shape (n,) float32.

    The weight of the word's own row is not included.
    """
    sizes = np.diff(features.offsets)
    if not len(features.weights):
        return sizes.astype(np.float32)
    return np.bincount(np.repeat(np.arange(len(sizes)), sizes), features.weights, len(sizes)).astype(np.float32)


def weigh_own_rows(features: WordFeatures, counts: Int64Array, prior_count: int) -> WordFeatures:
    """Return features with weights of the words' own rows that grow with the words' counts.

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
    return features._replace(own=np.clip(own, 1.0, _MAX_OWN_WEIGHT).astype(np.float32))


def compose_vectors(features: WordFeatures, own: Float32Array, read_rows: RowReader) -> Float32Array:
    """Return the vectors of n words, composed of their own rows and of their features' rows.

    Own rows and vectors have the shape (n, D) float32. `read_rows` is as in `sum_features`.
    """
    totals = sum_features(features, read_rows, own.shape[1])
    vectors: Float32Array = (features.own[:, None] * own + totals) / (features.own + total_weights(features))[:, None]
    return vectors


def solve_own_rows(features: WordFeatures, vectors: Float32Array, read_rows: RowReader) -> Float32Array:
    """Return the own rows with which `compose_vectors` returns these vectors, both of shape (n, D) float32."""
    totals = sum_features(features, read_rows, vectors.shape[1])
    own: Float32Array = (vectors * (features.own + total_weights(features))[:, None] - totals) / features.own[:, None]
    return own
