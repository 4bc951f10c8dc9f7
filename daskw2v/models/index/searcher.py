"""The interface of all kinds of index, which find candidates for the nearest words."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from daskw2v.types import Float32Array, Int64Array, UInt8Array

EFFORT = 128  # default candidates of a search


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

    OPTIONS: ClassVar[Mapping[str, int]] = {}  # options of building one, and their defaults

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


def _loaded(kind: type[Searcher], shape: tuple[int, int], effort: int, content: UInt8Array) -> Searcher:
    index = kind(shape, effort)
    index.read(content, "The index in a pickle")
    return index
