"""A graph of near words, which is searched from neighbour to neighbour: a wrapper of usearch's index."""

import threading
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from daskw2v.extras import needed
from daskw2v.models.index.searcher import Candidates, Searcher, presumed
from daskw2v.store.limits import refused
from daskw2v.types import Float32Array, UInt8Array

CONNECTIVITY, EXPANSION = 16, 128  # by default
_DTYPE = np.dtype("<f2")  # of numbers in the index, which finds candidates; the model's float32 ranks them


class GraphIndex(Searcher):
    """An index that finds candidates for the nearest words.

    Parameters
    ----------
    shape
        Number of words, and of dimensions of their vectors.
    effort
        Candidates that a search keeps. More candidates raise recall and take longer.
    connectivity, expansion
        As for `build_index`; an index that is read has its own.
    """

    OPTIONS: ClassVar[Mapping[str, int]] = {"connectivity": CONNECTIVITY, "expansion": EXPANSION}

    def __init__(
        self, shape: tuple[int, int], effort: int, connectivity: int = CONNECTIVITY, expansion: int = EXPANSION
    ) -> None:
        super().__init__(shape, effort)
        self._index = needed("usearch.index", "ann").Index(
            ndim=shape[1],
            metric="ip",
            dtype="f16",
            connectivity=connectivity,
            expansion_add=expansion,
            expansion_search=effort,
            enable_key_lookups=False,
        )
        self._content: UInt8Array | None = None
        self._asking = threading.Lock()  # usearch is not safe for concurrent calls: each numbers its threads from 0

    def read(self, content: UInt8Array, source: str) -> None:
        """Use a file whose checksum was checked, without copying it.

        Raises
        ------
        StoreError
            If it was written by an incompatible usearch.
        """
        try:
            self._index.view(content)
        except (RuntimeError, ValueError) as error:
            raise refused(source, f"is not read by this usearch ({error})") from error
        self._content = content

    def add(self, start: int, units: Float32Array, threads: int) -> None:
        """Add the unit vectors of the words start, start + 1, ..."""
        self._index.add(np.arange(start, start + len(units), dtype=np.uint64), units.astype(_DTYPE), threads=threads)

    def content(self) -> UInt8Array:
        """Return the content of the index's file."""
        return np.frombuffer(self._index.save(), np.uint8) if self._content is None else self._content

    def candidates(self, units: Float32Array, topn: int) -> Candidates:
        """Return the `topn` words that are found for each query, which are taken to be the nearest."""
        with self._asking:
            matches = self._index.search(units.astype(_DTYPE), topn)
        keys, counts = np.atleast_2d(matches.keys), np.atleast_1d(getattr(matches, "counts", len(matches)))
        ids = keys.astype(np.int64)
        ids[np.arange(ids.shape[1]) >= counts[:, None]] = -1
        return presumed(ids)
