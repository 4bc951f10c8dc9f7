"""The parts of a fastText file before its rows: settings, words and counts."""

import os
import struct
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from daskw2v.config.params import Params
from daskw2v.errors import InputError
from daskw2v.features.keys import HashedNGrams
from daskw2v.models.queries.vectors import Vectors
from daskw2v.objectives.settings import OBJECTIVES, ContextsTogether
from daskw2v.sampling.settings import NegativeSampling
from daskw2v.store.limits import check_room

MAGIC = struct.pack("<i", 793712314)
KIND, SHAPE = struct.Struct("<?"), struct.Struct("<qq")  # of a matrix: whether it is quantized; rows and columns
_VERSION = 12
_CBOW, _SKIPGRAM, _SUPERVISED = 1, 2, 3
_HIERARCHICAL, _NEGATIVE = 1, 2  # losses
_LR_UPDATES = 100  # the default of fastText's program
_HEADER = struct.Struct("<i" + "i" * 12 + "d")  # version, then the settings that the program trained with
_WORDS = struct.Struct("<iiiqq")  # entries, words, labels, tokens, entries of a pruned index
_COUNT = struct.Struct("<qb")  # of a word, and whether it is a label
_MAX_INT32 = 2**31 - 1
_MAX_WORD_BYTES, _BLOCK = 1 << 16, 1 << 16  # bytes of a word, and bytes of words read at once
_MAX_NGRAM = 255  # characters, as in Params
_WORD_MEMORY = 100  # of memory that a short word takes


class Header(NamedTuple):
    """The settings of a fastText file's header that reading the file needs."""

    dim: int
    bucket: int  # number of buckets
    ngrams: HashedNGrams | None  # None if words have no n-grams
    words: int
    pruned: int  # number of n-grams that a pruned model has; -1 in other models


def read_header(f: BinaryIO, url: str) -> Header:
    """Read and check the header of a fastText file; raises as `read_fasttext` does."""
    magic = read_exactly(f, url, len(MAGIC))
    version, dim, _, _, _, _, _, _, model, bucket, minn, maxn, _, _ = unpack(f, url, _HEADER)
    if magic != MAGIC or version != _VERSION:
        raise malformed_model(url, f"begins with {int.from_bytes(magic, 'little', signed=True)} and version {version}")
    n_entries, words, labels, _, pruned = unpack(f, url, _WORDS)
    if model == _SUPERVISED or labels:
        raise InputError(f"{url} is a classifier of fastText.", "Give a model of skipgram or cbow.")
    is_valid = n_entries == words >= 0 and 1 <= dim <= 1 << 16 and -1 <= pruned <= bucket and maxn <= _MAX_NGRAM
    if not is_valid or bucket < 0:
        ngrams = f"{bucket} buckets, of which {pruned} are left, and n-grams of {maxn} characters"
        raise malformed_model(url, f"declares {words} words, {dim} dimensions, {ngrams}")
    check_room((words, 4 * dim + _WORD_MEMORY), ..., 1, url)
    has_ngrams = bucket > 0 and maxn >= max(1, minn)
    return Header(dim, bucket, HashedNGrams(max(1, minn), maxn, bucket) if has_ngrams else None, words, pruned)


def read_words(f: BinaryIO, url: str, n: int) -> tuple[list[str], list[int]]:
    """Read n words and their counts from a fastText file, behind its header; raises as `read_fasttext` does."""
    words, counts = list[str](), list[int]()
    buffer, start = b"", 0
    while len(words) < n:
        end = buffer.find(b"\0", start)
        if (len(buffer) if end < 0 else end) - start > _MAX_WORD_BYTES:
            raise malformed_model(url, f"has no end of word {len(words) + 1}")
        if end < 0 or end + 1 + _COUNT.size > len(buffer):
            block = f.read(_BLOCK)
            if not block:
                raise malformed_model(url, f"has no end of word {len(words) + 1}" if end < 0 else "is cut short")
            buffer, start = buffer[start:] + block, 0
            continue
        try:
            words.append(buffer[start:end].decode())
        except UnicodeDecodeError:
            problem = f"{url} has a word that is not UTF-8: {buffer[start:end][:60]!r}."
            raise InputError(problem, "Train it on text in UTF-8, or skip it.") from None
        count, _ = _COUNT.unpack_from(buffer, end + 1)
        if count < 0:
            raise malformed_model(url, f"counts {count} of {words[-1]!r}")
        counts.append(count)
        start = end + 1 + _COUNT.size
    f.seek(start - len(buffer), os.SEEK_CUR)  # to the end of the words
    return words, counts


def write_header(vectors: Vectors, ngrams: HashedNGrams | None, pruned: int, f: BinaryIO) -> None:
    """Write the header of a fastText file: the settings of a model's training, its words and their counts.

    Parameters
    ----------
    vectors
        The model.
    ngrams
        N-grams of its words; None without any.
    pruned
        Number of n-grams of a pruned model; -1 for a model that is not pruned.
    f
        The file.
    """
    ngrams = HashedNGrams(bucket=0) if ngrams is None else ngrams
    params = {**Params().as_dict(), **vectors.metadata.get("params", {})}
    objective = OBJECTIVES.find(params["objective"])
    names = "window", "epochs", "min_count", "negative"
    window, epochs, min_count, negative = (min(int(params[name]), _MAX_INT32) for name in names)
    kind = _CBOW if issubclass(objective, ContextsTogether) else _SKIPGRAM
    negative, loss = (negative, _NEGATIVE) if issubclass(objective, NegativeSampling) else (0, _HIERARCHICAL)
    settings = (vectors.vector_size, window, epochs, min_count, negative, 1, loss, kind)
    ngram_settings = ngrams.bucket, ngrams.minn, ngrams.maxn
    f.write(MAGIC + _HEADER.pack(_VERSION, *settings, *ngram_settings, _LR_UPDATES, params["sample"]))
    counts = np.maximum(1, vectors.vocabulary.counts)
    f.write(_WORDS.pack(len(counts), len(counts), 0, int(counts.sum()), pruned))
    for word, count in zip(vectors, map(int, counts), strict=True):
        f.write(word.encode() + b"\0" + _COUNT.pack(count, 0))


def read_exactly(f: BinaryIO, url: str, size: int) -> bytes:
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
        raise malformed_model(url, "is cut short")
    return content


def unpack(f: BinaryIO, url: str, layout: struct.Struct) -> tuple[Any, ...]:
    """Read the next values of a file in a `struct` layout; raises as `read_exactly` does."""
    return layout.unpack(read_exactly(f, url, layout.size))


def malformed_model(url: str, problem: str) -> InputError:
    """Return the error for a file that is no model of fastText; `problem` is a predicate, such as "is cut short"."""
    return InputError(f"{url} {problem}.", "It is damaged, or no model of fastText: copy it again.")
