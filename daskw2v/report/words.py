"""Words that a report speaks of: which are chosen, and what lies near them."""

from collections.abc import Callable, Sequence

import numpy as np

from daskw2v.models.vectors import Vectors

Neighbours = tuple[tuple[str, float], ...]  # words and their cosines, best first

_POOL = 2000  # most frequent words that examples are chosen from


def chosen_words(vectors: Vectors, n: int, usable: Callable[[str], bool] = str.isalpha) -> list[str]:
    """Choose examples: frequent words that carry meaning, in any language.

    The usable ones of the 2,000 most frequent words, by default those of letters only, are cut into n parts by
    frequency; of each part the word with the longest vector is taken. Among words about as frequent, a long vector
    tells of a word that keeps to few contexts (Schakel and Wilson, 2015, "Measuring word significance using
    distributed representations of words").

    Parameters
    ----------
    vectors
        The model.
    n
        Words to choose; fewer where fewer are usable.
    usable
        Which words may be chosen.
    """
    frequent = vectors.vocabulary.between(0, min(len(vectors), _POOL))
    lengths = np.linalg.norm(vectors.rows(slice(len(frequent))), axis=1)
    ids = np.array([i for i, word in enumerate(frequent) if usable(word)], np.int64)
    parts = [part for part in np.array_split(ids, n) if len(part)]
    return [frequent[part[np.argmax(lengths[part])]] for part in parts]


def neighbours_of(vectors: Vectors, words: Sequence[str], topn: int) -> list[Neighbours]:
    """Find the words nearest to each of several, itself left out, in one pass over the model.

    Raises
    ------
    UnknownWordError
        If a word is not known.
    """
    if not words:
        return []
    own = [vectors.vocabulary.id(word) for word in words]
    ids, cosines = vectors.nearest(vectors.units(own), topn + 1)
    found = [
        [(i, cosine) for i, cosine in zip(row, scores, strict=True) if i != itself][:topn]
        for itself, row, scores in zip(own, ids.tolist(), cosines.tolist(), strict=True)
    ]
    return [tuple((vectors.vocabulary.word(i), cosine) for i, cosine in row) for row in found]
