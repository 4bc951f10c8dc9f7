"""A two-dimensional map of the most frequent words."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from daskw2v.errors import ParameterError
from daskw2v.extras import needed
from daskw2v.models.vectors import Vectors
from daskw2v.report.text import number, percent
from daskw2v.types import Float32Array, Float64Array, Int64Array
from daskw2v.vocabulary.vocabulary import Vocabulary

_SEED = 1  # of UMAP, so that equal vectors give equal maps
_UMAP_NEIGHBOURS = 15  # UMAP's default; UMAP needs more words than this


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
    note
        How the map was made, in one sentence.
    """

    words: list[str]
    counts: Int64Array
    places: Float32Array
    neighbours: Int64Array
    cosines: Float32Array
    note: str


def word_map(vectors: Vectors, n_words: int = 2000, method: str = "pca", n_neighbours: int = 8) -> WordMap:
    """Project the most frequent words to two dimensions.

    Parameters
    ----------
    vectors
        The model. Only the rows of these words are read.
    n_words
        Number of words; all if the model has fewer.
    method
        `pca`: the first two principal components of the unit vectors. `umap`: keeps near words near; distances between
        far ones mean little. Needs `daskw2v[umap]`.
    n_neighbours
        Number of neighbours to find for each word among the others.

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
    places, note = METHODS[method](units)
    among = Vectors(Vocabulary.from_words(words, counts), units)
    found, cosines = among.nearest(units, n_neighbours + 1)
    # Among equal vectors the word itself may have any rank, or be missing: drop it, or else the last.
    itself = found == ids[:, None]
    itself[~itself.any(axis=1), -1:] = True
    return WordMap(words, counts, places, found[~itself].reshape(n, -1), cosines[~itself].reshape(n, -1), note)


def check_map(n_words: int, method: str) -> None:
    """Refuse a map that cannot be made.

    Raises
    ------
    ParameterError
        If the method is unknown, or there are no words.
    """
    if method not in METHODS:
        raise ParameterError(f"map_method={method!r} is unknown.", f"Give one of {', '.join(METHODS)}.")
    if n_words < 1:
        raise ParameterError(f"map_words={n_words!r} is below 1.", "Give the number of words on the map, such as 2000.")


def _pca(units: Float32Array) -> tuple[Float32Array, str]:
    centred = units.astype(np.float64) - units.mean(axis=0, dtype=np.float64)
    left, scales, _ = np.linalg.svd(centred, full_matrices=False)
    places = np.zeros((len(units), 2))
    flat = left[:, :2] * scales[:2]
    places[:, : flat.shape[1]] = flat * _signs(flat)
    whole = float(scales @ scales)
    share = float(scales[:2] @ scales[:2]) / whole if whole > 0 else 1.0
    return places.astype(np.float32), (
        f"The first two principal components of the unit vectors, of {number(units.shape[1])} dimensions. They explain "
        f"{percent(share)} of the variance, so words may look nearer than they are."
    )


def _signs(columns: Float64Array) -> Float64Array:
    """Return the sign of each column's largest entry; SVD leaves the signs undetermined."""
    largest = np.abs(columns).argmax(axis=0)
    return np.where(columns[largest, np.arange(columns.shape[1])] < 0, -1.0, 1.0)


def _umap(units: Float32Array) -> tuple[Float32Array, str]:
    if len(units) <= _UMAP_NEIGHBOURS:
        raise ParameterError(
            f"map_method='umap' needs more than {_UMAP_NEIGHBOURS} words; there are {len(units)}.",
            "Give more map_words, or map_method='pca'.",
        )
    umap = needed("umap", "umap")
    reducer = umap.UMAP(n_neighbors=_UMAP_NEIGHBOURS, metric="cosine", random_state=_SEED, n_jobs=1)
    return np.asarray(reducer.fit_transform(units), np.float32), (
        "UMAP of the unit vectors by cosine: words close together are similar; distances between clusters mean little."
    )


METHODS: dict[str, Callable[[Float32Array], tuple[Float32Array, str]]] = {"pca": _pca, "umap": _umap}
