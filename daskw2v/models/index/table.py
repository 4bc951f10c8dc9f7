"""A table of int8, which is searched from end to end.

A word's vector of length 1 is a center, a step times whole numbers of -127..127, and an error. By the inequality of
Cauchy and Schwarz, the error changes its cosine with a query by no more than its length, some .005. So the table bounds
the cosine of each word, and a search that keeps the words with the largest bounds knows whether one that it left out
can be nearer. Any center will do; near the mean, which is long in trained vectors, errors are short.
"""

from importlib import import_module

import numpy as np

from daskw2v.models.index.searcher import Candidates, Searcher, kept, scan
from daskw2v.models.stored.blocks import share
from daskw2v.store.limits import refused
from daskw2v.types import Float32Array, Int8Array, Int16Array, UInt8Array

_LARGEST, _LARGEST_QUERY, _SUM = 127, (1 << 15) - 1, (1 << 31) - 1
_NUMBER = np.dtype("<f4")
_SLACK = 1e-6  # of float32's rounding
_ROWS = 256  # widened to float64 at once


class TableIndex(Searcher):
    """An index that compares queries with all words, in a quarter of the memory of their vectors.

    Parameters
    ----------
    shape
        Number of words, and of dimensions of their vectors.
    effort
        Candidates that a search keeps, at least. With more candidates, fewer searches are done again without the index.
    """

    def __init__(self, shape: tuple[int, int], effort: int) -> None:
        super().__init__(shape, effort)
        self._size = _NUMBER.itemsize * (2 * shape[0] + shape[1]) + shape[0] * shape[1]
        self._hold(np.empty(self._size, np.uint8))

    def _hold(self, content: UInt8Array) -> None:
        words, dimensions = self._shape
        head = _NUMBER.itemsize * (2 * words + dimensions)
        self._content, self._codes = content, content[head:].view(np.int8).reshape(self._shape)
        self._center, self._steps, self._errors = np.split(
            content[:head].view(_NUMBER), [dimensions, dimensions + words]
        )

    def read(self, content: UInt8Array, source: str) -> None:
        """Use a file whose checksum was checked, without copying it.

        Raises
        ------
        StoreError
            If it has another size than a table of this shape.
        """
        if len(content) != self._size:
            raise refused(source, f"has {len(content)} bytes, a table of this shape {self._size}")
        self._hold(content)

    def add(self, start: int, units: Float32Array, threads: int) -> None:
        """Add the unit vectors of the words start, start + 1, ..., in order."""
        if start == 0:
            self._center[:] = units.mean(axis=0)

        def write(part: slice) -> None:
            for first in range(part.start, part.stop, _ROWS):
                rows = slice(first, min(first + _ROWS, part.stop))
                own = slice(start + rows.start, start + rows.stop)
                self._codes[own], self._steps[own], self._errors[own] = quantized(units[rows] - self._center)

        share(write, len(units), threads)

    def content(self) -> UInt8Array:
        """Return the content of the index's file."""
        return self._content

    def candidates(self, units: Float32Array, topn: int) -> Candidates:
        """Return candidates for the `topn` words nearest to unit vectors; all words if there are no more."""
        words = self._shape[0]
        n = kept(words, self._effort, topn)  # real and random vectors need fewer
        queries, scales, lost = quantized_queries(units)
        bounds = import_module("daskw2v.kernels.search").bounds  # Numba is loaded once it is needed
        # Numba compiles for arrays that can be written or not, and of the machine's byte order
        table = self._codes, np.asarray(self._steps, np.float32), np.asarray(self._errors, np.float32)

        def score(first: int, stop: int, most: Float32Array) -> None:
            bounds(*table, first, stop, queries, scales, first, most)

        ids, most = scan(score, len(units), words, n)
        others = most[:, -1] + lost + units @ self._center if n < words else np.full(len(units), -np.inf, np.float32)
        return Candidates(ids, others)


def quantized(vectors: Float32Array) -> tuple[Int8Array, Float32Array, Float32Array]:
    """Quantize n vectors to int8.

    Returns
    -------
    codes, steps, errors
        Codes, shape (n, D) int8; the value of a code of 1, and the length of the error, both (n,) float32.
    """
    steps = np.abs(vectors).max(axis=1, initial=0) / np.float32(_LARGEST)
    codes = np.rint(vectors / np.where(steps > 0, steps, 1)[:, None]).astype(np.int8)
    rest = vectors.astype(np.float64) - codes * steps[:, None].astype(np.float64)
    return codes, steps, np.sqrt(np.einsum("ij,ij->i", rest, rest)).astype(np.float32)


def quantized_queries(units: Float32Array) -> tuple[Int16Array, Float32Array, Float32Array]:
    """Quantize n queries, so that the dot product of a query's and a word's codes fits int32.

    Returns
    -------
    codes, steps, errors
        Codes, shape (n, D) int16; the value of a code of 1, and the largest error of a cosine, both (n,) float32.
    """
    wide = np.abs(units.astype(np.float64))
    largest, total = wide.max(axis=1, initial=0), wide.sum(axis=1)
    steps = np.maximum(largest / _LARGEST_QUERY, total / (_SUM / _LARGEST - units.shape[1])).astype(np.float32)
    codes = np.rint(units / np.where(steps > 0, steps, 1)[:, None]).astype(np.int16)
    rest = units.astype(np.float64) - codes * steps[:, None].astype(np.float64)
    # A vector less its center has a length of 2 at most; rounded, of 4
    return codes, steps, (4 * np.sqrt(np.einsum("ij,ij->i", rest, rest)) + _SLACK).astype(np.float32)
