"""A table of signs: a bit for each dimension, a 32nd of the vectors' size.

A bit says on which side of the center a component lies. The share of bits that differ grows with the angle between two
vectors (Charikar 2002, section 3, for random planes; here the planes are the axes). So the words whose bits differ
least from the query's are candidates, which the model's float32 ranks. The center is near the mean, which is long in
trained vectors: from there, about half of all components lie on either side.
"""

from importlib import import_module

import numpy as np

from daskw2v.models.index.searcher import Candidates, Searcher, kept, presumed, scan
from daskw2v.store.limits import refused
from daskw2v.types import Float32Array, UInt8Array, UInt64Array

_NUMBER, _BITS = np.dtype("<f4"), np.dtype("<u8")


class BinaryIndex(Searcher):
    """An index that compares queries with all words by their signs.

    Parameters
    ----------
    shape
        Number of words, and of dimensions of their vectors.
    effort
        Candidates that a search keeps, at least. More candidates raise recall and take longer.
    """

    def __init__(self, shape: tuple[int, int], effort: int) -> None:
        super().__init__(shape, effort)
        self._bytes = _BITS.itemsize * -(-shape[1] // (8 * _BITS.itemsize))  # of a word
        self._hold(np.zeros(shape[0] * self._bytes + _NUMBER.itemsize * shape[1], np.uint8))

    def _hold(self, content: UInt8Array) -> None:
        """Use the content of a file: the bits of the words, then the center."""
        bits = self._shape[0] * self._bytes
        self._content, self._codes = content, content[:bits].reshape(self._shape[0], self._bytes)
        self._center = content[bits:].view(_NUMBER)

    def read(self, content: UInt8Array, source: str) -> None:
        """Use a file whose checksum was checked, without copying it.

        Raises
        ------
        StoreError
            If it has another size than a table of this shape.
        """
        if len(content) != len(self._content):
            raise refused(source, f"has {len(content)} bytes, a table of this shape {len(self._content)}")
        self._hold(content)

    def add(self, start: int, units: Float32Array, threads: int) -> None:
        """Add the unit vectors of the words start, start + 1, ..., in order."""
        if start == 0:
            self._center[:] = units.mean(axis=0)
        self._codes[start : start + len(units)] = self._signs(units)

    def content(self) -> UInt8Array:
        """Return the content of the index's file."""
        return self._content

    def candidates(self, units: Float32Array, topn: int) -> Candidates:
        """Return candidates for the `topn` words nearest to unit vectors; all words if there are no more."""
        agreements = import_module("daskw2v.kernels.search").agreements  # Numba is loaded once it is needed
        codes, queries = _words_of(self._codes), _words_of(self._signs(units))

        def score(first: int, stop: int, most: Float32Array) -> None:
            agreements(codes, first, stop, queries, first, most)

        return presumed(scan(score, len(units), self._shape[0], kept(self._shape[0], self._effort, topn))[0])

    def _signs(self, vectors: Float32Array) -> UInt8Array:
        """Return the bits of n vectors, shape (n, bytes of a word)."""
        signs = np.zeros((len(vectors), self._bytes), np.uint8)
        bits = np.packbits(vectors > self._center, axis=1, bitorder="little")
        signs[:, : bits.shape[1]] = bits
        return signs


def _words_of(signs: UInt8Array) -> UInt64Array:
    """Return bits as the numbers of this machine's byte order, which Numba compiles for; read alone or not."""
    return np.asarray(signs.view(_BITS), np.uint64)
