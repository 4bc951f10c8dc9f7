"""The best scores of words that come in blocks."""

import numpy as np

from daskw2v.types import Float32Array, Int64Array


class Ranking:
    """The words with the highest scores so far, for each of n queries; any of those whose score is the last one's.

    Parameters
    ----------
    n_queries, topn
        Number of queries, and of words to keep for each.
    """

    def __init__(self, n_queries: int, topn: int) -> None:
        self._topn = topn
        self._ids = np.empty((n_queries, 0), np.int64)
        self._scores = np.empty((n_queries, 0), np.float32)

    def add(self, scores: Float32Array, ids: Int64Array) -> None:
        """Add the scores of words, shape (n_queries, len(ids))."""
        found, values = self._candidates(scores)
        if not found.shape[1]:
            return
        ids = np.concatenate([self._ids, ids[found]], axis=1)
        best = np.concatenate([self._scores, values], axis=1)
        keep = _largest(best, self._topn)
        self._ids, self._scores = np.take_along_axis(ids, keep, axis=1), np.take_along_axis(best, keep, axis=1)

    def _candidates(self, scores: Float32Array) -> tuple[Int64Array, Float32Array]:
        """Return columns and values of scores that may be among the best; shorter rows are padded with -inf."""
        if self._scores.shape[1] == self._topn and np.isfinite(worst := self._scores.min(axis=1)).all():
            # Later, few words of a block are better than the worst: finding them takes a tenth of a partial sort
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

    def best(self) -> tuple[Int64Array, Float32Array]:
        """Return ids and scores, best first, both of shape (n_queries, topn), or narrower if there are fewer words."""
        order = np.lexsort((self._ids, -self._scores), axis=1)  # of equal scores, the more frequent word first
        return np.take_along_axis(self._ids, order, axis=1), np.take_along_axis(self._scores, order, axis=1)


def _largest(scores: Float32Array, n: int) -> Int64Array:
    """Return the columns of the n largest scores of each row, in any order; all if there are no more."""
    columns = scores.shape[1]
    if n >= columns:
        return np.broadcast_to(np.arange(columns), scores.shape)
    return np.argpartition(scores, columns - n, axis=1)[:, columns - n :]
