"""A wrapper of usearch's index."""

import threading

import numpy as np

from daskw2v.extras import needed
from daskw2v.store.limits import refused
from daskw2v.types import Float32Array, Int64Array, UInt8Array

EFFORT = 128  # default candidates of a search
_DTYPE = np.dtype("<f2")  # of numbers in the index, which finds candidates; the model's float32 ranks them


class Searcher:
    """An index that finds candidates for the nearest words.

    Parameters
    ----------
    dimensions
        Dimensions of the vectors.
    effort
        Candidates that a search keeps. More candidates raise recall and take longer.
    """

    def __init__(self, dimensions: int, effort: int, **options: int) -> None:
        index = needed("usearch.index", "ann").Index
        self._index = index(
            ndim=dimensions, metric="ip", dtype="f16", expansion_search=effort, enable_key_lookups=False, **options
        )
        self._content: UInt8Array | None = None
        self._asking = threading.Lock()  # usearch is not safe for concurrent calls: each numbers its threads from 0

    def read(self, content: UInt8Array, place: str) -> None:
        """Use a file whose checksum was checked, without copying it.

        Raises
        ------
        StoreError
            If it was written by an incompatible usearch.
        """
        try:
            self._index.view(content)
        except (RuntimeError, ValueError) as error:
            raise refused(place, f"is not read by this usearch ({error})") from error
        self._content = content

    def add(self, start: int, units: Float32Array, threads: int) -> None:
        """Add the unit vectors of the words start, start + 1, ..."""
        self._index.add(np.arange(start, start + len(units), dtype=np.uint64), units.astype(_DTYPE), threads=threads)

    def content(self) -> UInt8Array:
        """Return the content of the index's file."""
        return np.frombuffer(self._index.save(), np.uint8)

    def candidates(self, units: Float32Array, topn: int) -> Int64Array:
        """Return the ids of `topn` words for each query, shape (n, topn), padded with -1."""
        with self._asking:
            found = self._index.search(units.astype(_DTYPE), topn)
        keys, counts = np.atleast_2d(found.keys), np.atleast_1d(getattr(found, "counts", len(found)))
        ids = keys.astype(np.int64)
        ids[np.arange(ids.shape[1]) >= counts[:, None]] = -1
        return ids
