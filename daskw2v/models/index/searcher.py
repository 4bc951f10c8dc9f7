"""The interface of all kinds of index, which find candidates for the nearest words, and the search of a whole table.

Threads score parts of a table, and the best words of all parts are kept.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from daskw2v.models.stored.blocks import Ranking, share
from daskw2v.types import Float32Array, Int64Array, UInt8Array

EFFORT = 128  # default candidates of a search
_PER_WORD = 4  # candidates for each word that is asked for
BLOCK_WORDS = 1 << 16  # most words that are scored before the best are picked
_SCORES = 1 << 22  # scores in memory at once: 16 MB


class Candidates(NamedTuple):
    """Words that may be the nearest to n queries.

    Parameters
    ----------
    ids
        Ids of m words for each query, shape (n, m), padded with -1.
    others
        An upper bound of the cosines of all other words, shape (n,) float32; -inf if the index has no bound, so that
        the candidates count as the nearest, and inf if there are too few candidates.
    """

    ids: Int64Array
    others: Float32Array


def presumed(ids: Int64Array) -> Candidates:
    """Return ids as candidates that count as the nearest words, unless a query has too few of them."""
    return Candidates(ids, np.where((ids < 0).any(axis=1), np.inf, -np.inf).astype(np.float32))


class Searcher(ABC):
    """An index that finds candidates for the nearest words. A pickle holds the content of its file.

    Parameters
    ----------
    shape
        Number of words, and of dimensions of their vectors.
    effort
        Candidates that a search keeps.
    """

    def __init__(self, shape: tuple[int, int], effort: int) -> None:
        self._shape, self._effort = shape, effort

    def __reduce__(self) -> Any:
        return _loaded, (type(self), self._shape, self._effort, self.content())

    def __dask_tokenize__(self) -> Any:
        """Return the name of the index among Dask's keys."""
        digest = hashlib.blake2b(self.content().data, digest_size=20).hexdigest()
        return type(self).__name__, self._shape, self._effort, digest

    @abstractmethod
    def read(self, content: UInt8Array, source: str) -> None:
        """Use a file whose checksum was checked, without copying it.

        Raises
        ------
        StoreError
            If it is not a file of this kind, shape and release.
        """

    @abstractmethod
    def add(self, start: int, units: Float32Array, threads: int) -> None:
        """Add the unit vectors of the words start, start + 1, ..."""

    @abstractmethod
    def content(self) -> UInt8Array:
        """Return the content of the index's file."""

    @abstractmethod
    def candidates(self, units: Float32Array, topn: int) -> Candidates:
        """Return candidates for the `topn` words nearest to unit vectors; all words if there are no more."""


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

    ids, values = (np.concatenate(parts, axis=1) for parts in zip(*share(search, words), strict=True))
    best = np.argsort(-values, axis=1, kind="stable")[:, :n]
    return np.take_along_axis(ids, best, axis=1), np.take_along_axis(values, best, axis=1)


def _loaded(kind: type[Searcher], shape: tuple[int, int], effort: int, content: UInt8Array) -> Searcher:
    index = kind(shape, effort)
    index.read(content, "The index in a pickle")
    return index
