"""A table of product-quantized vectors (Jegou et al. 2011, "Product Quantization for Nearest Neighbor Search").

Vectors are cut into parts of some dimensions. Each part has 256 centroids, found by k-means, and a word has a byte for
each part: the number of the nearest one. A query's products with all centroids are looked up and added (section III-A).
The words with the largest sums are candidates, which the model's float32 ranks.
"""

from importlib import import_module

import numpy as np

from daskw2v.models.index.searcher import Candidates, Searcher, kept, presumed, scan
from daskw2v.models.stored.quantization import CENTROIDS, MOST_PART, books_of, codes_of, parts_of
from daskw2v.store.limits import refused
from daskw2v.types import Float32Array, UInt8Array

PART_SIZE = 4  # dimensions of a part by default
_HEAD, _NUMBER = np.dtype("<i4"), np.dtype("<f4")


class ProductIndex(Searcher):
    """An index that compares queries with all words by lookups.

    Parameters
    ----------
    shape
        Number of words, and of dimensions of their vectors.
    effort
        Candidates that a search keeps, at least. More candidates raise recall and take longer.
    part_size
        Dimensions that a byte stands for; an index that is read has its own.
    """

    def __init__(self, shape: tuple[int, int], effort: int, part_size: int = PART_SIZE) -> None:
        super().__init__(shape, effort)
        content = np.zeros(self._size(part_size), np.uint8)
        content[: _HEAD.itemsize].view(_HEAD)[0] = part_size
        self._hold(content)

    def _size(self, part_size: int) -> int:
        """Return the bytes of a file."""
        parts = -(-self._shape[1] // part_size)
        return _HEAD.itemsize + parts * (part_size * CENTROIDS * _NUMBER.itemsize + self._shape[0])

    def _hold(self, content: UInt8Array) -> None:
        """Use the content of a file: dimensions of a part, centroids of each part, codes of each word."""
        self._part = int(content[: _HEAD.itemsize].view(_HEAD)[0])
        self._parts = -(-self._shape[1] // self._part)
        self._content, codes = content, len(content) - self._parts * self._shape[0]
        self._books = content[_HEAD.itemsize : codes].view(_NUMBER).reshape(self._parts, self._part, CENTROIDS)
        self._codes = content[codes:].reshape(self._shape[0], self._parts)

    def read(self, content: UInt8Array, source: str) -> None:
        """Use a file whose checksum was checked, without copying it.

        Raises
        ------
        StoreError
            If it says what no index of this kind has, or has another size than it says.
        """
        if len(content) < _HEAD.itemsize:
            raise refused(source, f"has {len(content)} bytes, too few for an index")
        part_size = int(content[: _HEAD.itemsize].view(_HEAD)[0])
        if not 1 <= part_size <= MOST_PART:
            raise refused(source, f"has parts of {part_size} dimensions")
        if len(content) != (size := self._size(part_size)):
            raise refused(source, f"has {len(content)} bytes, an index of this shape {size}")
        self._hold(content)
        if not np.isfinite(self._books).all():
            raise refused(source, "has a centroid that is not finite")

    def add(self, start: int, units: Float32Array, threads: int) -> None:
        """Add the unit vectors of the words start, start + 1, ..., in order; the first ones make the centroids."""
        parts = parts_of(units, self._part)
        if start == 0:
            self._books[:] = books_of(parts)
        self._codes[start : start + len(units)] = codes_of(parts, self._own_books(), threads)

    def content(self) -> UInt8Array:
        """Return the content of the index's file."""
        return self._content

    def candidates(self, units: Float32Array, topn: int) -> Candidates:
        """Return candidates for the `topn` words nearest to unit vectors; all words if there are no more."""
        sums = import_module("daskw2v.kernels.search").sums  # Numba is loaded once it is needed
        tables = np.ascontiguousarray(np.einsum("pnd,pdk->npk", parts_of(units, self._part), self._own_books()))

        def score(first: int, stop: int, most: Float32Array) -> None:
            sums(self._codes, first, stop, tables, first, most)

        return presumed(scan(score, len(units), self._shape[0], kept(self._shape[0], self._effort, topn))[0])

    def _own_books(self) -> Float32Array:
        """Return the centroids in this machine's byte order, which Numba compiles for."""
        return np.asarray(self._books, np.float32)
