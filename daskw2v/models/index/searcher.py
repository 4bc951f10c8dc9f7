"""The interface of all kinds of index: they find candidates for the nearest words."""

from typing import NamedTuple, Protocol

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
        An upper bound of the cosines of all other words, shape (n,) float32; -inf if the index gives no bound, so that
        the candidates are taken for the nearest, and inf if there are too few candidates.
    """

    ids: Int64Array
    others: Float32Array


def presumed(ids: Int64Array) -> Candidates:
    """Return candidates that are taken to be the nearest words, unless a query has too few of them."""
    return Candidates(ids, np.where((ids < 0).any(axis=1), np.inf, -np.inf).astype(np.float32))


class Searcher(Protocol):
    """An index that finds candidates for the nearest words; `IndexKind.searcher` makes one of a shape and an effort."""

    def read(self, content: UInt8Array, place: str) -> None:
        """Use a file whose checksum was checked, without copying it.

        Raises
        ------
        StoreError
            If it is not a file of this kind, shape and release.
        """

    def add(self, start: int, units: Float32Array, threads: int) -> None:
        """Add the unit vectors of the words start, start + 1, ..."""

    def content(self) -> UInt8Array:
        """Return the content of the index's file."""

    def candidates(self, units: Float32Array, topn: int) -> Candidates:
        """Return candidates for the `topn` words nearest to unit vectors; all words if there are no more."""
