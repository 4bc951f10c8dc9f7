"""A two-dimensional map of the most frequent words."""

from dataclasses import dataclass

import numpy as np

from daskw2v.errors import ParameterError
from daskw2v.models.queries.vectors import Vectors
from daskw2v.reports.clusters import Cluster, clusters_of
from daskw2v.reports.layouts import LAYOUTS, NEIGHBOURS, check_layout
from daskw2v.types import Float32Array, Int64Array
from daskw2v.vocabulary.vocabulary import Vocabulary

_COMPARED = 10  # nearest words of each word whose places on the map are looked at
_BLOCK = 512  # words whose distances on the map are computed at once


@dataclass(frozen=True, eq=False)
class WordMap:
    """Words and their coordinates.

    Parameters
    ----------
    words
        The n words, most frequent first.
    counts
        Occurrences of each word, shape (n,) int64.
    places
        Coordinates, shape (n, 2) float32.
    neighbours, cosines
        For each word, the indices and cosines of its nearest among the n words, best first, both of shape (n, k).
    clusters
        Clusters of the words, the largest first; none of few words.
    note
        How the map was made, in one sentence or two.
    """

    words: list[str]
    counts: Int64Array
    places: Float32Array
    neighbours: Int64Array
    cosines: Float32Array
    clusters: list[Cluster]
    note: str

    def kept(self, among: int) -> float | None:
        """Return the share of each word's 10 nearest words that are among its nearest `among` on the map.

        None where a word has fewer than 10 others.
        """
        near = self.neighbours[:, :_COMPARED]
        if near.shape[1] < _COMPARED:
            return None
        return float(np.mean(_ranks_on_map(self.places, near) < among))


def word_map(vectors: Vectors, n_words: int = 2000, method: str = "graph") -> WordMap:
    """Lay out the most frequent words in two dimensions.

    Parameters
    ----------
    vectors
        The model. Only the rows of these words are read.
    n_words
        Number of words; all if the model has fewer. Time grows with its square.
    method
        `graph`: the graph of nearest words, laid out by the forces of t-SNE. `umap`: UMAP, which needs `daskw2v[umap]`.
        Both keep near words near; distances between far ones mean little. `pca`: the first two principal components of
        the unit vectors.

    Raises
    ------
    ParameterError
        If the method is unknown, or there are too few words for it.
    MissingExtraError
        If the method is `umap` and UMAP is not installed.
    """
    check_map(n_words, method)
    n = min(n_words, len(vectors))
    if n == 0:
        raise ParameterError("The model has no words for a map.", "Give a model with words.")
    ids = np.arange(n)
    units, words = vectors.units(ids), vectors.vocabulary.between(0, n)
    counts = vectors.vocabulary.counts[:n]
    among = Vectors(Vocabulary.from_words(words, counts), units)
    near, cosines = among.nearest(words, NEIGHBOURS)
    places, note = LAYOUTS[method](units, near)
    clusters = clusters_of(units, words, places)
    return WordMap(words, counts, places, near, cosines, clusters, note)


def check_map(n_words: int, method: str) -> None:
    """Refuse a map that cannot be made.

    Raises
    ------
    ParameterError
        If the method is unknown, or there are no words.
    """
    check_layout(method)
    if n_words < 1:
        raise ParameterError(f"map_words={n_words!r} is below 1.", "Give the number of words on the map, such as 2000.")


def _ranks_on_map(places: Float32Array, near: Int64Array) -> Int64Array:
    """Return how many other words are nearer on the map than each of the words `near`, of the same shape."""
    ranks = np.empty_like(near)
    for start in range(0, len(places), _BLOCK):
        block = slice(start, start + _BLOCK)
        away = ((places[block, None] - places) ** 2).sum(axis=2)
        away[np.arange(len(away)), np.arange(start, start + len(away))] = np.inf
        wanted = np.take_along_axis(away, near[block], axis=1)
        ranks[block] = (away[:, None, :] < wanted[:, :, None]).sum(axis=2)
    return ranks
