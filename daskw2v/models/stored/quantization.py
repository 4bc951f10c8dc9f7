"""Product quantization (Jegou et al. 2011, "Product Quantization for Nearest Neighbor Search", section II-B).

Vectors are cut into parts of some dimensions. Each part has 256 centroids, computed by k-means (Lloyd 1982), and a
vector has a byte for each part: the number of the nearest centroid. The k-means of scikit-learn is not used, because it
needs an extra. Quantized rows have such bytes for their directions, and one more for their lengths.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Self

import numpy as np
import numpy.typing as npt

from daskw2v.errors import ParameterError
from daskw2v.models.stored.arguments import as_positive_int
from daskw2v.models.stored.blocks import map_ranges, normalize_queries
from daskw2v.types import Float32Array, UInt8Array

CENTROIDS = 256  # of a part: as many as a byte has values
MAX_PART_SIZE = 64  # dimensions
_SAMPLE = 1 << 15  # largest number of vectors that centroids are made from: 128 for each
_STEPS = 16  # steps of k-means; after them, centroids hardly move


@dataclass(frozen=True, eq=False)
class Codebook:
    """The values of the bytes of quantized rows.

    Parameters
    ----------
    directions
        Centroids of the parts of unit vectors, shape (parts, part_size, 256) float32. With a part size of 1, each
        dimension has its 256 values.
    lengths
        Centroids of the lengths of rows, shape (256,) float32.
    """

    directions: Float32Array
    lengths: Float32Array

    @classmethod
    def fit(cls, sample: Float32Array, part_size: int) -> Self:
        """Return a codebook fitted to a sample of rows, shape (n, D) float32, which may all be zeros."""
        known = sample[sample.any(axis=1)] if sample.any() else np.ones((1, sample.shape[1]), np.float32)
        books = make_books(cut_vectors(normalize_queries(known), part_size))
        return cls(books, find_centroids(_lengths(known)[:, None], len(books))[0])

    def encode(self, rows: Float32Array) -> "CodedRows":
        """Return the codes of rows, shape (n, D) float32: the nearest directions and the nearest lengths."""
        directions = encode_parts(cut_vectors(normalize_queries(rows), self.directions.shape[1]), self.directions)
        lengths = encode_parts(_lengths(rows)[None, :, None], self.lengths[None, None])
        return CodedRows(self, directions, lengths[:, 0], rows.shape[1])


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Rows that are decoded when they are read, indexed by a slice or an array of numbers, not by a single number.

    Parameters
    ----------
    book
        The values of the codes.
    directions, lengths
        Codes of n rows, shapes (n, parts) and (n,) uint8.
    columns
        Dimensions of a row.
    """

    book: Codebook
    directions: UInt8Array
    lengths: UInt8Array
    columns: int

    dtype = np.dtype(np.float32)

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Return the rows of one or more parts as one; the parts share a codebook."""
        directions = np.concatenate([part.directions for part in parts])
        lengths = np.concatenate([part.lengths for part in parts])
        return cls(parts[0].book, directions, lengths, parts[0].columns)

    def rows_from(self, n: int) -> "CodedRows":
        """Return the rows from index n on, as views."""
        return CodedRows(self.book, self.directions[n:], self.lengths[n:], self.columns)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and of their dimensions."""
        return len(self.lengths), self.columns

    @property
    def nbytes(self) -> int:
        """Bytes that the rows take in memory."""
        books = self.book.directions.nbytes + self.book.lengths.nbytes
        return self.directions.nbytes + self.lengths.nbytes + books

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, key: slice | npt.ArrayLike) -> Float32Array:
        """Return the decoded rows of a slice or of n indices, shape (n, D) float32."""
        ids = key if isinstance(key, slice) else np.asarray(key)
        rows = decode_parts(self.directions[ids], self.book.directions, self.columns)
        rows *= self.book.lengths[self.lengths[ids], None]
        return rows


def check_part_size(part_size: int) -> None:
    """Raise ParameterError if `part_size`, dimensions of a part, is no integer of 1 to MAX_PART_SIZE."""
    if as_positive_int("part_size", part_size) > MAX_PART_SIZE:
        problem = f"part_size={part_size} is more than the {MAX_PART_SIZE} dimensions of a byte."
        raise ParameterError(problem, "Give fewer.")


def cut_vectors(vectors: Float32Array, part_size: int) -> Float32Array:
    """Return n vectors cut into parts, shape (parts, n, part_size) float32; zeros fill the last part."""
    n, columns = vectors.shape
    n_parts = -(-columns // part_size)
    parts = np.zeros((n, n_parts * part_size), np.float32)
    parts[:, :columns] = vectors
    return np.ascontiguousarray(parts.reshape(n, n_parts, part_size).swapaxes(0, 1))


def find_centroids(vectors: Float32Array, seed: int) -> Float32Array:
    """Return centroids of n vectors, shape (n, D), by k-means, as a matrix of shape (D, CENTROIDS) float32.

    k-means starts from random vectors of the sample. A centroid that is nearest to no vector stays.
    """
    assign, random = import_module("daskw2v.kernels.search").assign, np.random.default_rng(seed)
    sample = vectors[random.permutation(len(vectors))[:_SAMPLE]]
    centroids = np.ascontiguousarray(sample[np.arange(CENTROIDS) % len(sample)].T)
    scores, codes = np.empty(CENTROIDS, np.float32), np.empty(len(sample), np.uint8)
    for _ in range(_STEPS):
        assign(sample, centroids, scores, codes)
        sizes = np.bincount(codes, minlength=CENTROIDS)
        totals = np.stack([np.bincount(codes, weights, CENTROIDS) for weights in sample.T])
        centroids = np.where(sizes > 0, totals / np.maximum(sizes, 1), centroids).astype(np.float32)
    return centroids


def make_books(parts: Float32Array) -> Float32Array:
    """Return the centroids of each part, (parts, part_size, CENTROIDS) float32; parts: (parts, n, part_size)."""
    return np.stack([find_centroids(part, number) for number, part in enumerate(parts)])


def encode_parts(parts: Float32Array, books: Float32Array, threads: int = 0) -> UInt8Array:
    """Return the index of the nearest centroid of each part of n vectors, shape (n, parts) uint8.

    Parameters
    ----------
    parts, books
        Shapes (parts, n, part_size) and (parts, part_size, CENTROIDS) float32.
    threads
        Number of threads; 0 for one on each core.
    """
    assign = import_module("daskw2v.kernels.search").assign  # Numba is loaded once it is needed
    numbers = np.empty((parts.shape[1], len(parts)), np.uint8)

    def write(rows: slice) -> None:
        scores, codes = np.empty(CENTROIDS, np.float32), np.empty(rows.stop - rows.start, np.uint8)
        for number, (part, book) in enumerate(zip(parts, books, strict=True)):
            assign(part[rows], book, scores, codes)
            numbers[rows, number] = codes

    map_ranges(write, len(numbers), threads)
    return numbers


def decode_parts(codes: UInt8Array, books: Float32Array, columns: int) -> Float32Array:
    """Return the vectors that codes stand for, shape (n, columns) float32.

    Parameters
    ----------
    codes, books
        Shapes (n, parts) uint8 and (parts, part_size, CENTROIDS) float32.
    columns
        Dimensions of the vectors: the last part may have fewer than its book.
    """
    rows = np.empty((len(codes), len(books), books.shape[1]), np.float32)
    for number, book in enumerate(books):
        rows[:, number] = book.T[codes[:, number]]
    return np.ascontiguousarray(rows.reshape(len(codes), len(books) * books.shape[1])[:, :columns])


def _lengths(rows: Float32Array) -> Float32Array:
    """Return the length of each of n rows, shape (n,) float32; 0 for a row of zeros."""
    return np.asarray(np.linalg.norm(rows.astype(np.float64), axis=1), np.float32)
