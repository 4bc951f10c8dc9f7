"""The kinds of index, which find candidates for the nearest words: a graph, and tables of small vectors.

A graph of near words is searched from neighbour to neighbour. A table is searched from end to end: it scores all words,
and the words with the highest scores are candidates. The model's float32 ranks the candidates. Vectors in tables have
less their center, near the mean, which is long in trained vectors: from there errors are short, and about half of all
components lie on either side.
"""

import hashlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import numpy as np

from daskw2v.extras import needed
from daskw2v.models.stored.blocks import Ranking, map_ranges
from daskw2v.models.stored.quantization import CENTROIDS, MAX_PART_SIZE, cut_vectors, encode_parts, make_books
from daskw2v.store.limits import refused
from daskw2v.types import Float32Array, Float64Array, Int8Array, Int16Array, Int64Array, UInt8Array, UInt64Array

EFFORT = 128  # default candidates of a search
CONNECTIVITY, EXPANSION = 16, 128  # of a graph by default
PART_SIZE = 4  # dimensions of a part of a product index by default
BLOCK_WORDS = 1 << 16  # largest number of words that are scored before the best are picked
_PER_WORD = 4  # candidates of a table for each word that is asked for
_SCORES = 1 << 22  # scores in memory at once: 16 MB
_HALF = np.dtype("<f2")  # of numbers in a graph
_NUMBER, _BITS, _HEAD = np.dtype("<f4"), np.dtype("<u8"), np.dtype("<i4")
_MAX_CODE, _MAX_QUERY_CODE, _MAX_SUM = 127, (1 << 15) - 1, (1 << 31) - 1
_SLACK = 1e-6  # of float32's rounding
_ROWS = 256  # widened to float64 at once


class Candidates(NamedTuple):
    """Words that may be the nearest to n queries.

    Parameters
    ----------
    ids
        Ids of m words for each query, shape (n, m), padded with -1.
    bounds
        An upper bound of the cosines of all other words, shape (n,) float32; -inf if the index has no bound, so that
        the candidates count as the nearest, and inf if there are too few candidates.
    """

    ids: Int64Array
    bounds: Float32Array


def as_nearest(ids: Int64Array) -> Candidates:
    """Return ids, shape (n, m), as candidates that count as the nearest words, unless a query has too few (-1)."""
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
        return _load, (type(self), self._shape, self._effort, self.content())

    def __dask_tokenize__(self) -> Any:
        """Return the parts of the name of the index among Dask's keys."""
        digest = hashlib.blake2b(self.content().data, digest_size=20).hexdigest()
        return type(self).__name__, self._shape, self._effort, digest

    @abstractmethod
    def read(self, content: UInt8Array, source: str) -> None:
        """Use the content of a file whose checksum was checked, without copying it; `source` names it in messages.

        Raises
        ------
        StoreError
            If it is not of this kind, shape and release.
        """

    @abstractmethod
    def add(self, start: int, units: Float32Array, threads: int) -> None:
        """Add the unit vectors of the words start, start + 1, ..., in at most `threads` threads, 0 for one per core."""

    @abstractmethod
    def content(self) -> UInt8Array:
        """Return the content of the index's file."""

    @abstractmethod
    def candidates(self, units: Float32Array, topn: int) -> Candidates:
        """Return candidates for the `topn` words nearest to each of n unit vectors, shape (n, D)."""


class GraphIndex(Searcher):
    """A graph of near words: a wrapper of usearch's index.

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
        self._lock = threading.Lock()  # usearch is not safe for concurrent calls: each numbers its threads from 0

    def read(self, content: UInt8Array, source: str) -> None:
        """Use the content of a file, as `Searcher.read` does.

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
        self._index.add(np.arange(start, start + len(units), dtype=np.uint64), units.astype(_HALF), threads=threads)

    def content(self) -> UInt8Array:
        """Return the content of the index's file."""
        return np.frombuffer(self._index.save(), np.uint8) if self._content is None else self._content

    def candidates(self, units: Float32Array, topn: int) -> Candidates:
        """Return the `topn` words that the graph finds for each unit vector, as the nearest unless it finds fewer."""
        with self._lock:
            matches = self._index.search(units.astype(_HALF), topn)
        keys, counts = np.atleast_2d(matches.keys), np.atleast_1d(getattr(matches, "counts", len(matches)))
        ids = keys.astype(np.int64)
        ids[np.arange(ids.shape[1]) >= counts[:, None]] = -1
        return as_nearest(ids)


class Table(Searcher):
    """An index that compares queries with all words. Its file is the table, which is used without being copied.

    Parameters
    ----------
    shape
        Number of words, and of dimensions of their vectors.
    effort
        Smallest number of candidates that a search keeps.
    """

    def __init__(self, shape: tuple[int, int], effort: int) -> None:
        super().__init__(shape, effort)
        self._use(np.zeros(self._size(), np.uint8))

    @abstractmethod
    def _size(self) -> int:
        """Return the size of the table in bytes."""

    @abstractmethod
    def _parse(self, content: UInt8Array) -> None:
        """Keep views of the parts of a table."""

    def _use(self, content: UInt8Array) -> None:
        """Use a content as the table."""
        self._content = content
        self._parse(content)

    def read(self, content: UInt8Array, source: str) -> None:
        """Use the content of a file, as `Searcher.read` does.

        Raises
        ------
        StoreError
            If it has another size than a table of this shape.
        """
        if len(content) != (size := self._size()):
            raise refused(source, f"has {len(content)} bytes, a table of this shape {size}")
        self._use(content)

    def content(self) -> UInt8Array:
        """Return the content of the index's file."""
        return self._content

    def _rank(
        self, score: Callable[[int, int, Float32Array], None], n_queries: int, topn: int
    ) -> tuple[Int64Array, Float32Array]:
        """Return the n words with the highest scores for each query, best first, and scores, both (n_queries, n).

        n is the larger of 4 * `topn` and the effort, but at most the number of words.

        Parameters
        ----------
        score
            Function (first, stop, scores) that writes the scores of the words first..stop-1 to `scores`, shape
            (n_queries, stop - first) float32.
        n_queries, topn
            Number of queries, and of words that each asks for.
        """
        n = min(self._shape[0], max(self._effort, _PER_WORD * topn))

        def search(part: slice) -> tuple[Int64Array, Float32Array]:
            ranking, step = Ranking(n_queries, n), max(1, min(BLOCK_WORDS, _SCORES // max(1, n_queries)))
            for start in range(part.start, part.stop, step):
                scores = np.empty((n_queries, min(step, part.stop - start)), np.float32)
                score(start, start + scores.shape[1], scores)
                ranking.add(scores, np.arange(start, start + scores.shape[1]))
            return ranking.best()

        ids, values = (np.concatenate(parts, axis=1) for parts in zip(*map_ranges(search, self._shape[0]), strict=True))
        best = np.argsort(-values, axis=1, kind="stable")[:, :n]
        return np.take_along_axis(ids, best, axis=1), np.take_along_axis(values, best, axis=1)


class Int8Index(Table):
    """A table of int8, in a quarter of the memory of the vectors. With more effort, fewer searches are done again.

    A word's vector of length 1 is a center, a step times integers of -127..127, and an error. By the inequality of
    Cauchy and Schwarz, the error changes its cosine with a query by no more than its length, about .005. So the table
    bounds the cosine of each word, and a search that keeps the words with the largest bounds knows whether another word
    can be nearer.
    """

    def _size(self) -> int:
        words, dimensions = self._shape
        return _NUMBER.itemsize * (2 * words + dimensions) + words * dimensions

    def _parse(self, content: UInt8Array) -> None:
        words, dimensions = self._shape
        head = _NUMBER.itemsize * (2 * words + dimensions)
        self._codes = content[head:].view(np.int8).reshape(self._shape)
        numbers = content[:head].view(_NUMBER)
        self._center, self._steps, self._errors = np.split(numbers, [dimensions, dimensions + words])

    def add(self, start: int, units: Float32Array, threads: int) -> None:
        """Add the unit vectors of the words start, start + 1, ...; the first call's mean is the center."""
        if start == 0:
            self._center[:] = units.mean(axis=0)

        def write(part: slice) -> None:
            for first in range(part.start, part.stop, _ROWS):
                rows = slice(first, min(first + _ROWS, part.stop))
                ids = slice(start + rows.start, start + rows.stop)
                self._codes[ids], self._steps[ids], self._errors[ids] = quantize_vectors(units[rows] - self._center)

        map_ranges(write, len(units), threads)

    def candidates(self, units: Float32Array, topn: int) -> Candidates:
        """Return candidates for the `topn` words nearest to each of n unit vectors, shape (n, D).

        The number of candidates is as in `_rank`. The bound of a vector is an upper bound of its cosines with all words
        that are no candidates; -inf if all words are candidates.
        """
        queries, scales, errors = quantize_queries(units)
        bounds = import_module("daskw2v.kernels.search").bounds  # Numba is loaded once it is needed
        # Numba compiles for arrays that can be written or not, and of the machine's byte order
        table = self._codes, np.asarray(self._steps, np.float32), np.asarray(self._errors, np.float32)

        def score(first: int, stop: int, scores: Float32Array) -> None:
            bounds(*table, first, stop, queries, scales, first, scores)

        ids, scores = self._rank(score, len(units), topn)
        if ids.shape[1] == self._shape[0]:
            return as_nearest(ids)
        return Candidates(ids, scores[:, -1] + errors + units @ self._center)


class ProductIndex(Table):
    """A table of product-quantized vectors (Jegou et al. 2011, "Product Quantization for Nearest Neighbor Search").

    Vectors are cut into parts of some dimensions. Each part has 256 centroids, computed by k-means, and a word has a
    byte for each part: the number of the nearest one. A query's products with all centroids are looked up and added
    (section III-A). More effort raises recall and takes longer.

    Parameters
    ----------
    shape, effort
        As of `Table`.
    part_size
        Dimensions that a byte stands for; an index that is read has its own.
    """

    OPTIONS: ClassVar[Mapping[str, int]] = {"part_size": PART_SIZE}

    def __init__(self, shape: tuple[int, int], effort: int, part_size: int = PART_SIZE) -> None:
        self._part = part_size
        super().__init__(shape, effort)
        self._content[: _HEAD.itemsize].view(_HEAD)[0] = part_size

    def _size(self) -> int:
        parts = -(-self._shape[1] // self._part)
        return _HEAD.itemsize + parts * (self._part * CENTROIDS * _NUMBER.itemsize + self._shape[0])

    def _parse(self, content: UInt8Array) -> None:
        """Keep views of the centroids of each part and the codes of each word, which follow the part size."""
        parts = -(-self._shape[1] // self._part)
        codes = len(content) - parts * self._shape[0]
        self._books = content[_HEAD.itemsize : codes].view(_NUMBER).reshape(parts, self._part, CENTROIDS)
        self._codes = content[codes:].reshape(self._shape[0], parts)

    def read(self, content: UInt8Array, source: str) -> None:
        """Use a file; raises as `Table.read` does, also for a wrong part size, and centroids that are not finite."""
        if len(content) < _HEAD.itemsize:
            raise refused(source, f"has {len(content)} bytes, too few for an index")
        part_size = int(content[: _HEAD.itemsize].view(_HEAD)[0])
        if not 1 <= part_size <= MAX_PART_SIZE:
            raise refused(source, f"has parts of {part_size} dimensions")
        self._part = part_size
        super().read(content, source)
        if not np.isfinite(self._books).all():
            raise refused(source, "has a centroid that is not finite")

    def add(self, start: int, units: Float32Array, threads: int) -> None:
        """Add the unit vectors of the words start, start + 1, ...; the vectors of the first call make the centroids."""
        parts = cut_vectors(units, self._part)
        if start == 0:
            self._books[:] = make_books(parts)
        self._codes[start : start + len(units)] = encode_parts(parts, self._native_books(), threads)

    def candidates(self, units: Float32Array, topn: int) -> Candidates:
        """Return candidates for the `topn` words nearest to each of n unit vectors, as many as `_rank` keeps."""
        sums = import_module("daskw2v.kernels.search").sums  # Numba is loaded once it is needed
        tables = np.ascontiguousarray(np.einsum("pnd,pdk->npk", cut_vectors(units, self._part), self._native_books()))

        def score(first: int, stop: int, scores: Float32Array) -> None:
            sums(self._codes, first, stop, tables, first, scores)

        return as_nearest(self._rank(score, len(units), topn)[0])

    def _native_books(self) -> Float32Array:
        """Return the centroids in this machine's byte order, which Numba compiles for."""
        return np.asarray(self._books, np.float32)


class BinaryIndex(Table):
    """A table of signs: a bit for each dimension, a 32nd of the vectors' size.

    A bit says on which side of the center a component lies. The share of bits that differ grows with the angle between
    two vectors (Charikar 2002, section 3, for random planes; here the planes are the axes). So the words whose bits
    differ least from the query's are candidates. More effort raises recall and takes longer.
    """

    def _size(self) -> int:
        return self._shape[0] * self._word_bytes() + _NUMBER.itemsize * self._shape[1]

    def _word_bytes(self) -> int:
        """Return the bytes of the bits of a word, a multiple of 8."""
        return _BITS.itemsize * -(-self._shape[1] // (8 * _BITS.itemsize))

    def _parse(self, content: UInt8Array) -> None:
        """Keep views of the bits of all words, and of the center."""
        bits = self._shape[0] * self._word_bytes()
        self._codes, self._center = content[:bits].reshape(self._shape[0], -1), content[bits:].view(_NUMBER)

    def add(self, start: int, units: Float32Array, threads: int) -> None:
        """Add the unit vectors of the words start, start + 1, ...; the first call's mean is the center."""
        if start == 0:
            self._center[:] = units.mean(axis=0)
        self._codes[start : start + len(units)] = self._signs(units)

    def candidates(self, units: Float32Array, topn: int) -> Candidates:
        """Return candidates for the `topn` words nearest to each of n unit vectors, as many as `_rank` keeps."""
        agreements = import_module("daskw2v.kernels.search").agreements  # Numba is loaded once it is needed
        codes, queries = _as_uint64(self._codes), _as_uint64(self._signs(units))

        def score(first: int, stop: int, scores: Float32Array) -> None:
            agreements(codes, first, stop, queries, first, scores)

        return as_nearest(self._rank(score, len(units), topn)[0])

    def _signs(self, vectors: Float32Array) -> UInt8Array:
        """Return the bits of n vectors, whether each component is above the center's, shape (n, bytes of a word)."""
        bits = np.packbits(vectors > self._center, axis=1, bitorder="little")
        return np.pad(bits, ((0, 0), (0, self._word_bytes() - bits.shape[1])))


KINDS: dict[str, type[Searcher]]
KINDS = {"hnsw": GraphIndex, "int8": Int8Index, "binary": BinaryIndex, "product": ProductIndex}


def _load(kind: type[Searcher], shape: tuple[int, int], effort: int, content: UInt8Array) -> Searcher:
    """Return the index that a pickle holds."""
    index = kind(shape, effort)
    index.read(content, "The index in a pickle")
    return index


def _as_uint64(signs: UInt8Array) -> UInt64Array:
    """Return bits of n words as uint64 in this machine's byte order, which Numba compiles for."""
    return np.asarray(signs.view(_BITS), np.uint64)


def quantize_vectors(vectors: Float32Array) -> tuple[Int8Array, Float32Array, Float32Array]:
    """Quantize n vectors to int8.

    Returns
    -------
    codes, steps, errors
        Codes, shape (n, D) int8; the value of a code of 1, and the length of the error, both (n,) float32.
    """
    steps = np.abs(vectors).max(axis=1, initial=0) / np.float32(_MAX_CODE)
    codes = np.rint(vectors / np.where(steps > 0, steps, 1)[:, None]).astype(np.int8)
    return codes, steps, _error_lengths(vectors, codes, steps).astype(np.float32)


def quantize_queries(units: Float32Array) -> tuple[Int16Array, Float32Array, Float32Array]:
    """Quantize n queries, so that the dot product of a query's and a word's codes fits int32.

    Returns
    -------
    codes, steps, errors
        Codes, shape (n, D) int16; the value of a code of 1, and the largest error of a cosine, both (n,) float32.
    """
    wide = np.abs(units.astype(np.float64))
    largest, total = wide.max(axis=1, initial=0), wide.sum(axis=1)
    steps = np.maximum(largest / _MAX_QUERY_CODE, total / (_MAX_SUM / _MAX_CODE - units.shape[1])).astype(np.float32)
    codes = np.rint(units / np.where(steps > 0, steps, 1)[:, None]).astype(np.int16)
    # A vector less its center has a length of 2 at most; rounded, of 4
    return codes, steps, (4 * _error_lengths(units, codes, steps) + _SLACK).astype(np.float32)


def _error_lengths(vectors: Float32Array, codes: Int8Array | Int16Array, steps: Float32Array) -> Float64Array:
    """Return the distances of n vectors from the vectors that their codes stand for, shape (n,)."""
    errors = vectors.astype(np.float64) - codes * steps[:, None].astype(np.float64)
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", errors, errors)))
