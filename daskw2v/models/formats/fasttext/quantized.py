"""Quantized models of fastText, .ftz: codes of rows, and the most frequent n-grams alone (Joulin et al. 2016).

fastText's own program makes such models of classifiers; the program and its library read models of word vectors too.
"""

import math
import struct
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import BinaryIO

import numpy as np

from daskw2v.errors import InputError
from daskw2v.features.keys import HashedNGrams
from daskw2v.models.formats.fasttext.composing import own_rows_of, slices_of, written_ngrams
from daskw2v.models.formats.fasttext.layout import (
    KIND,
    SHAPE,
    no_model,
    read_exactly,
    unpack,
    write_header,
    write_words,
)
from daskw2v.models.formats.safetensors import write_numbers
from daskw2v.models.queries.features import FeatureVectors
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.quantization import CENTROIDS, Codebook, CodedRows, check_part_size
from daskw2v.types import Float32Array, Int32Array, UInt8Array

PART_SIZE = 2  # dimensions that a byte stands for by default, as in fastText
_CODES = struct.Struct("<?qqi")  # whether lengths have codes; rows, columns; bytes of codes
_BOOK = struct.Struct("<4i")  # columns, parts, dimensions of a part, dimensions of the last one
_PRUNED = np.dtype("<i4")  # pairs of a bucket and its row
_MOST_CODES = 2**31 - 1
_SAMPLE = 1 << 15  # rows of words, and as many of n-grams, that the codebook is made from


def write_quantized(vectors: Vectors, f: BinaryIO, part_size: int = PART_SIZE) -> None:
    """Write a quantized model that fastText loads, without an output table.

    A word's own row is computed such that its mean with the decoded rows of its n-grams is the word's vector; the error
    is that of quantizing the own row. N-grams without a row are left out of means.

    Parameters
    ----------
    vectors
        The vectors to write; `Vectors.prune` leaves n-grams out.
    f
        The file.
    part_size
        Dimensions that a byte stands for, 1 to 64; 1 writes rows of int8.

    Raises
    ------
    ParameterError
        If no byte can stand for so many dimensions.
    InputError
        As `write_fasttext`; and if there are more codes than the format counts.
    """
    check_part_size(part_size)
    ngrams, columns = written_ngrams(vectors), vectors.vector_size
    if ngrams is not None:
        ngrams = FeatureVectors(replace(ngrams.keys, pruned=True), ngrams.rows)
    rows = len(vectors) + (0 if ngrams is None else len(ngrams.keys))
    if rows * -(-columns // part_size) > _MOST_CODES:
        raise InputError(
            f"{rows} rows of {columns} dimensions have more codes than the {_MOST_CODES} of fastText's format.",
            "Give a larger part_size, or prune the model.",
        )
    book = Codebook.of(_sample(vectors, ngrams), part_size)
    coded = [book.encode(np.zeros((0, columns), np.float32))]
    if ngrams is not None:
        coded += [book.encode(rows) for rows in _rows_of(ngrams)]
        ngrams = FeatureVectors(ngrams.keys, CodedRows.joined(coded))
    coded = [*(book.encode(rows) for rows in own_rows_of(vectors, ngrams)), *coded]
    write_header(vectors, HashedNGrams(bucket=0) if ngrams is None else ngrams.keys.ngrams, f)
    write_words(vectors.vocabulary, f, -1 if ngrams is None else len(ngrams.keys))
    if ngrams is not None:
        buckets = ngrams.keys.buckets
        write_numbers(f, np.stack([buckets, np.arange(len(buckets), dtype=np.int32)], axis=1))
    _write_codes(book, CodedRows.joined(coded), f)
    f.write(KIND.pack(False) + SHAPE.pack(0, columns))


def _sample(vectors: Vectors, ngrams: FeatureVectors | None) -> Float32Array:
    """Return a sample of the rows of words, and of as many rows of n-grams."""
    sample = [np.zeros((0, vectors.vector_size), np.float32), *_spread(own_rows_of(vectors, ngrams), len(vectors))]
    if ngrams is not None:
        sample += _spread(_rows_of(ngrams), len(ngrams.keys))
    return np.concatenate(sample)


def _spread(pieces: Iterable[Float32Array], n: int) -> Iterator[Float32Array]:
    """Yield at most about _SAMPLE of n rows, which come in pieces, at even distances."""
    return (rows[:: -(-n // _SAMPLE)] for rows in pieces)


def _rows_of(ngrams: FeatureVectors) -> Iterator[Float32Array]:
    """Yield the rows of n-grams."""
    return (np.asarray(ngrams.rows[part]) for part in slices_of(len(ngrams.keys), ngrams.vector_size))


def _write_codes(book: Codebook, rows: CodedRows, f: BinaryIO) -> None:
    """Write the codes and centroids of directions, then the codes and centroids of lengths."""
    (n, columns), (parts, part_size, _) = rows.shape, book.directions.shape
    last = columns - (parts - 1) * part_size
    f.write(KIND.pack(True) + _CODES.pack(True, n, columns, rows.directions.size))
    f.write(rows.directions.data)
    f.write(_BOOK.pack(columns, parts, part_size, last))
    for number, centroids in enumerate(book.directions):
        write_numbers(f, centroids[: part_size if number < parts - 1 else last].T)
    f.write(rows.lengths.data)
    f.write(_BOOK.pack(1, 1, 1, 1))
    write_numbers(f, book.lengths)


def read_codes(f: BinaryIO, url: str, dim: int) -> CodedRows:
    """Read the quantized rows of words and n-grams, of `dim` columns; raises as `read_fasttext` does."""
    has_lengths, n, columns, size = unpack(f, url, _CODES)
    parts = size // n if n > 0 else 0
    if columns != dim or n < 0 or size != n * parts or (n and not 1 <= parts <= columns):
        raise no_model(url, f"tells of {size} codes of {n} rows and {columns} columns")
    directions = _codes(f, url, (n, parts))
    books = _read_book(f, url, columns, parts)
    lengths, of_lengths = np.zeros(n, np.uint8), np.ones(CENTROIDS, np.float32)
    if has_lengths:
        lengths, of_lengths = _codes(f, url, (n,)), _read_book(f, url, 1, 1)[0, 0]
    largest = float(np.abs(books).max(initial=0)) * float(np.abs(of_lengths).max())
    if largest > float(np.finfo(np.float32).max):
        raise no_model(url, f"has codes of numbers up to {largest:.1e}")
    return CodedRows(Codebook(books, of_lengths), directions.reshape(n, len(books)), lengths, columns)


def _codes(f: BinaryIO, url: str, shape: tuple[int, ...]) -> UInt8Array:
    return np.frombuffer(read_exactly(f, url, math.prod(shape)), np.uint8).reshape(shape)


def _read_book(f: BinaryIO, url: str, columns: int, parts: int) -> Float32Array:
    """Return the centroids of each part, shape (parts, part_size, 256).

    Where one part holds all columns, the size that the file names for it may be larger: fastText does not use the rest.
    """
    wide, n, part_size, last = unpack(f, url, _BOOK)
    fits = wide == columns and 1 <= last <= part_size and (n - 1) * part_size + last == columns
    if not fits or (parts and n != parts):
        raise no_model(url, f"cuts {wide} columns into {n} parts of {part_size}, the last of {last}")
    books = np.zeros((n, min(part_size, columns), CENTROIDS), np.float32)
    for number, book in enumerate(books):
        width = part_size if number < n - 1 else last
        content = read_exactly(f, url, 4 * width * CENTROIDS)
        book[:width] = np.frombuffer(content, "<f4").reshape(CENTROIDS, width).T
    if not np.isfinite(books).all():
        raise no_model(url, "has a centroid that is not finite")
    return books


def read_buckets(f: BinaryIO, url: str, pruned: int, bucket: int) -> Int32Array | None:
    """Read the bucket of each row of a pruned model, in order of the rows; None if no n-gram was left out."""
    if pruned < 0:
        return None
    content = read_exactly(f, url, pruned * 2 * _PRUNED.itemsize)
    buckets, rows = np.frombuffer(content, _PRUNED).reshape(-1, 2).T
    ascending = np.sort(buckets)
    outside = pruned > 0 and not 0 <= ascending[0] <= ascending[-1] < bucket
    if outside or not np.diff(ascending).all() or not np.array_equal(np.sort(rows), np.arange(pruned)):
        raise no_model(url, f"does not tell the rows of {pruned} n-grams of {bucket}")
    of_rows = np.empty(pruned, np.int32)
    of_rows[rows] = buckets
    return of_rows
