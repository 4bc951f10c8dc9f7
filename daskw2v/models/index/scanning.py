"""Search of a whole table: threads score parts of it, and the best words of all parts are kept."""

from collections.abc import Callable

import numpy as np

from daskw2v.models.queries.ranking import Ranking
from daskw2v.models.stored.threads import share
from daskw2v.types import Float32Array, Int64Array

_PER_WORD = 4  # candidates for each word that is asked for
BLOCK_WORDS = 1 << 16  # most words that are scored before the best are picked
_SCORES = 1 << 22  # scores in memory at once: 16 MB


def kept(words: int, effort: int, topn: int) -> int:
    """Return the number of candidates that a search for `topn` among `words` keeps."""
    return min(words, max(effort, _PER_WORD * topn))


def scan(
    score: Callable[[int, int, Float32Array], None], n_queries: int, words: int, n: int
) -> tuple[Int64Array, Float32Array]:
    """Return the n words with the largest scores for each query, and their scores, best first, both (n_queries, n).

    Parameters
    ----------
    score
        Function (first, stop, most) that writes the scores of the words first..stop-1, shape (n_queries, stop - first).
    n_queries, words
        Number of queries, and of words.
    """

    def search(part: slice) -> tuple[Int64Array, Float32Array]:
        ranking, step = Ranking(n_queries, n), max(1, min(BLOCK_WORDS, _SCORES // max(1, n_queries)))
        for start in range(part.start, part.stop, step):
            most = np.empty((n_queries, min(step, part.stop - start)), np.float32)
            score(start, start + most.shape[1], most)
            ranking.add(most, np.arange(start, start + most.shape[1]))
        return ranking.best()

    found, values = (np.concatenate(parts, axis=1) for parts in zip(*share(search, words), strict=True))
    best = np.argsort(-values, axis=1, kind="stable")[:, :n]
    return np.take_along_axis(found, best, axis=1), np.take_along_axis(values, best, axis=1)
