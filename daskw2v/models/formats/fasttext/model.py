"""Reads and writes fastText's models: words, vectors, and the rows of n-grams."""

from dataclasses import replace
from typing import BinaryIO

import numpy as np

from daskw2v.errors import InputError
from daskw2v.features.keys import FeatureKeys, HashedNGrams
from daskw2v.models.formats.fasttext.composing import compose, own_rows_of, slices_of, written_ngrams
from daskw2v.models.formats.fasttext.layout import (
    KIND,
    SHAPE,
    Header,
    no_model,
    read_header,
    read_words,
    unpack,
    write_header,
    write_words,
)
from daskw2v.models.formats.fasttext.quantized import read_buckets, read_codes
from daskw2v.models.formats.safetensors import write_numbers
from daskw2v.models.formats.word2vec import check_rows
from daskw2v.models.queries.features import FeatureVectors
from daskw2v.models.queries.vectors import Vectors
from daskw2v.store.limits import check_room
from daskw2v.types import Float32Array, Int32Array
from daskw2v.vocabulary.vocabulary import Vocabulary


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
        compose(own, vocabulary, features)
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
    ngrams, columns = written_ngrams(vectors), vectors.vector_size
    if ngrams is not None:
        ngrams = FeatureVectors(replace(ngrams.keys, pruned=False), ngrams.rows)
    write_header(vectors, HashedNGrams(bucket=0) if ngrams is None else ngrams.keys.ngrams, f)
    write_words(vectors.vocabulary, f)
    f.write(KIND.pack(False) + SHAPE.pack(len(vectors) + (0 if ngrams is None else ngrams.keys.ngrams.bucket), columns))
    for rows in own_rows_of(vectors, ngrams):
        write_numbers(f, rows)
    if ngrams is not None:
        _write_buckets(ngrams, f)
    output = vectors.output_rows()
    f.write(KIND.pack(False) + SHAPE.pack(len(vectors), columns))
    for ids in vectors.slices():
        shape = (ids.stop - ids.start, columns)
        write_numbers(f, np.zeros(shape, np.float32) if output is None else output[ids])


def _write_buckets(ngrams: FeatureVectors, f: BinaryIO) -> None:
    """Write the rows of all buckets."""
    keys = ngrams.keys
    for part in slices_of(keys.ngrams.bucket, ngrams.vector_size):
        rows = keys.rows_of(np.arange(part.start, part.stop, dtype=np.int32))
        written = np.zeros((len(rows), ngrams.vector_size), np.float32)
        written[rows >= 0] = ngrams.rows[rows[rows >= 0]]
        write_numbers(f, written)


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
    for part in slices_of(ngrams.bucket, columns):
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
    for part in slices_of(n, columns):
        _read_into(f, url, rows[part])
    return rows.astype(np.float32, copy=False)


def _read_into(f: BinaryIO, url: str, rows: Float32Array) -> None:
    """Read numbers into rows, a block at once: files of stores hold the bytes of a read a second time."""
    if f.readinto(rows.reshape(-1).view(np.uint8).data) != rows.nbytes:  # type: ignore[attr-defined]
        raise no_model(url, "is cut short")
