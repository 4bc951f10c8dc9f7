"""Reads and writes fastText's models: words, vectors, and the rows of n-grams; in .ftz, codes of these rows.

A quantized model, .ftz, has the most frequent n-grams alone (Joulin et al. 2016). fastText's own program makes such
models of classifiers; the program and its library read models of word vectors too.
"""

import math
import struct
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import BinaryIO

import numpy as np

from daskw2v.errors import InputError
from daskw2v.features.keys import FeatureKeys, HashedNGrams
from daskw2v.features.ngram_kernel import hash_stored_words
from daskw2v.features.words import WordFeatures, compose_vectors, solve_own_rows
from daskw2v.models.formats.fasttext.layout import (
    KIND,
    SHAPE,
    Header,
    no_model,
    read_exactly,
    read_header,
    read_words,
    unpack,
    write_header,
)
from daskw2v.models.formats.safetensors import write_numbers
from daskw2v.models.formats.word2vec import check_rows, refuse_words
from daskw2v.models.queries.features import FeatureVectors
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.blocks import cut
from daskw2v.models.stored.quantization import CENTROIDS, Codebook, CodedRows, check_part_size
from daskw2v.models.stored.tables import StoredRows
from daskw2v.store.limits import check_room, free_memory
from daskw2v.types import Float32Array, Int32Array, UInt8Array
from daskw2v.vocabulary.vocabulary import Vocabulary

NGRAMS_AT_ONCE = 1 << 22
ROW_BYTES_AT_ONCE = 64 << 20
PART_SIZE = 2  # dimensions that a byte stands for by default, as in fastText
_SEPARATORS = r"^$|[ \t\n\r\v\f\0]"  # characters that end a word of fastText's text and files
_CODES = struct.Struct("<?qqi")  # whether lengths have codes; rows, columns; bytes of codes
_BOOK = struct.Struct("<4i")  # columns, parts, dimensions of a part, dimensions of the last one
_PRUNED = np.dtype("<i4")  # pairs of a bucket and its row
_MOST_CODES = 2**31 - 1
_SAMPLE = 1 << 15  # rows of words, and as many of n-grams, that the codebook is made from


def read_fasttext(f: BinaryIO, url: str) -> Vectors:
    """Read the words, counts and vectors of a model, and the rows of its n-grams, which stay codes if it is quantized.

    Raises
    ------
    InputError
        If the file is no model of fastText, is cut short, or has labels: a classifier.
    StoreError
        If the rows take more memory than is free.
    """
    header = read_header(f, url)
    words, counts = read_words(f, url, header.words)
    buckets = read_buckets(f, url, header.pruned, header.bucket)
    (quantized,) = unpack(f, url, KIND)
    if quantized:
        own, features = _read_quantized(f, url, header, buckets)
    elif buckets is not None:
        raise no_model(url, "has a pruned dictionary, and is not quantized")
    else:
        own, features = _read_rows(f, url, header)
    check_rows(url, words, own)
    vocabulary = Vocabulary.from_words(words, counts)
    if features is not None:
        _compose(own, vocabulary, features)
        check_rows(url, words, own)
    return Vectors(vocabulary, own, url=url, features=features)


def write_fasttext(vectors: Vectors, f: BinaryIO) -> None:
    """Write a model that fastText and gensim load, block by block.

    A word's own row is computed such that its mean with the rows of the word's n-grams is the word's vector. Rows of
    buckets without an n-gram of the text are zeros. The output table is written if the model has a row of it for each
    word. It is zeros otherwise: the inner nodes of a tree are not fastText's, whose tree breaks ties differently. A
    count of 0, as in models from files without counts, becomes 1, because gensim would leave the word out. The n-grams
    that a pruned model has left out are zeros too: fastText's vectors of unseen words are then shorter than ours, with
    the same cosines.

    Raises
    ------
    InputError
        If a word is empty or holds whitespace or NUL; or if the model has a table of features.
    """
    ngrams, columns = _written_ngrams(vectors, pruned=False), vectors.vector_size
    write_header(vectors, None if ngrams is None else ngrams.keys.ngrams, -1, f)
    f.write(KIND.pack(False) + SHAPE.pack(len(vectors) + (0 if ngrams is None else ngrams.keys.ngrams.bucket), columns))
    for own in _own_rows(vectors, ngrams):
        write_numbers(f, own)
    if ngrams is not None:
        for part in _slices(ngrams.keys.ngrams.bucket, columns):
            rows = ngrams.keys.find_rows(np.arange(part.start, part.stop, dtype=np.int32))
            written = np.zeros((len(rows), columns), np.float32)
            written[rows >= 0] = ngrams.rows[rows[rows >= 0]]
            write_numbers(f, written)
    output = vectors.output_rows()
    f.write(KIND.pack(False) + SHAPE.pack(len(vectors), columns))
    for ids in vectors.slices():
        shape = (ids.stop - ids.start, columns)
        write_numbers(f, np.zeros(shape, np.float32) if output is None else output[ids])


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
    ngrams, columns = _written_ngrams(vectors, pruned=True), vectors.vector_size
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
    coded = [*(book.encode(rows) for rows in _own_rows(vectors, ngrams)), *coded]
    if ngrams is None:
        write_header(vectors, None, -1, f)
    else:
        buckets = ngrams.keys.buckets
        write_header(vectors, ngrams.keys.ngrams, len(buckets), f)
        write_numbers(f, np.stack([buckets, np.arange(len(buckets), dtype=np.int32)], axis=1))
    _write_codes(book, CodedRows.joined(coded), f)
    f.write(KIND.pack(False) + SHAPE.pack(0, columns))


def _read_rows(f: BinaryIO, url: str, header: Header) -> tuple[Float32Array, FeatureVectors | None]:
    """Read the own rows of words, and the rows of buckets."""
    rows, columns = unpack(f, url, SHAPE)
    _check_shape(url, header, rows, columns, header.bucket)
    check_room((rows, 4 * columns + 8), ..., 1, url)
    own = _read_numbers(f, url, header.words, columns)
    if header.ngrams is None:
        return own, None
    return own, _read_ngrams(f, url, header.ngrams, columns)


def _read_ngrams(f: BinaryIO, url: str, ngrams: HashedNGrams, columns: int) -> FeatureVectors:
    """Read the rows of buckets, without zeros. They move to their final positions, and are never in memory twice."""
    rows, trained = np.empty((ngrams.bucket, columns), "<f4"), [np.zeros(0, np.int64)]
    n = 0
    for part in _slices(ngrams.bucket, columns):
        block = rows[n : n + part.stop - part.start]
        _read_into(f, url, block)
        if not np.isfinite(block).all():
            raise InputError(f"A row of n-grams in {url} is not finite.", "Train again with a lower learning rate.")
        nonzero = np.flatnonzero(block.any(axis=1))
        block[: len(nonzero)] = block[nonzero]
        trained.append(part.start + nonzero)
        n += len(nonzero)
    rows.resize((n, columns), refcheck=False)  # frees the memory of the other rows
    keys = FeatureKeys(ngrams=ngrams, buckets=np.concatenate(trained).astype(np.int32))
    return FeatureVectors(keys, rows.astype(np.float32, copy=False))


def _read_quantized(
    f: BinaryIO, url: str, header: Header, buckets: Int32Array | None
) -> tuple[Float32Array, FeatureVectors | None]:
    """Read the own rows of words, and codes of the rows of `buckets`; of all buckets if it is None."""
    coded = read_codes(f, url, header.dim)
    _check_shape(url, header, *coded.shape, header.bucket if buckets is None else len(buckets))
    check_room((header.words, 4 * coded.columns + 8), ..., 1, url)
    own = coded[: header.words]
    if header.ngrams is None:
        return own, None
    kept = np.arange(header.bucket, dtype=np.int32) if buckets is None else buckets
    keys = FeatureKeys(ngrams=header.ngrams, buckets=kept, pruned=buckets is not None)
    return own, FeatureVectors(keys, coded.after(header.words))


def _check_shape(url: str, header: Header, rows: int, columns: int, buckets: int) -> None:
    """Refuse a matrix that does not fit the words; if words have no n-grams, it may have rows of buckets or not."""
    least = header.words + (0 if header.ngrams is None else buckets)
    if columns != header.dim or not least <= rows <= header.words + buckets:
        raise no_model(url, f"holds a table of {rows} rows and {columns} columns")


def _read_numbers(f: BinaryIO, url: str, n: int, columns: int) -> Float32Array:
    rows = np.empty((n, columns), "<f4")
    for part in _slices(n, columns):
        _read_into(f, url, rows[part])
    return rows.astype(np.float32, copy=False)


def _read_into(f: BinaryIO, url: str, rows: Float32Array) -> None:
    """Read numbers into rows, a block at once: files of stores hold the bytes of a read a second time."""
    if f.readinto(rows.reshape(-1).view(np.uint8).data) != rows.nbytes:  # type: ignore[attr-defined]
        raise no_model(url, "is cut short")


def _sample(vectors: Vectors, ngrams: FeatureVectors | None) -> Float32Array:
    """Return a sample of the rows of words, and of as many rows of n-grams."""
    sample = [np.zeros((0, vectors.vector_size), np.float32), *_spread(_own_rows(vectors, ngrams), len(vectors))]
    if ngrams is not None:
        sample += _spread(_rows_of(ngrams), len(ngrams.keys))
    return np.concatenate(sample)


def _spread(pieces: Iterable[Float32Array], n: int) -> Iterator[Float32Array]:
    """Yield at most about _SAMPLE of n rows, which come in pieces, at even distances."""
    return (rows[:: -(-n // _SAMPLE)] for rows in pieces)


def _rows_of(ngrams: FeatureVectors) -> Iterator[Float32Array]:
    """Yield the rows of n-grams."""
    return (np.asarray(ngrams.rows[part]) for part in _slices(len(ngrams.keys), ngrams.vector_size))


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
        raise no_model(url, f"declares {size} codes of {n} rows and {columns} columns")
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
        raise no_model(url, f"does not number the rows of {pruned} n-grams of {bucket}")
    of_rows = np.empty(pruned, np.int32)
    of_rows[rows] = buckets
    return of_rows


def _compose(own: Float32Array, vocabulary: Vocabulary, features: FeatureVectors) -> None:
    """Replace the own rows of words by their vectors, in place."""
    for ids in _words_at_once(vocabulary, features.keys.ngrams.maxn, own.shape[1]):
        ngrams = _features_of(features.keys, vocabulary, ids)
        with np.errstate(over="ignore", invalid="ignore"):  # `check_rows` finds vectors that are not finite
            own[ids] = compose_vectors(ngrams, own[ids], lambda rows: np.asarray(features.rows[rows]))


def _own_rows(vectors: Vectors, ngrams: FeatureVectors | None) -> Iterator[Float32Array]:
    """Yield the own rows of words in order of ids: with the rows of their n-grams they make the vectors."""
    if ngrams is None:
        yield from map(vectors.rows, vectors.slices())
        return
    for ids in _words_at_once(vectors.vocabulary, ngrams.keys.ngrams.maxn, vectors.vector_size):
        of_words = _features_of(ngrams.keys, vectors.vocabulary, ids)
        yield solve_own_rows(of_words, vectors.rows(ids), lambda rows: np.asarray(ngrams.rows[rows]))


def _written_ngrams(vectors: Vectors, *, pruned: bool) -> FeatureVectors | None:
    """Return the n-grams of a model for a fastText file, None if it has none; raises as `write_fasttext` does.

    If they are not `pruned`, n-grams without a row count as zeros.

    The rows of n-grams are read into memory if they take less than half of the free memory: each word needs several.
    """
    refuse_words(vectors, _SEPARATORS, "fastText's format")
    features = vectors.features
    if features is not None and features.keys.columns:
        raise InputError(
            "fastText's format has n-grams, but no table of features.",
            "Export as binary or parquet, which hold the vectors of words alone, or train without features.",
        )
    if features is None or not features.spells:
        return None
    rows = features.rows
    fits = isinstance(rows, StoredRows) and rows.nbytes < free_memory() / 2
    return FeatureVectors(replace(features.keys, pruned=pruned), rows[:] if fits else rows)


def _words_at_once(vocabulary: Vocabulary, maxn: int, columns: int) -> Iterator[slice]:
    """Cut a vocabulary into ranges whose rows and n-grams take little memory."""
    for part in _slices(len(vocabulary), columns):
        start = part.start
        while start < part.stop:
            most = vocabulary.offsets[start] + NGRAMS_AT_ONCE // maxn
            end = int(np.searchsorted(vocabulary.offsets, most, side="right")) - 1
            yield slice(start, start := min(max(start + 1, end), part.stop))


def _features_of(keys: FeatureKeys, vocabulary: Vocabulary, ids: slice) -> WordFeatures:
    """Return the n-grams of a range of words, whose own rows weigh as much as one n-gram."""
    starts, buckets = hash_stored_words(vocabulary.data, vocabulary.offsets[ids.start : ids.stop + 1], *keys.ngrams)
    return keys.join_ngrams(starts, buckets, np.ones(len(starts) - 1, np.float32))


def _slices(n: int, columns: int) -> Iterator[slice]:
    """Cut the numbers of n rows into ranges whose rows take some 64 MB."""
    return cut(n, max(1, ROW_BYTES_AT_ONCE // (4 * columns)))
