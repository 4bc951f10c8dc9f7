"""Product quantization (Jegou et al. 2011, "Product Quantization for Nearest Neighbor Search", section II-B).

Vectors are cut into parts of some dimensions. Each part has 256 centroids, found by k-means (Lloyd 1982), and a vector
has a byte for each part: the number of the nearest centroid. The k-means of scikit-learn is not used, because it needs
an extra. Quantized rows have such bytes for their directions, and one more for their lengths.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Self

import numpy as np
import numpy.typing as npt

from daskw2v.errors import ParameterError
from daskw2v.models.stored.arguments import at_least_one
from daskw2v.models.stored.blocks import share, unit
from daskw2v.types import Float32Array, UInt8Array

CENTROIDS = 256  # values of a byte
MOST_PART = 64  # most dimensions of a part
_SAMPLE = 1 << 15  # most vectors that centroids are made from: 128 for each
_TIMES = 16  # steps of k-means; after them, centroids hardly move


@dataclass(frozen=True, eq=False)
class Codebook:
    """The values of the bytes of quantized rows.

    Parameters
    ----------
    directions
        Centroids of the parts of unit vectors, shape (parts, part_size, 256) float32. With a part size of 1, each
        dimension has 256 values of its own.
    lengths
        Lengths of rows, shape (256,) float32.
    """

    directions: Float32Array
    lengths: Float32Array

    @classmethod
    def of(cls, sample: Float32Array, part_size: int) -> Self:
        """Return a codebook for rows like the rows of a sample, shape (n, D) float32, which may all be zeros."""
        known = sample[sample.any(axis=1)] if sample.any() else np.ones((1, sample.shape[1]), np.float32)
        books = books_of(parts_of(unit(known), part_size))
        return cls(books, centroids_of(_lengths(known)[:, None], len(books))[0])

    def encode(self, rows: Float32Array) -> "CodedRows":
        """Return the codes of rows, shape (n, D) float32: the nearest directions and lengths of the codebook."""
        directions = codes_of(parts_of(unit(rows), self.directions.shape[1]), self.directions)
        lengths = codes_of(_lengths(rows)[None, :, None], self.lengths[None, None])
        return CodedRows(self, directions, lengths[:, 0], rows.shape[1])


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Rows that are decoded when they are read, indexed like a matrix: by a slice or an array of numbers.

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
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the concatenated rows of one or more parts, which share a codebook."""
        directions = np.concatenate([part.directions for part in parts])
        lengths = np.concatenate([part.lengths for part in parts])
        return cls(parts[0].book, directions, lengths, parts[0].columns)

    def after(self, n: int) -> "CodedRows":
        """Return the rows from number n on."""
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
        """Return several rows, shape (n, D) float32."""
        ids = key if isinstance(key, slice) else np.asarray(key)
        rows = decoded(self.directions[ids], self.book.directions, self.columns)
        rows *= self.book.lengths[self.lengths[ids], None]
        return rows


def check_part_size(part_size: int) -> None:
    """Check that `part_size` is an integer of 1 to MOST_PART; raises `ParameterError`."""
    if at_least_one("part_size", part_size) > MOST_PART:
        raise ParameterError(f"part_size={part_size} is more than the {MOST_PART} dimensions of a byte.", "Give fewer.")


def parts_of(vectors: Float32Array, part_size: int) -> Float32Array:
    """Return the parts of n vectors, shape (parts, n, part_size); the last is filled with zeros."""
    n, columns = vectors.shape
    n_parts = -(-columns // part_size)
    parts = np.zeros((n, n_parts * part_size), np.float32)
    parts[:, :columns] = vectors
    return np.ascontiguousarray(parts.reshape(n, n_parts, part_size).swapaxes(0, 1))


def centroids_of(vectors: Float32Array, seed: int) -> Float32Array:
    """Return centroids of n vectors, shape (n, D), as columns of a matrix, shape (D, CENTROIDS) float32.

    k-means starts from random vectors of the sample. A centroid that is nearest to no vector stays.
    """
    assign, random = import_module("daskw2v.kernels.search").assign, np.random.default_rng(seed)
    sample = vectors[random.permutation(len(vectors))[:_SAMPLE]]
    centroids = np.ascontiguousarray(sample[np.arange(CENTROIDS) % len(sample)].T)
    scores, codes = np.empty(CENTROIDS, np.float32), np.empty(len(sample), np.uint8)
    for _ in range(_TIMES):
        assign(sample, centroids, scores, codes)
        sizes = np.bincount(codes, minlength=CENTROIDS)
        totals = np.stack([np.bincount(codes, weights, CENTROIDS) for weights in sample.T])
        centroids = np.where(sizes > 0, totals / np.maximum(sizes, 1), centroids).astype(np.float32)
    return centroids


def books_of(parts: Float32Array) -> Float32Array:
    """Return the centroids of parts, shape (parts, n, part_size), with the shape (parts, part_size, CENTROIDS)."""
    return np.stack([centroids_of(part, number) for number, part in enumerate(parts)])


def codes_of(parts: Float32Array, books: Float32Array, threads: int = 0) -> UInt8Array:
    """Return the numbers of the centroids nearest to the parts of n vectors, shape (n, parts).

    Parameters
    ----------
    parts, books
        Shapes (parts, n, part_size) and (parts, part_size, CENTROIDS) float32.
    threads
        One for each core by default.
    """
    assign = import_module("daskw2v.kernels.search").assign  # Numba is loaded once it is needed
    numbers = np.empty((parts.shape[1], len(parts)), np.uint8)

    def write(rows: slice) -> None:
        room, codes = np.empty(CENTROIDS, np.float32), np.empty(rows.stop - rows.start, np.uint8)
        for number, (part, book) in enumerate(zip(parts, books, strict=True)):
            assign(part[rows], book, room, codes)
            numbers[rows, number] = codes

    share(write, len(numbers), threads)
    return numbers


def decoded(codes: UInt8Array, books: Float32Array, columns: int) -> Float32Array:
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
    return np.asarray(np.linalg.norm(rows.astype(np.float64), axis=1), np.float32)
