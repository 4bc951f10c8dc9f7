"""A two-dimensional map of the most frequent words: their positions, and their clusters with labels.

A layout takes the unit vectors of n words, shape (n, vector_size) float32, and the indices of each word's nearest words
among them, best first, shape (n, k) int64. It returns positions, shape (n, 2) float32, and a sentence on how they were
computed. The same vectors give the same map on one machine; only UMAP draws at random, from a fixed seed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from daskw2v.errors import ParameterError
from daskw2v.extras import needed
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.blocks import cut
from daskw2v.types import Float32Array, Float64Array, Int64Array
from daskw2v.vocabulary.vocabulary import Vocabulary

NEIGHBOURS = 15  # edges that each word has in the graph; UMAP's default, too

_COMPARED = 10  # nearest words of each word whose positions on the map are compared
_RANK_BLOCK = 512  # words whose distances on the map are computed at once
_SEED = 1  # of UMAP, and of the first centers of clusters

# Of layouts
_STEPS, _EARLY_STEPS = 200, 60  # of gradient descent, and the first of them
_EXAGGERATION = 12.0  # of the edges' pull in the early steps
_FIRST_DEVIATION = 1e-4  # standard deviation of the first coordinate before the first step
_BLOCK = 64  # words whose distances to all words are computed at once, so that they fit into a cache

# Of clusters
_CLUSTER_WORDS = 60  # on average
_MAX_ROUNDS = 50  # of k-means; most maps need fewer
_LABEL_WORDS = 3


@dataclass(frozen=True, eq=False)
class Cluster:
    """Words of a map whose vectors are near each other.

    Parameters
    ----------
    members
        Indices of the words, int64, most frequent first.
    label
        Up to three words, the most frequent ones of the half whose vectors are nearest to the cluster's center.
    word
        Index of the word whose position on the map is in the middle of this half.
    """

    members: Int64Array
    label: tuple[str, ...]
    word: int


@dataclass(frozen=True, eq=False)
class WordMap:
    """A map of words: their coordinates, nearest words and clusters.

    Parameters
    ----------
    words
        The n words, most frequent first.
    counts
        Occurrences of each word, shape (n,) int64.
    positions
        Coordinates, shape (n, 2) float32.
    neighbours, cosines
        Indices and cosines of the k words nearest to each word among the n words, itself excluded, best first, both of
        shape (n, k); k is 15, or n - 1 if that is less.
    clusters
        Clusters of the words, the largest first; empty for fewer than 120 words.
    note
        How the map was made, in one sentence or two.
    """

    words: list[str]
    counts: Int64Array
    positions: Float32Array
    neighbours: Int64Array
    cosines: Float32Array
    clusters: list[Cluster]
    note: str

    def kept(self, among: int) -> float | None:
        """Return the share of the 10 words nearest to each word that are among its `among` nearest words on the map.

        None if the map has no more than 10 words.
        """
        near = self.neighbours[:, :_COMPARED]
        if near.shape[1] < _COMPARED:
            return None
        return float(np.mean(_rank_on_map(self.positions, near) < among))


def make_word_map(vectors: Vectors, n_words: int = 2000, method: str = "graph") -> WordMap:
    """Return a map of a model's most frequent words, laid out in two dimensions.

    Parameters
    ----------
    vectors
        The model. Only the rows of these words are read.
    n_words
        Number of words; all words if the model has fewer. Time grows with the square of this number.
    method
        `graph`: the graph of nearest words, laid out by the forces of t-SNE. `umap`: UMAP, which needs `daskw2v[umap]`.
        Both keep near words near; distances between far words mean little.

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
    positions, note = LAYOUTS[method](units, near)
    return WordMap(words, counts, positions, near, cosines, find_clusters(units, words, positions), note)


def check_map(n_words: int, method: str) -> None:
    """Refuse a map of too few words, or of an unknown method.

    Parameters
    ----------
    n_words, method
        As in `make_word_map`.

    Raises
    ------
    ParameterError
        If the method is unknown, or there are no words.
    """
    if method not in LAYOUTS:
        raise ParameterError(f"map_method={method!r} is unknown.", f"Give one of {', '.join(LAYOUTS)}.")
    if n_words < 1:
        raise ParameterError(f"map_words={n_words!r} is below 1.", "Give the number of words on the map, such as 2000.")


def _rank_on_map(positions: Float32Array, near: Int64Array) -> Int64Array:
    """Return, for each word and each of its k words in `near`, how many words are nearer on the map, shape (n, k).

    Parameters
    ----------
    positions
        Coordinates of the n words, shape (n, 2).
    near
        Indices of k words for each word, shape (n, k).
    """
    ranks = np.empty_like(near)
    for block in cut(len(positions), _RANK_BLOCK):
        away = ((positions[block, None] - positions) ** 2).sum(axis=2)
        away[np.arange(len(away)), np.arange(block.start, block.stop)] = np.inf
        wanted = np.take_along_axis(away, near[block], axis=1)
        ranks[block] = (away[:, None, :] < wanted[:, :, None]).sum(axis=2)
    return ranks


def neighbour_graph(units: Float32Array, near: Int64Array) -> tuple[Float32Array, str]:
    """Lay out words so that edges of the graph of nearest words are short. A layout of `LAYOUTS`.

    Each edge pulls its two words together, and any two words push each other away: the forces of t-SNE (van der Maaten
    and Hinton, 2008, section 3), with equal weights of all edges, which change little (Böhm, Berens and Kobak, 2022,
    "Attraction-repulsion spectrum in neighbor embeddings", section 2). Principal components are the start, and a step
    is as long as n / 12 times the gradient (Kobak and Berens, 2019, "The art of using t-SNE for single-cell
    transcriptomics"), and longer for a coordinate while its sign stays. Time grows with n squared.
    """
    first = principal_components(units)
    start = (first * (_FIRST_DEVIATION / (first[:, 0].std() or 1))).astype(np.float32)
    positions = principal_components(_descend(start, *_make_edges(near)))  # the longer side across
    return positions.astype(np.float32), (
        f"The graph that joins each word to its {near.shape[1]} nearest, laid out so that edges are short: words close "
        "together are similar; distances between clusters mean little."
    )


def umap_layout(units: Float32Array, _: Int64Array) -> tuple[Float32Array, str]:
    """Lay out words by UMAP (McInnes, Healy and Melville, 2018). A layout of `LAYOUTS`.

    Raises
    ------
    ParameterError
        If there are too few words.
    MissingExtraError
        If UMAP is not installed.
    """
    if len(units) <= NEIGHBOURS:
        problem = f"map_method='umap' needs more than {NEIGHBOURS} words; there are {len(units)}."
        raise ParameterError(problem, "Give more map_words, or map_method='graph'.")
    umap = needed("umap", "umap")
    reducer = umap.UMAP(n_neighbors=NEIGHBOURS, metric="cosine", random_state=_SEED, n_jobs=1)
    return np.asarray(reducer.fit_transform(units), np.float32), (
        "UMAP of the unit vectors by cosine: words close together are similar; distances between clusters mean little."
    )


# Layouts by the names of methods
LAYOUTS: dict[str, Callable[[Float32Array, Int64Array], tuple[Float32Array, str]]] = {
    "graph": neighbour_graph,
    "umap": umap_layout,
}


def principal_components(rows: Float32Array) -> Float64Array:
    """Return the projections of n rows on their first two principal components, shape (n, 2) float64.

    Projections on missing components are 0. Of the projections on a component, the one farthest from 0 is positive.
    """
    centred = rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64)
    u, scales, _ = np.linalg.svd(centred, full_matrices=False)
    positions = np.zeros((len(rows), 2))
    projections = u[:, :2] * scales[:2]
    largest = projections[np.abs(projections).argmax(axis=0), np.arange(projections.shape[1])]
    signs = np.where(largest < 0, -1.0, 1.0)  # SVD leaves the signs undetermined
    positions[:, : projections.shape[1]] = projections * signs
    return positions


def _make_edges(near: Int64Array) -> tuple[Int64Array, Int64Array, Float32Array]:
    """Return the start, the end and the weight of each edge of the graph of nearest words, shape (e,) each.

    Edges are in both directions, and sorted. Weights sum to 1. Two words that have each other among their nearest words
    have an edge of double weight. `near` has the indices of each word's nearest words, shape (n, k).
    """
    n, k = near.shape
    starts, ends = np.repeat(np.arange(n), k), near.ravel()
    keys, times = np.unique(np.concatenate((starts * n + ends, ends * n + starts)), return_counts=True)
    return keys // n, keys % n, (times / max(times.sum(), 1)).astype(np.float32)


def _descend(positions: Float32Array, starts: Int64Array, ends: Int64Array, weights: Float32Array) -> Float32Array:
    """Return the positions, shape (n, 2), after gradient descent; edges are as `_make_edges` returns them."""
    rate = len(positions) / _EXAGGERATION
    moves, gains = np.zeros_like(positions), np.ones_like(positions)
    for step in range(_STEPS):
        exaggeration = _EXAGGERATION if step < _EARLY_STEPS else 1.0
        gradient = 4 * (_pull(positions, starts, ends, weights) * exaggeration - _push(positions))
        # The adaptive steps of Jacobs (1988), as in t-SNE
        gains = np.where(gradient * moves < 0, gains + 0.2, np.maximum(gains * 0.8, 0.01))
        moves = 0.8 * moves - rate * gains * gradient
        positions = positions + moves
    return positions


def _pull(positions: Float32Array, starts: Int64Array, ends: Int64Array, weights: Float32Array) -> Float32Array:
    """Return a quarter of the gradient of the edges' pull on each word, shape (n, 2); edges are of `_make_edges`."""
    apart = positions[starts] - positions[ends]
    apart *= (weights / (1 + (apart * apart).sum(axis=1)))[:, None]
    sums = [np.bincount(starts, apart[:, axis], len(positions)) for axis in (0, 1)]
    return np.stack(sums, axis=1).astype(np.float32)


def _push(positions: Float32Array) -> Float32Array:
    """Return minus a quarter of the gradient of all other words' push on each word, shape (n, 2)."""
    push, total = np.empty_like(positions), 0.0
    x, y = positions.T.copy()
    for block in cut(len(positions), _BLOCK):
        across, up = x[block, None] - x, y[block, None] - y
        closeness = across * across
        closeness += up * up
        closeness += 1
        np.reciprocal(closeness, out=closeness)  # 1 / (1 + squared distance)
        total += float(closeness.sum())
        closeness *= closeness
        # No BLAS: its threads would wait for each other longer than such a small product takes
        push[block, 0] = np.einsum("ij,ij->i", closeness, across)
        push[block, 1] = np.einsum("ij,ij->i", closeness, up)
    return push / np.float32(max(total - len(positions), 1e-9))  # a word does not push itself


def find_clusters(units: Float32Array, words: Sequence[str], positions: Float32Array) -> list[Cluster]:
    """Return clusters of the words of a map, of 60 words on average, the largest first; none of fewer than 120 words.

    The method is k-means of the unit vectors, with cosines for distances (Dhillon and Modha, 2001, "Concept
    decompositions for large sparse text data using clustering", section 3). Its first centers are drawn as k-means++
    draws them.

    Parameters
    ----------
    units
        Unit vectors of the n words, most frequent first, shape (n, vector_size).
    words
        The n words.
    positions
        Positions on the map, shape (n, 2).
    """
    n_clusters = len(units) // _CLUSTER_WORDS
    if n_clusters < 2:
        return []
    centers = _draw_centers(units, n_clusters)
    labels = np.full(len(units), -1)
    for _ in range(_MAX_ROUNDS):
        nearest = np.argmax(units @ centers.T, axis=1)
        if np.array_equal(nearest, labels):
            break
        labels = nearest
        for c in np.unique(labels):
            centers[c] = _normalize(units[labels == c].sum(axis=0))
    groups = [np.flatnonzero(labels == c) for c in np.unique(labels)]
    return [_make_cluster(members, units, words, positions) for members in sorted(groups, key=len, reverse=True)]


def _draw_centers(units: Float32Array, n_clusters: int) -> Float32Array:
    """Draw the vectors of words as first centers of clusters, as k-means++ does (Arthur and Vassilvitskii, 2007).

    A word is drawn with a probability in proportion to its squared distance from the nearest word drawn before. Fewer
    than `n_clusters` vectors are returned if there are fewer distinct vectors.
    """
    draws = np.random.default_rng(_SEED)
    chosen = [int(draws.integers(len(units)))]
    far: Float64Array = np.full(len(units), np.inf)
    while len(chosen) < n_clusters:
        far = np.minimum(far, np.maximum(1 - units @ units[chosen[-1]], 0))  # half of the squared distance
        if not far.any():  # fewer distinct vectors than clusters
            break
        chosen.append(int(draws.choice(len(units), p=far / far.sum())))
    return units[chosen]


def _make_cluster(members: Int64Array, units: Float32Array, words: Sequence[str], positions: Float32Array) -> Cluster:
    """Return the cluster of the words with the indices `members`; further arguments are as in `find_clusters`."""
    cosines = units[members] @ _normalize(units[members].sum(axis=0))
    core = np.sort(members[np.argsort(-cosines, kind="stable")[: (len(members) + 1) // 2]])
    away = np.abs(positions[core] - np.median(positions[core], axis=0)).sum(axis=1)
    return Cluster(members, tuple(words[i] for i in core[:_LABEL_WORDS]), int(core[np.argmin(away)]))


def _normalize(vector: Float32Array) -> Float32Array:
    """Return a vector divided by its length; zeros stay zeros."""
    length = np.linalg.norm(vector)
    return vector / length if length > 0 else vector
