"""Blocks of vectors: ranges for threads, lengths, cosines with queries, and the words with the highest."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np

from daskw2v.kernels.cores import usable_cores
from daskw2v.types import Float32Array, Int64Array

_ROWS = 1024  # widened at once: some MB, which stay in the cache
THREAD_ROWS = 1 << 12  # fewest rows that are worth a thread
T = TypeVar("T")


def cut(length: int, step: int) -> Iterator[slice]:
    """Yield slices of `step` that cover 0..length - 1; the last may be shorter."""
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))


def map_ranges(work: Callable[[slice], T], n: int, threads: int = 0) -> list[T]:
    """Return the results of `work` for slices that cover 0..n - 1, in order; each runs in a thread of its own.

    There are at most `threads` threads, 0 for one per core, and fewer for a small n.
    """
    threads = max(1, min(threads or usable_cores(), n // THREAD_ROWS))
    with ThreadPoolExecutor(threads) as pool:
        return [*pool.map(work, cut(n, max(1, -(-n // threads))))]


def row_lengths(vectors: Float32Array) -> Float32Array:
    """Return the length of each of n vectors, shape (n,) float32; 1 for a zero vector."""
    norms, wide = np.empty(len(vectors), np.float32), np.empty((min(_ROWS, len(vectors)), vectors.shape[1]))
    for start in range(0, len(vectors), _ROWS):
        rows = wide[: len(vectors) - start]
        rows[:] = vectors[start : start + _ROWS]
        norms[start : start + _ROWS] = np.sqrt(np.vecdot(rows, rows))
    norms[norms == 0] = 1
    return norms


def normalize_rows(vectors: Float32Array) -> Float32Array:
    """Return vectors of words scaled to length 1, shape (n, D) float32; a zero vector stays zero."""
    units: Float32Array = vectors / row_lengths(vectors)[:, None]
    return units


def normalize_queries(vectors: Float32Array) -> Float32Array:
    """Return vectors scaled to length 1, shape (n, D) float32, also vectors whose length exceeds float32."""
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
        """Return the column of each word in `cosines`, of the shape of `ids`; -1 for words of other blocks."""
        columns = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[columns] == ids, columns, -1)


def compare_blocks(
    blocks: Iterable[VectorBlock], groups: Sequence[Float32Array], *, by_threads: bool
) -> Iterator[tuple[VectorBlock, list[Float32Array]]]:
    """Yield each block, and a list of its words' cosines with each group of m unit vectors, shape (m, n).

    With `by_threads` the blocks, which are all in memory, are distributed to threads, since one core does not use all
    of the memory's bandwidth. For many vectors, BLAS uses threads itself.
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
    """The words with the highest scores, for each of n queries; among words that share the lowest score, any.

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
        """Add words by id, shape (n,), and their scores, shape (n_queries, n)."""
        columns, values = self._candidates(scores)
        if not columns.shape[1]:
            return
        ids = np.concatenate([self._ids, ids[columns]], axis=1)
        best = np.concatenate([self._scores, values], axis=1)
        selected = _largest_columns(best, self._topn)
        self._ids, self._scores = np.take_along_axis(ids, selected, axis=1), np.take_along_axis(best, selected, axis=1)

    def _candidates(self, scores: Float32Array) -> tuple[Int64Array, Float32Array]:
        """Return columns and values of scores that may be among the best, padded with -inf, both (n_queries, m)."""
        if self._scores.shape[1] == self._topn and np.isfinite(lowest := self._scores.min(axis=1)).all():
            # In later blocks, few words exceed the lowest score: to select them takes a tenth of the time of a partial
            # sort
            rows, columns = np.nonzero(scores > lowest[:, None])
            first = np.searchsorted(rows, np.arange(len(scores) + 1))
            width = int(np.diff(first).max(initial=0))
            if 8 * width <= scores.shape[1]:
                slots, shape = np.arange(len(rows)) - first[rows], (len(scores), width)
                best, values = np.zeros(shape, np.int64), np.full(shape, -np.inf, np.float32)
                best[rows, slots], values[rows, slots] = columns, scores[rows, columns]
                return best, values
        best = _largest_columns(scores, self._topn)
        return best, np.take_along_axis(scores, best, axis=1)

    def best(self) -> tuple[Int64Array, Float32Array]:
        """Return ids and scores, best first, both of shape (n_queries, topn), or narrower with fewer words."""
        order = np.lexsort((self._ids, -self._scores), axis=1)  # of equal scores, the more frequent word first
        return np.take_along_axis(self._ids, order, axis=1), np.take_along_axis(self._scores, order, axis=1)


def _largest_columns(scores: Float32Array, n: int) -> Int64Array:
    """Return the columns of the n largest scores of each row, in any order, shape (rows, n) or narrower."""
    columns = scores.shape[1]
    if n >= columns:
        return np.broadcast_to(np.arange(columns), scores.shape)
    return np.argpartition(scores, columns - n, axis=1)[:, columns - n :]
