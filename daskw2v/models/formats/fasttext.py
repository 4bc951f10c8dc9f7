"""Reads and writes fastText's models, the files of its save_model: words, vectors, and the rows of n-grams.

A word's vector is the mean of its own row and of its n-grams' rows (Bojanowski et al. 2017, section 3.2; there it is
their sum). A file has a row for each word, then one for each bucket of n-grams, and then what words were trained
against. A quantized model, .ftz, has codes of these rows, and may have the most frequent n-grams alone (Joulin et al.
2016). fastText's own program makes such models of classifiers; the program and its library read models of word vectors
too.
"""

import math
import os
import struct
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from daskw2v.config.params import Params
from daskw2v.errors import InputError
from daskw2v.features.keys import FeatureKeys, HashedNGrams
from daskw2v.features.ngram_kernel import hash_stored_words
from daskw2v.features.words import WordFeatures, compose_vectors, solve_own_rows
from daskw2v.models.formats.safetensors import write_numbers
from daskw2v.models.formats.word2vec import check_rows, check_words
from daskw2v.models.queries.features import FeatureVectors
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.blocks import cut
from daskw2v.models.stored.quantization import CENTROIDS, Codebook, CodedRows, check_part_size
from daskw2v.models.stored.tables import StoredRows
from daskw2v.objectives.settings import OBJECTIVES, ContextsTogether
from daskw2v.sampling.settings import NegativeSampling
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
_SAMPLE = 1 << 15  # rows of words, and as many of n-grams, that the codebook is made from
MAGIC = struct.pack("<i", 793712314)
_KIND, _SHAPE = struct.Struct("<?"), struct.Struct("<qq")  # of a matrix: whether it is quantized; rows and columns
_VERSION = 12
_CBOW, _SKIPGRAM, _SUPERVISED = 1, 2, 3
_HIERARCHICAL, _NEGATIVE = 1, 2  # losses
_NO_NGRAMS = HashedNGrams(bucket=0)
_LR_UPDATES = 100  # the default of fastText's program
_HEADER = struct.Struct("<i" + "i" * 12 + "d")  # version, then the settings that the program trained with
_WORDS = struct.Struct("<iiiqq")  # entries, words, labels, tokens, entries of a pruned index
_COUNT = struct.Struct("<qb")  # of a word, and whether it is a label
_MAX_INT32 = 2**31 - 1
_MAX_WORD_BYTES, _BLOCK = 1 << 16, 1 << 16  # bytes of a word, and bytes of words read at once
_MAX_NGRAM = 255  # characters, as in Params
_WORD_MEMORY = 100  # of memory that a short word takes


class _Header(NamedTuple):
    """The settings of a fastText file's header that reading the file needs."""

    dim: int
    bucket: int  # number of buckets
    ngrams: HashedNGrams | None  # None if words have no n-grams
    words: int
    pruned: int  # number of n-grams that a pruned model has; -1 in other models


def read_fasttext(f: BinaryIO, url: str) -> Vectors:
    """Read the words, counts and vectors of a model, and the rows of its n-grams, which stay codes if it is quantized.

    Raises
    ------
    InputError
        If the file is no model of fastText, is cut short, or has labels: a classifier; or if a vector is not finite.
    StoreError
        If the rows take more memory than is free.
    """
    header = _read_header(f, url)
    words, counts = read_words(f, url, header.words)
    buckets = read_buckets(f, url, header.pruned, header.bucket)
    (quantized,) = _unpack(f, url, _KIND)
    if quantized:
        word_rows, features = _read_quantized(f, url, header, buckets)
    elif buckets is not None:
        raise _malformed(url, "has a pruned dictionary, and is not quantized")
    else:
        word_rows, features = _read_rows(f, url, header)
    check_rows(url, words, word_rows)
    vocabulary = Vocabulary.from_words(words, counts)
    if features is not None:
        _compose_in_place(word_rows, vocabulary, features)
        check_rows(url, words, word_rows)
    return Vectors(vocabulary, word_rows, url=url, features=features)


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
    ngrams, columns = _exported_ngrams(vectors, pruned=False), vectors.vector_size
    hashed = _NO_NGRAMS if ngrams is None else ngrams.keys.ngrams
    _write_header(vectors, hashed, -1, f)
    f.write(_KIND.pack(False) + _SHAPE.pack(len(vectors) + hashed.bucket, columns))
    for word_rows in _own_rows(vectors, ngrams):
        write_numbers(f, word_rows)
    if ngrams is not None:
        for part in _cut_rows(hashed.bucket, columns):
            rows = ngrams.keys.find_rows(np.arange(part.start, part.stop, dtype=np.int32))
            written = np.zeros((len(rows), columns), np.float32)
            written[rows >= 0] = ngrams.rows[rows[rows >= 0]]
            write_numbers(f, written)
    output = vectors.output_rows()
    f.write(_KIND.pack(False) + _SHAPE.pack(len(vectors), columns))
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
        If `part_size` is no integer of 1 to 64.
    InputError
        As `write_fasttext`; and if there are more codes than the format counts.
    """
    check_part_size(part_size)
    ngrams, columns = _exported_ngrams(vectors, pruned=True), vectors.vector_size
    rows = len(vectors) + (0 if ngrams is None else len(ngrams.keys))
    if rows * -(-columns // part_size) > _MAX_INT32:
        problem = f"{rows} rows of {columns} dimensions have more codes than the {_MAX_INT32} of fastText's format."
        raise InputError(problem, "Give a larger part_size, or prune the model.")
    book = Codebook.fit(_sample_rows(vectors, ngrams), part_size)
    coded = [book.encode(np.zeros((0, columns), np.float32))]
    if ngrams is not None:
        coded += [book.encode(rows) for rows in _ngram_rows(ngrams)]
        ngrams = FeatureVectors(ngrams.keys, CodedRows.concatenate(coded))
    coded = [*(book.encode(rows) for rows in _own_rows(vectors, ngrams)), *coded]
    if ngrams is None:
        _write_header(vectors, _NO_NGRAMS, -1, f)
    else:
        buckets = ngrams.keys.buckets
        _write_header(vectors, ngrams.keys.ngrams, len(buckets), f)
        write_numbers(f, np.stack([buckets, np.arange(len(buckets), dtype=np.int32)], axis=1))
    _write_codes(book, CodedRows.concatenate(coded), f)
    f.write(_KIND.pack(False) + _SHAPE.pack(0, columns))


def _read_rows(f: BinaryIO, url: str, header: _Header) -> tuple[Float32Array, FeatureVectors | None]:
    """Read the own rows of words, shape (V, D), and the rows of n-grams; None if words have no n-grams."""
    rows, columns = _unpack(f, url, _SHAPE)
    _check_shape(url, header, rows, columns, header.bucket)
    check_room((rows, 4 * columns + 8), ..., 1, url)
    word_rows = _read_numbers(f, url, header.words, columns)
    if header.ngrams is None:
        return word_rows, None
    return word_rows, _read_ngrams(f, url, header.ngrams, columns)


def _read_ngrams(f: BinaryIO, url: str, ngrams: HashedNGrams, columns: int) -> FeatureVectors:
    """Read the rows of n-gram buckets, and keep those that are not zeros, in place: no row is in memory twice."""
    rows, trained = np.empty((ngrams.bucket, columns), "<f4"), [np.zeros(0, np.int64)]
    n = 0
    for part in _cut_rows(ngrams.bucket, columns):
        block = rows[n : n + part.stop - part.start]
        _read_into(f, url, block)
        if not np.isfinite(block).all():
            raise InputError(f"A row of n-grams in {url} is not finite.", "Train again with a lower learning rate.")
        nonzero = np.flatnonzero(block.any(axis=1))
        block[: len(nonzero)] = block[nonzero]
        trained.append(part.start + nonzero)
        n += len(nonzero)
    rows.resize((n, columns), refcheck=False)  # frees the memory of the rows of zeros
    keys = FeatureKeys(ngrams=ngrams, buckets=np.concatenate(trained).astype(np.int32))
    return FeatureVectors(keys, rows.astype(np.float32, copy=False))


def _read_quantized(
    f: BinaryIO, url: str, header: _Header, buckets: Int32Array | None
) -> tuple[Float32Array, FeatureVectors | None]:
    """Read the own rows of words, decoded, and the coded rows of `buckets`, None for all buckets of the header."""
    coded = read_codes(f, url, header.dim)
    _check_shape(url, header, *coded.shape, header.bucket if buckets is None else len(buckets))
    check_room((header.words, 4 * coded.columns + 8), ..., 1, url)
    word_rows = coded[: header.words]
    if header.ngrams is None:
        return word_rows, None
    known_buckets = np.arange(header.bucket, dtype=np.int32) if buckets is None else buckets
    keys = FeatureKeys(ngrams=header.ngrams, buckets=known_buckets, pruned=buckets is not None)
    return word_rows, FeatureVectors(keys, coded.rows_from(header.words))


def _check_shape(url: str, header: _Header, rows: int, columns: int, buckets: int) -> None:
    """Raise InputError if a table does not fit the header; without n-grams, the `buckets` last rows are optional."""
    min_rows = header.words + (0 if header.ngrams is None else buckets)
    if columns != header.dim or not min_rows <= rows <= header.words + buckets:
        raise _malformed(url, f"holds a table of {rows} rows and {columns} columns")


def _read_numbers(f: BinaryIO, url: str, n: int, columns: int) -> Float32Array:
    """Read n rows of float32, shape (n, columns)."""
    rows = np.empty((n, columns), "<f4")
    for part in _cut_rows(n, columns):
        _read_into(f, url, rows[part])
    return rows.astype(np.float32, copy=False)


def _read_into(f: BinaryIO, url: str, rows: Float32Array) -> None:
    """Fill rows with the next numbers of a file. Pass a small block: files of stores hold its bytes a second time."""
    if f.readinto(rows.reshape(-1).view(np.uint8).data) != rows.nbytes:  # type: ignore[attr-defined]
        raise _malformed(url, "is cut short")


def _sample_rows(vectors: Vectors, ngrams: FeatureVectors | None) -> Float32Array:
    """Return a sample of the own rows of words and of the rows of n-grams, shape (n, D), to fit a codebook to."""
    sample = [np.zeros((0, vectors.vector_size), np.float32), *_thin_out(_own_rows(vectors, ngrams), len(vectors))]
    if ngrams is not None:
        sample += _thin_out(_ngram_rows(ngrams), len(ngrams.keys))
    return np.concatenate(sample)


def _thin_out(blocks: Iterable[Float32Array], n: int) -> Iterator[Float32Array]:
    """Yield evenly spaced rows of each block, about `_SAMPLE` of the n rows of all blocks; all rows if n is smaller."""
    return (rows[:: -(-n // _SAMPLE)] for rows in blocks)


def _ngram_rows(ngrams: FeatureVectors) -> Iterator[Float32Array]:
    """Yield the rows of n-grams in blocks, shape (n, D) float32."""
    return (np.asarray(ngrams.rows[part]) for part in _cut_rows(len(ngrams.keys), ngrams.vector_size))


def _write_codes(book: Codebook, rows: CodedRows, f: BinaryIO) -> None:
    """Write a quantized table: codes and centroids of the directions of rows, then those of the rows' lengths."""
    (n, columns), (parts, part_size, _) = rows.shape, book.directions.shape
    last_size = columns - (parts - 1) * part_size
    f.write(_KIND.pack(True) + _CODES.pack(True, n, columns, rows.directions.size))
    f.write(rows.directions.data)
    f.write(_BOOK.pack(columns, parts, part_size, last_size))
    for number, centroids in enumerate(book.directions):
        write_numbers(f, centroids[: part_size if number < parts - 1 else last_size].T)
    f.write(rows.lengths.data)
    f.write(_BOOK.pack(1, 1, 1, 1))
    write_numbers(f, book.lengths)


def read_codes(f: BinaryIO, url: str, dim: int) -> CodedRows:
    """Read a quantized table: the rows of words and n-grams, of `dim` columns; raises as `read_fasttext` does."""
    has_lengths, n, columns, size = _unpack(f, url, _CODES)
    parts = size // n if n > 0 else 0
    if columns != dim or n < 0 or size != n * parts or (n and not 1 <= parts <= columns):
        raise _malformed(url, f"declares {size} codes of {n} rows and {columns} columns")
    directions = _read_uint8(f, url, (n, parts))
    books = _read_book(f, url, columns, parts)
    lengths, length_centroids = np.zeros(n, np.uint8), np.ones(CENTROIDS, np.float32)
    if has_lengths:
        lengths, length_centroids = _read_uint8(f, url, (n,)), _read_book(f, url, 1, 1)[0, 0]
    largest = float(np.abs(books).max(initial=0)) * float(np.abs(length_centroids).max())
    if largest > float(np.finfo(np.float32).max):
        raise _malformed(url, f"has codes of numbers up to {largest:.1e}")
    return CodedRows(Codebook(books, length_centroids), directions.reshape(n, len(books)), lengths, columns)


def _read_uint8(f: BinaryIO, url: str, shape: tuple[int, ...]) -> UInt8Array:
    """Read an array of uint8 of this shape; raises as `_read_exactly` does."""
    return np.frombuffer(_read_exactly(f, url, math.prod(shape)), np.uint8).reshape(shape)


def _read_book(f: BinaryIO, url: str, columns: int, parts: int) -> Float32Array:
    """Read the centroids of each part of a row, shape (parts, part_size, 256) float32; `parts` 0 allows any number.

    Where one part holds all columns, the size that the file names for it may be larger: fastText does not use the rest.
    """
    n_columns, n, part_size, last_size = _unpack(f, url, _BOOK)
    is_valid = n_columns == columns and 1 <= last_size <= part_size and (n - 1) * part_size + last_size == columns
    if not is_valid or (parts and n != parts):
        raise _malformed(url, f"cuts {n_columns} columns into {n} parts of {part_size}, the last of {last_size}")
    books = np.zeros((n, min(part_size, columns), CENTROIDS), np.float32)
    for number, book in enumerate(books):
        width = part_size if number < n - 1 else last_size
        content = _read_exactly(f, url, 4 * width * CENTROIDS)
        book[:width] = np.frombuffer(content, "<f4").reshape(CENTROIDS, width).T
    if not np.isfinite(books).all():
        raise _malformed(url, "has a centroid that is not finite")
    return books


def read_buckets(f: BinaryIO, url: str, pruned: int, bucket: int) -> Int32Array | None:
    """Read the n-gram bucket of each row of a pruned model, shape (pruned,) int32; None if `pruned` is below 0."""
    if pruned < 0:
        return None
    content = _read_exactly(f, url, pruned * 2 * _PRUNED.itemsize)
    buckets, rows = np.frombuffer(content, _PRUNED).reshape(-1, 2).T
    sorted_buckets = np.sort(buckets)
    out_of_range = pruned > 0 and not 0 <= sorted_buckets[0] <= sorted_buckets[-1] < bucket
    if out_of_range or not np.diff(sorted_buckets).all() or not np.array_equal(np.sort(rows), np.arange(pruned)):
        raise _malformed(url, f"does not number the rows of {pruned} n-grams of {bucket}")
    buckets_by_row = np.empty(pruned, np.int32)
    buckets_by_row[rows] = buckets
    return buckets_by_row


def _compose_in_place(word_rows: Float32Array, vocabulary: Vocabulary, features: FeatureVectors) -> None:
    """Replace the own rows of words, shape (V, D), by the words' vectors, in place."""
    for ids in _cut_words(vocabulary, features.keys.ngrams.maxn, word_rows.shape[1]):
        ngrams = _ngrams_of_words(features.keys, vocabulary, ids)
        with np.errstate(over="ignore", invalid="ignore"):  # `check_rows` finds vectors that are not finite
            word_rows[ids] = compose_vectors(ngrams, word_rows[ids], lambda rows: np.asarray(features.rows[rows]))


def _own_rows(vectors: Vectors, ngrams: FeatureVectors | None) -> Iterator[Float32Array]:
    """Yield the own rows of words in blocks, in order of ids: their means with the rows of n-grams are the vectors."""
    if ngrams is None:
        yield from map(vectors.rows, vectors.slices())
        return
    for ids in _cut_words(vectors.vocabulary, ngrams.keys.ngrams.maxn, vectors.vector_size):
        word_ngrams = _ngrams_of_words(ngrams.keys, vectors.vocabulary, ids)
        yield solve_own_rows(word_ngrams, vectors.rows(ids), lambda rows: np.asarray(ngrams.rows[rows]))


def _exported_ngrams(vectors: Vectors, *, pruned: bool) -> FeatureVectors | None:
    """Return the n-grams of a model for a fastText file, None if it has none; raises as `write_fasttext` does.

    N-grams without a row are left out of means if `pruned`, and count as zeros otherwise.

    The rows of n-grams are read into memory if they take less than half of the free memory: each word needs several.
    """
    check_words(vectors, _SEPARATORS, "fastText's format")
    features = vectors.features
    if features is not None and features.keys.columns:
        raise InputError(
            "fastText's format has n-grams, but no table of features.",
            "Export as binary or parquet, which hold the vectors of words alone, or train without features.",
        )
    if features is None or not features.has_ngrams:
        return None
    rows = features.rows
    fits = isinstance(rows, StoredRows) and rows.nbytes < free_memory() / 2
    return FeatureVectors(replace(features.keys, pruned=pruned), rows[:] if fits else rows)


def _cut_words(vocabulary: Vocabulary, maxn: int, columns: int) -> Iterator[slice]:
    """Yield ranges of the ids of a vocabulary whose rows and n-grams of up to `maxn` characters take little memory."""
    for part in _cut_rows(len(vocabulary), columns):
        start = part.start
        while start < part.stop:
            max_offset = vocabulary.offsets[start] + NGRAMS_AT_ONCE // maxn
            end = int(np.searchsorted(vocabulary.offsets, max_offset, side="right")) - 1
            yield slice(start, start := min(max(start + 1, end), part.stop))


def _ngrams_of_words(keys: FeatureKeys, vocabulary: Vocabulary, ids: slice) -> WordFeatures:
    """Return the n-grams of the words of a range of ids; a word's own row weighs as much as one n-gram."""
    starts, buckets = hash_stored_words(vocabulary.data, vocabulary.offsets[ids.start : ids.stop + 1], *keys.ngrams)
    return keys.join_ngrams(starts, buckets, np.ones(len(starts) - 1, np.float32))


def _cut_rows(n: int, columns: int) -> Iterator[slice]:
    """Yield ranges of the indices of n rows; the rows of a range take about 64 MB."""
    return cut(n, max(1, ROW_BYTES_AT_ONCE // (4 * columns)))


def _read_header(f: BinaryIO, url: str) -> _Header:
    """Read and check the header of a fastText file; raises as `read_fasttext` does."""
    magic = _read_exactly(f, url, len(MAGIC))
    version, dim, _, _, _, _, _, _, model, bucket, minn, maxn, _, _ = _unpack(f, url, _HEADER)
    if magic != MAGIC or version != _VERSION:
        raise _malformed(url, f"begins with {int.from_bytes(magic, 'little', signed=True)} and version {version}")
    n_entries, words, labels, _, pruned = _unpack(f, url, _WORDS)
    if model == _SUPERVISED or labels:
        raise InputError(f"{url} is a classifier of fastText.", "Give a model of skipgram or cbow.")
    is_valid = n_entries == words >= 0 and 1 <= dim <= 1 << 16 and -1 <= pruned <= bucket and maxn <= _MAX_NGRAM
    if not is_valid or bucket < 0:
        ngrams = f"{bucket} buckets, of which {pruned} are left, and n-grams of {maxn} characters"
        raise _malformed(url, f"declares {words} words, {dim} dimensions, {ngrams}")
    check_room((words, 4 * dim + _WORD_MEMORY), ..., 1, url)
    has_ngrams = bucket > 0 and maxn >= max(1, minn)
    return _Header(dim, bucket, HashedNGrams(max(1, minn), maxn, bucket) if has_ngrams else None, words, pruned)


def read_words(f: BinaryIO, url: str, n: int) -> tuple[list[str], list[int]]:
    """Read n words and their counts from a fastText file, behind its header; raises as `read_fasttext` does."""
    words, counts = list[str](), list[int]()
    buffer, start = b"", 0
    while len(words) < n:
        end = buffer.find(b"\0", start)
        if (len(buffer) if end < 0 else end) - start > _MAX_WORD_BYTES:
            raise _malformed(url, f"has no end of word {len(words) + 1}")
        if end < 0 or end + 1 + _COUNT.size > len(buffer):
            block = f.read(_BLOCK)
            if not block:
                raise _malformed(url, f"has no end of word {len(words) + 1}" if end < 0 else "is cut short")
            buffer, start = buffer[start:] + block, 0
            continue
        try:
            words.append(buffer[start:end].decode())
        except UnicodeDecodeError:
            problem = f"{url} has a word that is not UTF-8: {buffer[start:end][:60]!r}."
            raise InputError(problem, "Train it on text in UTF-8, or skip it.") from None
        count, _ = _COUNT.unpack_from(buffer, end + 1)
        if count < 0:
            raise _malformed(url, f"counts {count} of {words[-1]!r}")
        counts.append(count)
        start = end + 1 + _COUNT.size
    f.seek(start - len(buffer), os.SEEK_CUR)  # to the end of the words
    return words, counts


def _write_header(vectors: Vectors, ngrams: HashedNGrams, pruned: int, f: BinaryIO) -> None:
    """Write the header of a fastText file: the settings of a model's training, its words and their counts.

    Parameters
    ----------
    vectors
        The model.
    ngrams
        N-grams of its words.
    pruned
        Number of n-grams of a pruned model; -1 for a model that is not pruned.
    f
        The file.
    """
    params = {**Params().as_dict(), **vectors.metadata.get("params", {})}
    objective = OBJECTIVES.find(params["objective"])
    names = "window", "epochs", "min_count", "negative"
    *numbers, negative = (min(int(params[name]), _MAX_INT32) for name in names)
    kind = _CBOW if issubclass(objective, ContextsTogether) else _SKIPGRAM
    negative, loss = (negative, _NEGATIVE) if issubclass(objective, NegativeSampling) else (0, _HIERARCHICAL)
    settings = (vectors.vector_size, *numbers, negative, 1, loss, kind, ngrams.bucket, ngrams.minn, ngrams.maxn)
    f.write(MAGIC + _HEADER.pack(_VERSION, *settings, _LR_UPDATES, params["sample"]))
    counts = np.maximum(1, vectors.vocabulary.counts)
    f.write(_WORDS.pack(len(counts), len(counts), 0, int(counts.sum()), pruned))
    for word, count in zip(vectors, map(int, counts), strict=True):
        f.write(word.encode() + b"\0" + _COUNT.pack(count, 0))


def _read_exactly(f: BinaryIO, url: str, size: int) -> bytes:
    """Read `size` bytes of a file, if memory has room for them.

    Raises
    ------
    InputError
        If the file has fewer.
    StoreError
        If the bytes exceed the free memory.
    """
    check_room((size,), ..., 1, url)
    content = f.read(size)
    if len(content) != size:
        raise _malformed(url, "is cut short")
    return content


def _unpack(f: BinaryIO, url: str, layout: struct.Struct) -> tuple[Any, ...]:
    """Read the next values of a file in a `struct` layout; raises as `_read_exactly` does."""
    return layout.unpack(_read_exactly(f, url, layout.size))


def _malformed(url: str, problem: str) -> InputError:
    """Return the error for a file that is no model of fastText; `problem` is a predicate, such as "is cut short"."""
    return InputError(f"{url} {problem}.", "It is damaged, or no model of fastText: copy it again.")
