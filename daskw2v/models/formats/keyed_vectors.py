"""Conversion from and to gensim's KeyedVectors in memory. Their files, pickles that can run code, are not read."""

from typing import Any

import numpy as np

from daskw2v.errors import ParameterError
from daskw2v.extras import needed
from daskw2v.features.keys import HashedNGrams
from daskw2v.models.queries.features import FeatureVectors
from daskw2v.models.queries.outputs import warn_of_omitted_parts
from daskw2v.models.queries.vectors import Vectors
from daskw2v.vocabulary.vocabulary import Vocabulary


def to_gensim(vectors: Vectors) -> Any:
    """Return gensim's KeyedVectors with the words, counts and a copy of the vectors; a warning names omitted parts.

    Raises
    ------
    MissingExtraError
        If gensim is not installed.

    Examples
    --------
    >>> import daskw2v
    >>> vectors = daskw2v.Vectors(["king", "queen"], [[3, 1], [2, 2]])
    >>> daskw2v.to_gensim(vectors).index_to_key
    ['king', 'queen']
    """
    keyed = needed("gensim.models", "gensim").KeyedVectors(vectors.vector_size)
    warn_of_omitted_parts(vectors, "KeyedVectors")
    for ids in vectors.slices():
        words, counts = vectors.vocabulary.between(ids.start, ids.stop), vectors.vocabulary.counts[ids]
        keyed.add_vectors(words, vectors.rows(ids))
        for word, count in zip(words, counts.tolist(), strict=True):
            keyed.set_vecattr(word, "count", count)
    return keyed


def from_gensim(keyed: Any) -> Vectors:
    """Return the words, counts and vectors of gensim's KeyedVectors; the vectors are not copied.

    FastTextKeyedVectors also have rows of n-grams, which are kept, so that unseen words have the same vectors.

    Parameters
    ----------
    keyed
        KeyedVectors, such as `KeyedVectors.load(path)` or `model.wv`.

    Raises
    ------
    ParameterError
        If `keyed` has another type, or a key is not a text.

    Examples
    --------
    >>> import daskw2v
    >>> from gensim.models import KeyedVectors
    >>> keyed = KeyedVectors(2)
    >>> keyed.add_vectors(["king", "queen"], [[3, 1], [2, 2]])
    >>> daskw2v.from_gensim(keyed)["queen"].tolist()
    [2.0, 2.0]
    """
    try:
        words, matrix, counts = keyed.index_to_key, keyed.vectors, keyed.expandos.get("count")
    except AttributeError:
        problem = f"A {type(keyed).__name__} is not a KeyedVectors."
        raise ParameterError(problem, "Give gensim's KeyedVectors, such as model.wv.") from None
    non_text = next((key for key in words if not isinstance(key, str)), None)
    if non_text is not None:
        raise ParameterError(f"The key {non_text!r} is not a word.", "Give KeyedVectors whose keys are texts.")
    vocabulary = Vocabulary.from_words(words, [0] * len(words) if counts is None else counts.tolist())
    return Vectors(vocabulary, np.asarray(matrix[: len(words)], np.float32), features=_convert_ngrams(keyed))


def _convert_ngrams(keyed: Any) -> FeatureVectors | None:
    """Return the n-grams of gensim's FastTextKeyedVectors; None for other vectors, and if words have no n-grams."""
    rows = getattr(keyed, "vectors_ngrams", None)
    if rows is None or not len(rows) or keyed.max_n < max(1, keyed.min_n):
        return None
    ngrams = HashedNGrams(max(1, keyed.min_n), keyed.max_n, len(rows))
    return FeatureVectors.from_buckets(ngrams, np.asarray(rows, np.float32))
