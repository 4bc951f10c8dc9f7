"""Quantized rows in memory: bytes for the direction of each row, by product quantization, and one for its length."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from daskw2v.models.stored.codebooks import books_of, centroids_of, codes_of, decoded, parts_of
from daskw2v.models.stored.units import unit
from daskw2v.types import Float32Array, UInt8Array


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
        """Return a codebook for rows like those of a sample, shape (n, D) float32; all of these may be zeros."""
        known = sample[sample.any(axis=1)] if sample.any() else np.ones((1, sample.shape[1]), np.float32)
        books = books_of(parts_of(unit(known), part_size))
        return cls(books, centroids_of(_lengths(known)[:, None], len(books))[0])

    def encode(self, rows: Float32Array) -> "CodedRows":
        """Return rows, shape (n, D) float32, with their directions and lengths rounded to those of the codebook."""
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
        """Return the concatenated rows of one or several parts, which have the same codebook."""
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
        some = key if isinstance(key, slice) else np.asarray(key)
        rows = decoded(self.directions[some], self.book.directions, self.columns)
        rows *= self.book.lengths[self.lengths[some], None]
        return rows


def _lengths(rows: Float32Array) -> Float32Array:
    return np.asarray(np.linalg.norm(rows.astype(np.float64), axis=1), np.float32)
