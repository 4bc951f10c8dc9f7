"""Clusters of the words on a map, and their labels."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from daskw2v.types import Float32Array, Float64Array, Int64Array

_SEED = 1  # of the first centers
_WORDS = 60  # of a cluster, on average
_ROUNDS = 50  # at most; most maps need fewer
_LABEL_WORDS = 3


@dataclass(frozen=True, eq=False)
class Cluster:
    """Words that are near each other in the whole vectors.

    Parameters
    ----------
    members
        Indices of its words, int64, most frequent first.
    label
        Its most frequent words among the half that is nearest to its center.
    word
        Index of the word whose place on the map is in the middle of these.
    """

    members: Int64Array
    label: tuple[str, ...]
    word: int


def clusters_of(units: Float32Array, words: Sequence[str], places: Float32Array) -> list[Cluster]:
    """Divide words into clusters of 60 words on average, the largest first; too few words have none.

    By k-means of the unit vectors, with cosines for distances (Dhillon and Modha, 2001, "Concept decompositions for
    large sparse text data using clustering", section 3). Its first centers are drawn as k-means++ draws them.

    Parameters
    ----------
    units
        Unit vectors of the n words, most frequent first, shape (n, vector_size).
    words
        The n words.
    places
        Places on the map, shape (n, 2).
    """
    n_clusters = len(units) // _WORDS
    if n_clusters < 2:
        return []
    centers = _first_centers(units, n_clusters)
    labels = np.full(len(units), -1)
    for _ in range(_ROUNDS):
        nearest = np.argmax(units @ centers.T, axis=1)
        if np.array_equal(nearest, labels):
            break
        labels = nearest
        for c in np.unique(labels):
            centers[c] = _unit(units[labels == c].sum(axis=0))
    found = [np.flatnonzero(labels == c) for c in np.unique(labels)]
    return [_cluster(members, units, words, places) for members in sorted(found, key=len, reverse=True)]


def _first_centers(units: Float32Array, n_clusters: int) -> Float32Array:
    """Draw words, each by its squared distance from the nearest that is drawn (Arthur and Vassilvitskii, 2007)."""
    draws = np.random.default_rng(_SEED)
    chosen = [int(draws.integers(len(units)))]
    far: Float64Array = np.full(len(units), np.inf)
    while len(chosen) < n_clusters:
        far = np.minimum(far, np.maximum(1 - units @ units[chosen[-1]], 0))  # half of the squared distance
        if not far.any():  # fewer distinct vectors than clusters
            break
        chosen.append(int(draws.choice(len(units), p=far / far.sum())))
    return units[chosen]


def _cluster(members: Int64Array, units: Float32Array, words: Sequence[str], places: Float32Array) -> Cluster:
    cosines = units[members] @ _unit(units[members].sum(axis=0))
    core = np.sort(members[np.argsort(-cosines, kind="stable")[: (len(members) + 1) // 2]])
    away = np.abs(places[core] - np.median(places[core], axis=0)).sum(axis=1)
    return Cluster(members, tuple(words[i] for i in core[:_LABEL_WORDS]), int(core[np.argmin(away)]))


def _unit(vector: Float32Array) -> Float32Array:
    length = np.linalg.norm(vector)
    return vector / length if length > 0 else vector
