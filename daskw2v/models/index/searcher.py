"""usearch's index: what is asked of it, and no more."""

import threading

import numpy as np

from daskw2v.extras import needed
from daskw2v.limits import refused
from daskw2v.models.index.graph import DTYPE, Bytes
from daskw2v.models.ranking import Ids
from daskw2v.models.rows import Floats

EFFORT = 128  # candidates that a search keeps by default


class Searcher:
    """An index that is asked: candidates for the nearest words.

    Parameters
    ----------
    dimensions
        Of the vectors.
    effort
        Candidates that a search keeps: more find more, and take longer.
    """

    def __init__(self, dimensions: int, effort: int, **options: int) -> None:
        index = needed("usearch.index", "ann").Index
        self._index = index(
            ndim=dimensions, metric="ip", dtype="f16", expansion_search=effort, enable_key_lookups=False, **options
        )
        self._content: Bytes | None = None
        self._asking = threading.Lock()  # usearch numbers the threads of a call, not those of all calls

    def read(self, content: Bytes, place: str) -> None:
        """Take a file that was checked; its bytes are used where they are.

        Raises
        ------
        StoreError
            If another usearch wrote it, which this one does not understand.
        """
        try:
            self._index.view(content)
        except (RuntimeError, ValueError) as error:
            raise refused(place, f"is not read by this usearch ({error})") from error
        self._content = content

    def add(self, start: int, units: Floats, threads: int) -> None:
        """Add the unit vectors of the words start, start + 1, ..."""
        self._index.add(np.arange(start, start + len(units), dtype=np.uint64), units.astype(DTYPE), threads=threads)

    def content(self) -> Bytes:
        """Return the file."""
        return np.frombuffer(self._index.save(), np.uint8)

    def candidates(self, units: Floats, topn: int) -> Ids:
        """Return the ids of topn words for each query, shape (n, topn); -1 where fewer are found."""
        with self._asking:
            found = self._index.search(units.astype(DTYPE), topn)
        keys, counts = np.atleast_2d(found.keys), np.atleast_1d(getattr(found, "counts", len(found)))
        ids = keys.astype(np.int64)
        ids[np.arange(ids.shape[1]) >= counts[:, None]] = -1
        return ids
