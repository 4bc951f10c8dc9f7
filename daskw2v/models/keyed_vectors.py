"""gensim's KeyedVectors, in memory: their files are pickles, which run code, and are not read."""

from typing import Any

import numpy as np

from daskw2v.errors import ParameterError
from daskw2v.extras import needed
from daskw2v.models.vectors import Vectors
from daskw2v.vocabulary.vocabulary import Vocabulary


def to_gensim(vectors: Vectors) -> Any:
    """Return gensim's KeyedVectors of words, their counts and a copy of their vectors.

    Raises
    ------
    MissingExtraError
        If gensim is not installed.
    """
    keyed = needed("gensim.models", "gensim").KeyedVectors(vectors.vector_size)
    for ids in vectors.slices():
        words, counts = vectors.vocabulary.between(ids.start, ids.stop), vectors.vocabulary.counts[ids]
        keyed.add_vectors(words, vectors.rows(ids))
        for word, count in zip(words, counts.tolist(), strict=True):
            keyed.set_vecattr(word, "count", count)
    return keyed


def from_gensim(keyed: Any) -> Vectors:
    """Return the words, counts and vectors of gensim's KeyedVectors; the vectors are not copied.

    Parameters
    ----------
    keyed
        Such as `KeyedVectors.load(path)` has unpickled, or `model.wv`.

    Raises
    ------
    ParameterError
        If it is something else, or keys are no text.
    """
    try:
        words, matrix, counts = keyed.index_to_key, keyed.vectors, keyed.expandos.get("count")
    except AttributeError:
        raise ParameterError(
            f"A {type(keyed).__name__} is no KeyedVectors.", "Give gensim's KeyedVectors, such as model.wv."
        ) from None
    other = next((key for key in words if not isinstance(key, str)), None)
    if other is not None:
        raise ParameterError(f"The key {other!r} is no word.", "Give KeyedVectors whose keys are text.")
    return Vectors(
        Vocabulary.from_words(words, [0] * len(words) if counts is None else counts.tolist()),
        np.asarray(matrix[: len(words)], np.float32),
    )
