"""Example words of a report, and their neighbours."""

from collections.abc import Callable, Sequence

import numpy as np

from daskw2v.models.queries.vectors import Vectors

Neighbours = tuple[tuple[str, float], ...]  # words and their cosines, best first

_POOL = 2000  # most frequent words that examples are chosen from


def chosen_words(vectors: Vectors, n: int, usable: Callable[[str], bool] = str.isalpha) -> list[str]:
    """Choose example words: frequent words with a specific meaning, in any language.

    The usable ones among the 2,000 most frequent words are divided into n parts by frequency. The word with the longest
    vector of each part is chosen: among words of similar frequency, long vectors belong to words that occur in few
    contexts (Schakel and Wilson, 2015, "Measuring word significance using distributed representations of words").

    Parameters
    ----------
    vectors
        The model.
    n
        Number of words to choose; fewer if fewer are usable.
    usable
        Whether a word may be chosen; by default, if it consists of letters.
    """
    frequent = vectors.vocabulary.between(0, min(len(vectors), _POOL))
    lengths = np.linalg.norm(vectors.rows(slice(len(frequent))), axis=1)
    ids = np.array([i for i, word in enumerate(frequent) if usable(word)], np.int64)
    parts = [part for part in np.array_split(ids, n) if len(part)]
    return [frequent[part[np.argmax(lengths[part])]] for part in parts]


def named_nearest(vectors: Vectors, words: Sequence[str], topn: int) -> list[Neighbours]:
    """Return the nearest words of each word by name, best first, in one pass over the model.

    Raises
    ------
    UnknownWordError
        If a word is not known.
    """
    ids, cosines = vectors.nearest(list(words), topn)
    return [
        tuple((vectors.vocabulary.word(i), cosine) for i, cosine in zip(row, scores, strict=True))
        for row, scores in zip(ids.tolist(), cosines.tolist(), strict=True)
    ]
