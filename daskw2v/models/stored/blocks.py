"""Blocks of vectors: ranges that threads share, lengths, cosines with other vectors, and the best of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np

from daskw2v.kernels.cores import usable_cores
from daskw2v.types import Float32Array, Int64Array

_ROWS = 1024  # widened at once: some MB, which stay in the cache
THREAD_ROWS = 1 << 12  # least rows that are worth a thread
T = TypeVar("T")


def cut(length: int, step: int) -> Iterator[slice]:
    """Cut 0..length - 1 into slices of `step`."""
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))


def share(work: Callable[[slice], T], n: int, threads: int = 0) -> list[T]:
    """Divide the range 0..n - 1 among threads, one for each core by default; return the results in order."""
    threads = max(1, min(threads or usable_cores(), n // THREAD_ROWS))
    with ThreadPoolExecutor(threads) as pool:
        return [*pool.map(work, cut(n, max(1, -(-n // threads))))]


def lengths(vectors: Float32Array) -> Float32Array:
    """Return the length of each of n vectors, shape (n,) float32; 1 for a zero vector."""
    norms, wide = np.empty(len(vectors), np.float32), np.empty((min(_ROWS, len(vectors)), vectors.shape[1]))
    for start in range(0, len(vectors), _ROWS):
        rows = wide[: len(vectors) - start]
        rows[:] = vectors[start : start + _ROWS]
        norms[start : start + _ROWS] = np.sqrt(np.vecdot(rows, rows))
    norms[norms == 0] = 1
    return norms


def scaled(vectors: Float32Array) -> Float32Array:
    """Return vectors of words scaled to length 1, shape (n, D) float32; a zero vector stays."""
    units: Float32Array = vectors / lengths(vectors)[:, None]
    return units


def unit(vectors: Float32Array) -> Float32Array:
    """Return any vectors scaled to length 1, shape (n, D) float32, also vectors whose length exceeds float32."""
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return (vectors / np.where(norms > 0, norms, 1)).astype(np.float32)


class VectorBlock(NamedTuple):
    """Ids of words, ascending, shape (n,), their vectors, shape (n, D), and their lengths, shape (n,)."""

    ids: Int64Array
    vectors: Float32Array
    norms: Float32Array

    def cosines(self, units: Float32Array) -> Float32Array:
        """Return the cosines of m unit vectors, shape (m, D), with the words, shape (m, n)."""
        # vecdot compares one vector at the speed of memory without threads, and gives the same bits in any block
        scores: Float32Array = np.vecdot(self.vectors, units)[None] if len(units) == 1 else units @ self.vectors.T
        scores /= self.norms
        return scores

    def columns(self, ids: Int64Array) -> Int64Array:
        """Return the columns of words in the cosines, shape of `ids`; -1 for words of other blocks."""
        columns = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[columns] == ids, columns, -1)


def compared(
    blocks: Iterable[VectorBlock], groups: Sequence[Float32Array], *, by_threads: bool
) -> Iterator[tuple[VectorBlock, list[Float32Array]]]:
    """Yield each block, and its words' cosines with each group of unit vectors.

    With `by_threads` each core takes blocks of its own, which are all in memory, since one core does not use all of the
    memory's bandwidth. For many vectors, BLAS has threads of its own.
    """

    def cosines(block: VectorBlock) -> list[Float32Array]:
        return [block.cosines(units) for units in groups]

    if not by_threads:
        yield from ((block, cosines(block)) for block in blocks)
        return
    listed = list(blocks)
    with ThreadPoolExecutor(max(1, min(usable_cores(), len(listed)))) as pool:
        yield from zip(listed, pool.map(cosines, listed), strict=True)


class Ranking:
    """The words with the highest scores so far, for each of n queries; of words with the lowest score kept, any.

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
        columns, values = self._candidates(scores)
        if not columns.shape[1]:
            return
        ids = np.concatenate([self._ids, ids[columns]], axis=1)
        best = np.concatenate([self._scores, values], axis=1)
        keep = _largest(best, self._topn)
        self._ids, self._scores = np.take_along_axis(ids, keep, axis=1), np.take_along_axis(best, keep, axis=1)

    def _candidates(self, scores: Float32Array) -> tuple[Int64Array, Float32Array]:
        """Return columns and values of scores that may be among the best; shorter rows are padded with -inf."""
        if self._scores.shape[1] == self._topn and np.isfinite(worst := self._scores.min(axis=1)).all():
            # Later, few words of a block are better than the worst that is kept: finding them takes a tenth of the time
            # of a partial sort
            rows, columns = np.nonzero(scores > worst[:, None])
            first = np.searchsorted(rows, np.arange(len(scores) + 1))
            width = int(np.diff(first).max(initial=0))
            if 8 * width <= scores.shape[1]:
                slots, shape = np.arange(len(rows)) - first[rows], (len(scores), width)
                best, values = np.zeros(shape, np.int64), np.full(shape, -np.inf, np.float32)
                best[rows, slots], values[rows, slots] = columns, scores[rows, columns]
                return best, values
        best = _largest(scores, self._topn)
        return best, np.take_along_axis(scores, best, axis=1)

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
