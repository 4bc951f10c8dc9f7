"""Reads models of fastText, files of its save_model: a word's vector is the mean of its row and of its n-grams' rows.

Bojanowski et al. 2017, section 3. The n-grams of a word, with its boundary marks, are numbered by a hash.
"""

import struct
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from daskw2v.errors import InputError
from daskw2v.models.vectors import Vectors
from daskw2v.models.word2vec import check_rows
from daskw2v.store.limits import check_room
from daskw2v.types import Float32Array
from daskw2v.vocabulary.vocabulary import Vocabulary

MAGIC = struct.pack("<i", 793712314)
_VERSION = 12
_SUPERVISED = 3
_HEADER = struct.Struct("<ii" + "i" * 12 + "d")  # magic, version, then the settings that the program trained with
_WORDS = struct.Struct("<iiiqq")  # entries, words, labels, tokens, entries of a pruned index
_LONGEST_WORD = 1 << 16
_BYTES = 100  # of memory that a short word takes
_BEGIN, _END = "<", ">"


class _Header(NamedTuple):
    """What a file says of itself, as far as it is needed."""

    dim: int
    model: int
    bucket: int
    minn: int
    maxn: int
    words: int


def read_fasttext(f: BinaryIO, url: str) -> Vectors:
    """Read the words, counts and vectors of a model.

    Raises
    ------
    InputError
        If it is no such file, is cut short or quantized, or has labels: a classifier.
    StoreError
        If the vectors take more memory than is free.
    """
    header = _read_header(f, url)
    words, counts = _read_words(f, url, header.words)
    (quantized,) = _unpack(f, url, struct.Struct("<?"))
    if quantized:
        raise InputError(f"{url} is quantized.", "Give the model that it was made from.")
    rows, columns = _unpack(f, url, struct.Struct("<qq"))
    most = header.words + header.bucket
    if columns != header.dim or not (most if header.maxn else header.words) <= rows <= most:
        raise _no_model(url, f"holds a table of {rows} rows and {columns} columns")
    check_room((rows, 4 * columns), ..., 1, url)
    table = np.empty((rows, columns), "<f4")
    if f.readinto(table.reshape(-1).view(np.uint8).data) != table.nbytes:  # type: ignore[attr-defined]
        raise _no_model(url, "is cut short")
    matrix = np.empty((len(words), columns), np.float32)
    for i, word in enumerate(words):
        matrix[i] = _mean(table, i, word, header)
    check_rows(url, words, matrix)
    return Vectors(Vocabulary.from_words(words, counts), matrix, url=url)


def _read_header(f: BinaryIO, url: str) -> _Header:
    magic, version, dim, _, _, _, _, _, _, model, bucket, minn, maxn, _, _ = _unpack(f, url, _HEADER)
    if struct.pack("<i", magic) != MAGIC or version != _VERSION:
        raise _no_model(url, f"begins with {magic} and version {version}")
    size, words, labels, _, pruned = _unpack(f, url, _WORDS)
    if model == _SUPERVISED or labels:
        raise InputError(f"{url} is a classifier of fastText.", "Give a model of skipgram or cbow.")
    if pruned > 0:
        raise InputError(f"{url} has a pruned dictionary.", "Give the model that it was made from.")
    if size != words or words < 0 or not 1 <= dim <= 1 << 16 or not 0 <= bucket <= 1 << 31:
        raise _no_model(url, f"tells of {words} words, {dim} dimensions and {bucket} buckets")
    check_room((words, 4 * dim + _BYTES), ..., 1, url)
    return _Header(dim, model, bucket, minn, maxn, words)


def _read_words(f: BinaryIO, url: str, n: int) -> tuple[list[str], list[int]]:
    entry, words, counts = struct.Struct("<qb"), list[str](), list[int]()
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
        count, _ = _unpack(f, url, entry)
        counts.append(count)
    return words, counts


def _mean(table: Float32Array, word_row: int, word: str, header: _Header) -> Any:
    """Return the mean of a word's rows; the end of a sentence, which is in each dictionary, has no n-grams."""
    rows = [word_row]
    if header.maxn and header.bucket and word != "</s>":
        rows += [header.words + hash % header.bucket for hash in hashes_of(word, header.minn, header.maxn)]
    return table[rows].mean(axis=0, dtype=np.float32)


def hashes_of(word: str, minn: int, maxn: int) -> Iterator[int]:
    """Yield the hashes of a word's n-grams: FNV-1a of 32 bits over their UTF-8, whose bytes are taken as signed.

    Parameters
    ----------
    word
        Without boundary marks.
    minn, maxn
        Fewest and most characters of an n-gram, marks included; a mark alone is none.
    """
    characters = [character.encode() for character in (_BEGIN, *word, _END)]
    for start in range(len(characters)):
        hash = 2166136261
        for n, character in enumerate(characters[start : start + maxn], 1):
            for byte in character:
                hash = ((hash ^ (byte | 0xFFFFFF00 if byte > 127 else byte)) * 16777619) & 0xFFFFFFFF
            if n >= minn and not (n == 1 and start in (0, len(characters) - 1)):
                yield hash


def _unpack(f: BinaryIO, url: str, kind: struct.Struct) -> tuple[Any, ...]:
    content = f.read(kind.size)
    if len(content) != kind.size:
        raise _no_model(url, "is cut short")
    return kind.unpack(content)


def _no_model(url: str, found: str) -> InputError:
    return InputError(f"{url} {found}.", "It is damaged, or no model of fastText: copy it again.")
