"""The best of scores that come a block of words at a time."""

import numpy as np
import numpy.typing as npt

from daskw2v.models.rows import Floats

Ids = npt.NDArray[np.int64]


class Ranking:
    """The words of the highest scores so far, for each of n queries.

    Parameters
    ----------
    n_queries, topn
        How many queries, and words to keep for each.
    """

    def __init__(self, n_queries: int, topn: int) -> None:
        self._topn = topn
        self._ids = np.empty((n_queries, 0), np.int64)
        self._scores = np.empty((n_queries, 0), np.float32)

    def add(self, scores: Floats, start: int) -> None:
        """Take into account the scores of words start, start + 1, ..., shape (n_queries, words)."""
        found, values = self._candidates(scores)
        ids = np.concatenate([self._ids, found + start], axis=1)
        best = np.concatenate([self._scores, values], axis=1)
        keep = _largest(best, self._topn)
        self._ids, self._scores = np.take_along_axis(ids, keep, axis=1), np.take_along_axis(best, keep, axis=1)

    def _candidates(self, scores: Floats) -> tuple[Ids, Floats]:
        """Return where scores stand that may be among the best, and these; -inf fills up shorter rows."""
        if self._scores.shape[1] == self._topn and np.isfinite(worst := self._scores.min(axis=1)).all():
            # Once there are some, few words of a block are better: to find these is a tenth of putting all in order
            rows, columns = np.nonzero(scores > worst[:, None])
            first = np.searchsorted(rows, np.arange(len(scores) + 1))
            width = int(np.diff(first).max(initial=0))
            if 8 * width <= scores.shape[1]:
                places, shape = np.arange(len(rows)) - first[rows], (len(scores), width)
                found, values = np.zeros(shape, np.int64), np.full(shape, -np.inf, np.float32)
                found[rows, places], values[rows, places] = columns, scores[rows, columns]
                return found, values
        found = _largest(scores, self._topn)
        return found, np.take_along_axis(scores, found, axis=1)

    def best(self) -> tuple[Ids, Floats]:
        """Return ids and scores, best first, both of shape (n_queries, topn), or narrower where words are fewer."""
        order = np.lexsort((self._ids, -self._scores), axis=1)  # equal scores: the more frequent word first
        return np.take_along_axis(self._ids, order, axis=1), np.take_along_axis(self._scores, order, axis=1)


def _largest(scores: Floats, n: int) -> Ids:
    """Return where the n largest scores of each row stand, in any order; all if there are no more."""
    columns = scores.shape[1]
    if n >= columns:
        return np.broadcast_to(np.arange(columns), scores.shape)
    return np.argpartition(scores, columns - n, axis=1)[:, columns - n :]
