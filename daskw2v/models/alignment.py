"""Alignment: rotates a model into the space of another one, so that vectors of both are comparable.

Training determines vectors up to a rotation. The rotation that brings the words of both models closest together
(orthogonal Procrustes: Schönemann 1966; for word vectors: Hamilton, Leskovec and Jurafsky 2016) is U V^T, where U S V^T
is the SVD of the sum of the outer products of their vectors. It may include a reflection.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskw2v.errors import ParameterError, VocabularyError
from daskw2v.models.queries.features import FeatureVectors
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.blocks import cut
from daskw2v.objectives.subwords.network import Subwords
from daskw2v.types import Float32Array, Float64Array

WORDS_A_DIMENSION = 200  # more words do not improve the rotation
_AT_ONCE = 1 << 14  # rows that are rotated, or multiplied, in float64 at once


@dataclass(frozen=True, eq=False)
class Alignment:
    """The rotation of a model, and its effect.

    Parameters
    ----------
    rotation
        Orthogonal matrix, shape (D, D) float64: `rows @ rotation` are rows in the other model's space.
    shared, words
        Number of words that both models know, and of words that the rotation was fitted on.
    before, after
        Mean cosine between both models' vectors of these words, before and after the rotation.
    """

    rotation: Float64Array
    shared: int
    words: int
    before: float
    after: float

    @property
    def residual(self) -> float:
        """Root mean squared distance between both models' unit vectors of the fitted words, after the rotation."""
        return math.sqrt(max(0.0, 2 - 2 * self.after))

    def as_dict(self) -> dict[str, Any]:
        """Return the figures of the alignment, without the rotation, as JSON types."""
        return {name: getattr(self, name) for name in ("shared", "words", "before", "after", "residual")}


def find_alignment(new: Vectors, other: Vectors, most_words: int | None = None) -> Alignment:
    """Return the rotation that brings the vectors of a model closest to the vectors of another model.

    The rotation is fitted on unit vectors, each word with the same weight.

    Parameters
    ----------
    new, other
        The models, in memory or in a store. They are read in blocks.
    most_words
        Number of words to fit on, the most frequent shared ones of the new model. The default is 200 for each
        dimension.

    Raises
    ------
    ParameterError
        If the models differ in dimensions, or `most_words` is below their number of dimensions.
    VocabularyError
        If they share fewer words than they have dimensions: the rotation would be arbitrary.

    Examples
    --------
    >>> from daskw2v import Vectors
    >>> from daskw2v.models.alignment import find_alignment
    >>> old = Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]])
    >>> new = Vectors(["king", "queen", "apple"], [[-1, 3], [-2, 2], [-1, -1]])
    >>> alignment = find_alignment(new, old)
    >>> alignment.shared, round(alignment.before, 3), round(alignment.after, 3)
    (3, 0.0, 1.0)
    """
    size = new.vector_size
    if other.vector_size != size:
        problem = f"Vectors of {size} dimensions cannot be aligned with {other.vector_size}."
        raise ParameterError(problem, "Train with the other model's vector_size; or publish without alignment.")
    most_words = WORDS_A_DIMENSION * size if most_words is None else most_words
    if most_words < size:
        problem = f"most_words={most_words!r} is below the {size} dimensions."
        raise ParameterError(problem, f"Give at least {size} words.")
    ids_in_other = other.vocabulary.find_all(new.vocabulary)
    shared = np.flatnonzero(ids_in_other >= 0)
    if len(shared) < size:
        raise VocabularyError(
            f"The models share {len(shared)} words, fewer than their {size} dimensions: no rotation is determined.",
            "Check the text: it lacks the words of the other model. Or publish without alignment.",
        )
    fitted, products = shared[:most_words], np.zeros((size, size))
    n = len(fitted)
    for rows in cut(n, _AT_ONCE):
        ids = fitted[rows]
        products += new.units(ids).astype(np.float64).T @ other.units(ids_in_other[ids]).astype(np.float64)
    left, weights, right = np.linalg.svd(products)
    return Alignment(left @ right, len(shared), n, float(np.trace(products)) / n, float(weights.sum()) / n)


def align_vectors(vectors: Vectors, other: Vectors, most_words: int | None = None) -> Vectors:
    """Return a model rotated into the space of another model; arguments and errors are as in `Vectors.align`."""
    rotation = find_alignment(vectors, other, most_words).rotation
    rows = np.empty((len(vectors), vectors.vector_size), np.float32)
    for ids in vectors.slices():
        rows[ids] = rotate_rows(vectors.rows(ids), rotation)
    network, features = vectors.subwords, vectors.features
    if network is not None:
        network = rotate_network(network, rotation)
    if features is not None:
        features = FeatureVectors(features.keys, rotate_rows(np.asarray(features.rows[:]), rotation))
    return vectors._with_rows(rows, vectors.metadata, network, features)


def rotate_rows(rows: Float32Array, rotation: Float64Array) -> Float32Array:
    """Return rows @ rotation, computed in float64 and rounded to float32, shape (n, D)."""
    result = np.empty_like(rows)
    for part in cut(len(rows), _AT_ONCE):
        result[part] = rows[part] @ rotation
    return result


def rotate_network(network: Subwords, rotation: Float64Array) -> Subwords:
    """Return a subword network with rotated vectors; only its last layer differs."""
    last = {name: (network.weights[name] @ rotation).astype(np.float32) for name in ("output", "bias")}
    return Subwords(network.alphabet, {**network.weights, **last})
