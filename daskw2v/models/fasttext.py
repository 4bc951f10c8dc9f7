"""The files of fastText's models, which its save_model writes: read, and written for it and for gensim.

A word's vector is the mean of its own row and of its n-grams' rows (Bojanowski et al. 2017, section 3.2; there it is
their sum). A file has a row for each word, then one for each bucket of n-grams, and then what words were trained
against.
"""

import struct
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from daskw2v.config.params import Params
from daskw2v.errors import InputError
from daskw2v.features.keys import FeatureKeys, NGrams
from daskw2v.features.ngram_kernel import ngrams_in
from daskw2v.features.words import WordFeatures, composed, own_rows
from daskw2v.models.composed import FeatureVectors
from daskw2v.models.ranking import cut
from daskw2v.models.rows import StoredRows
from daskw2v.models.safetensors import write_numbers
from daskw2v.models.vectors import Vectors
from daskw2v.models.word2vec import check_rows, refuse_words
from daskw2v.store.limits import check_room
from daskw2v.store.memory import free_memory
from daskw2v.types import Float32Array
from daskw2v.vocabulary.vocabulary import Vocabulary

MAGIC = struct.pack("<i", 793712314)
_VERSION = 12
_CBOW, _SKIPGRAM, _SUPERVISED = 1, 2, 3
_HIERARCHICAL, _NEGATIVE = 1, 2  # losses
_LR_UPDATES = 100  # the program's own
_HEADER = struct.Struct("<ii" + "i" * 12 + "d")  # magic, version, then the settings that the program trained with
_WORDS = struct.Struct("<iiiqq")  # entries, words, labels, tokens, entries of a pruned index
_COUNT = struct.Struct("<qb")  # of a word, and whether it is a label
_MATRIX = struct.Struct("<?qq")  # whether it is quantized, rows, columns
_LARGEST = 2**31 - 1
_LONGEST_WORD = 1 << 16
_LONGEST_NGRAM = 255  # characters, as in Params
_BYTES = 100  # of memory that a short word takes
_NGRAMS_AT_ONCE = 1 << 22
_ROWS_AT_ONCE = 64 << 20  # bytes
_SEPARATORS = r"^$|[ \t\n\r\v\f\0]"  # what ends a word of its text, and of its files


class _Header(NamedTuple):
    """What a file says of itself, as far as it is needed."""

    dim: int
    bucket: int  # rows of n-grams that it may have
    ngrams: NGrams | None  # None where words have none
    words: int


def read_fasttext(f: BinaryIO, url: str) -> Vectors:
    """Read the words, counts and vectors of a model, and the rows of its n-grams.

    Raises
    ------
    InputError
        If it is no such file, is cut short or quantized, or has labels: a classifier.
    StoreError
        If the rows take more memory than is free.
    """
    header = _read_header(f, url)
    words, counts = _read_words(f, url, header.words)
    quantized, rows, columns = _unpack(f, url, _MATRIX)
    if quantized:
        raise InputError(f"{url} is quantized.", "Give the model that it was made from.")
    n, most = header.words, header.words + header.bucket
    if columns != header.dim or not (n if header.ngrams is None else most) <= rows <= most:
        raise _no_model(url, f"holds a table of {rows} rows and {columns} columns")
    check_room((rows, 4 * columns + 8), ..., 1, url)
    matrix = _read_rows(f, url, n, columns)
    check_rows(url, words, matrix)
    vocabulary, features = Vocabulary.from_words(words, counts), None
    if header.ngrams is not None:
        features = _read_ngrams(f, url, header.ngrams, columns)
        _compose(matrix, vocabulary, features)
        check_rows(url, words, matrix)
    return Vectors(vocabulary, matrix, url=url, features=features)


def _read_header(f: BinaryIO, url: str) -> _Header:
    magic, version, dim, _, _, _, _, _, _, model, bucket, minn, maxn, _, _ = _unpack(f, url, _HEADER)
    if struct.pack("<i", magic) != MAGIC or version != _VERSION:
        raise _no_model(url, f"begins with {magic} and version {version}")
    size, words, labels, _, pruned = _unpack(f, url, _WORDS)
    if model == _SUPERVISED or labels:
        raise InputError(f"{url} is a classifier of fastText.", "Give a model of skipgram or cbow.")
    if pruned > 0:
        raise InputError(f"{url} has a pruned dictionary.", "Give the model that it was made from.")
    if size != words or words < 0 or not 1 <= dim <= 1 << 16 or bucket < 0 or maxn > _LONGEST_NGRAM:
        raise _no_model(
            url, f"tells of {words} words, {dim} dimensions, {bucket} buckets and n-grams of {maxn} characters"
        )
    check_room((words, 4 * dim + _BYTES), ..., 1, url)
    spells = bucket > 0 and maxn >= max(1, minn)
    return _Header(dim, bucket, NGrams(max(1, minn), maxn, bucket) if spells else None, words)


def _read_words(f: BinaryIO, url: str, n: int) -> tuple[list[str], list[int]]:
    words, counts = list[str](), list[int]()
    for _ in range(n):
        word = bytearray()
        while (byte := f.read(1)) != b"\0":
            if not byte or len(word) > _LONGEST_WORD:
                raise _no_model(url, f"has no end of word {len(words) + 1}")
            word += byte
        try:
            words.append(word.decode())
        except UnicodeDecodeError:
            raise InputError(
                f"{url} has a word that is not UTF-8: {bytes(word[:60])!r}.", "Train it on text in UTF-8, or skip it."
            ) from None
        count, _ = _unpack(f, url, _COUNT)
        if count < 0:
            raise _no_model(url, f"counts {count} of {words[-1]!r}")
        counts.append(count)
    return words, counts


def _read_rows(f: BinaryIO, url: str, n: int, columns: int) -> Float32Array:
    rows = np.empty((n, columns), "<f4")
    if f.readinto(rows.reshape(-1).view(np.uint8).data) != rows.nbytes:  # type: ignore[attr-defined]
        raise _no_model(url, "is cut short")
    return rows.astype(np.float32, copy=False)


def _read_ngrams(f: BinaryIO, url: str, ngrams: NGrams, columns: int) -> FeatureVectors:
    """Read the rows of buckets; those of zeros are left out, as `write_fasttext` adds them."""
    rows = _read_rows(f, url, ngrams.bucket, columns)
    for some in _slices(len(rows), columns):
        if not np.isfinite(rows[some]).all():
            raise InputError(f"A row of n-grams in {url} is not finite.", "Train again with a lower learning rate.")
    return FeatureVectors.of_buckets(ngrams, rows)


def _compose(own: Float32Array, vocabulary: Vocabulary, features: FeatureVectors) -> None:
    """Make vectors of the own rows of words, in place."""
    for some in _words_at_once(vocabulary, features.keys.ngrams.maxn, own.shape[1]):
        found = _features_of(features.keys, vocabulary, some)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is found at the end
            own[some] = composed(found, own[some], lambda rows: np.asarray(features.rows[rows]))


def _words_at_once(vocabulary: Vocabulary, maxn: int, columns: int) -> Iterator[slice]:
    """Cut a vocabulary into ranges whose rows and n-grams take little memory."""
    for some in _slices(len(vocabulary), columns):
        start = some.start
        while start < some.stop:
            most = vocabulary.offsets[start] + _NGRAMS_AT_ONCE // maxn
            end = int(np.searchsorted(vocabulary.offsets, most, side="right")) - 1
            yield slice(start, start := min(max(start + 1, end), some.stop))


def _features_of(keys: FeatureKeys, vocabulary: Vocabulary, some: slice) -> WordFeatures:
    """Return the n-grams of a range of words, whose own rows weigh as much as one of these."""
    bounds = vocabulary.offsets[some.start : some.stop + 1]
    starts, buckets = ngrams_in(vocabulary.data[bounds[0] : bounds[-1]], bounds - bounds[0], *keys.ngrams)
    ones = np.ones(len(starts) - 1, np.float32)
    return WordFeatures(starts, keys.rows_of(buckets), np.zeros(0, np.float32), ones)


def write_fasttext(vectors: Vectors, f: BinaryIO) -> None:
    """Write a model that fastText and gensim load, block by block.

    A word's own row is such that the mean of it and of its n-grams' rows is its vector. Rows of buckets that no n-gram
    of the text has are zeros. What words were trained against is written where the model has a row of it for each
    word, and zeros otherwise: the inner nodes of a tree are not fastText's, whose tree breaks ties differently.
    Counts of 0, of files without any, become 1: gensim would leave these words out.

    Raises
    ------
    InputError
        If a word is empty or holds whitespace or NUL; or if the model has a table of features.
    """
    refuse_words(vectors, _SEPARATORS, "fastText's format")
    features = vectors.features
    if features is not None and features.keys.columns:
        raise InputError(
            "fastText's format has n-grams, and no place for a table of features.",
            "Export as binary or parquet, which hold the vectors of words alone, or train without features.",
        )
    spells = features is not None and features.spells
    _write_header(vectors, features.keys.ngrams if features is not None and spells else NGrams(bucket=0), f)
    _write_words(vectors.vocabulary, f)
    if features is not None and spells:
        _write_input(vectors, FeatureVectors(features.keys, _held(features.rows)), f)
    else:
        f.write(_MATRIX.pack(False, len(vectors), vectors.vector_size))
        for some in vectors.slices():
            write_numbers(f, vectors.rows(some))
    output = vectors.output_rows()
    f.write(_MATRIX.pack(False, len(vectors), vectors.vector_size))
    for some in vectors.slices():
        shape = (some.stop - some.start, vectors.vector_size)
        write_numbers(f, np.zeros(shape, np.float32) if output is None else output[some])


def _write_header(vectors: Vectors, ngrams: NGrams, f: BinaryIO) -> None:
    told = {**Params().as_dict(), **vectors.metadata.get("params", {})}
    of_pairs = _reads(told["objective"], "negative")
    window, epochs, least, negative = (
        min(int(told[name]), _LARGEST) for name in ("window", "epochs", "min_count", "negative")
    )
    f.write(
        _HEADER.pack(
            *struct.unpack("<i", MAGIC), _VERSION, vectors.vector_size, window, epochs, least,
            negative if of_pairs else 0, 1, _NEGATIVE if of_pairs else _HIERARCHICAL,
            _CBOW if _reads(told["objective"], "cbow_mean") else _SKIPGRAM,
            ngrams.bucket, ngrams.minn, ngrams.maxn, _LR_UPDATES, told["sample"],
        )
    )  # fmt: skip


def _reads(objective: str, name: str) -> bool:
    """Tell whether an objective reads a field of Params, which says what it trains."""
    return any(f.name == name and objective in f.metadata["used_by"] for f in fields(Params))


def _write_words(vocabulary: Vocabulary, f: BinaryIO) -> None:
    counts = np.maximum(1, vocabulary.counts)
    f.write(_WORDS.pack(len(counts), len(counts), 0, int(counts.sum()), -1))
    for word, count in zip(vocabulary, map(int, counts), strict=True):
        f.write(word.encode() + b"\0" + _COUNT.pack(count, 0))


def _write_input(vectors: Vectors, features: FeatureVectors, f: BinaryIO) -> None:
    """Write the own rows of words, and the rows of all buckets."""
    keys, columns = features.keys, vectors.vector_size
    f.write(_MATRIX.pack(False, len(vectors) + keys.ngrams.bucket, columns))
    for some in _words_at_once(vectors.vocabulary, keys.ngrams.maxn, columns):
        found = _features_of(keys, vectors.vocabulary, some)
        write_numbers(f, own_rows(found, vectors.rows(some), lambda rows: np.asarray(features.rows[rows])))
    for some in _slices(keys.ngrams.bucket, columns):
        rows = keys.rows_of(np.arange(some.start, some.stop, dtype=np.int32))
        written = np.zeros((len(rows), columns), np.float32)
        written[rows >= 0] = features.rows[rows[rows >= 0]]
        write_numbers(f, written)


def _held(rows: Float32Array | StoredRows) -> Float32Array | StoredRows:
    """Return the rows of n-grams, of which each word picks some: in memory, if they take less than half of it."""
    return rows[:] if isinstance(rows, StoredRows) and rows.nbytes < free_memory() / 2 else rows


def _slices(n: int, columns: int) -> Iterator[slice]:
    return cut(n, max(1, _ROWS_AT_ONCE // (4 * columns)))


def _unpack(f: BinaryIO, url: str, kind: struct.Struct) -> tuple[Any, ...]:
    content = f.read(kind.size)
    if len(content) != kind.size:
        raise _no_model(url, "is cut short")
    return kind.unpack(content)


def _no_model(url: str, found: str) -> InputError:
    return InputError(f"{url} {found}.", "It is damaged, or no model of fastText: copy it again.")
