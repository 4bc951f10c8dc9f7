"""The formats of the original word2vec, text and binary: a header "V D", then each word and its D numbers."""

import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from daskw2v.errors import InputError
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.files import open_for_reading
from daskw2v.store.limits import check_room
from daskw2v.store.urls import Location, as_url, filesystem
from daskw2v.types import Float32Array
from daskw2v.vocabulary.vocabulary import Vocabulary

_MAX_WORD_BYTES = 1 << 16  # bytes; the file of a longer word has another format
_MAX_DIMENSIONS = 1 << 16
_WORD_MEMORY = 100  # bytes of memory that a short word takes
_MAX_NUMBER_BYTES = 64  # bytes of a number in text, with the blanks before it
_GZIP_RATIO = 1032  # highest compression ratio of deflate
_PICKLE = b"\x80"  # first byte of a pickle, and of no number
_NUMBERS = np.dtype("<f4")
_REMEDY = "It is cut short or in another format: copy it again, or give binary=True or False."
_SEPARATORS = r"^$|[ \t\n\r\v\f]"  # only ASCII whitespace separates words; U+00A0 is part of a word


def write_text(vectors: Vectors, f: BinaryIO) -> None:
    """Write vectors in word2vec's text format: lines of a word and its numbers.

    Raises
    ------
    InputError
        If a word is empty or holds whitespace.
    """
    _write_header(vectors, f)
    line = "%s" + " %.9g" * vectors.vector_size + "\n"  # nine digits are read as the same float32
    f.writelines((line % (word, *row.tolist())).encode() for word, row in vectors.items())


def write_binary(vectors: Vectors, f: BinaryIO) -> None:
    """Write vectors in word2vec's binary format: each word and its numbers as little-endian float32.

    Raises
    ------
    InputError
        If a word is empty or holds whitespace.
    """
    _write_header(vectors, f)
    for word, row in vectors.items():
        f.write(b"%s %s\n" % (word.encode(), row.astype(_NUMBERS, copy=False).tobytes()))


def _write_header(vectors: Vectors, f: BinaryIO) -> None:
    """Write the header line, the numbers of words and of dimensions; raise InputError for words with separators."""
    check_words(vectors, _SEPARATORS, "word2vec's formats")
    f.write(b"%d %d\n" % (len(vectors), vectors.vector_size))


def import_word2vec(
    url: Location, binary: bool | None = None, storage_options: Mapping[str, Any] | None = None
) -> Vectors:
    r"""Read vectors from a file in word2vec's format, compressed with gzip if its name ends in .gz.

    The format has no counts, so the counts of the vocabulary are 0.

    Parameters
    ----------
    url
        Any fsspec URL or local path.
    binary
        Whether the numbers are binary; by default only in a file named .bin or .bin.gz.
    storage_options
        Options for fsspec.

    Raises
    ------
    InputError
        If the file cannot be read, is truncated, contradicts its header, or has a word twice; if a line is too long, or
        a vector is not finite.
    StoreError
        If the vectors take more memory than is free.

    Examples
    --------
    >>> import fsspec
    >>> import daskw2v
    >>> with fsspec.open("memory://word2vec.txt", "w") as file:
    ...     _ = file.write("2 3\nking 3 1 0\nqueen 2 2 0\n")
    >>> daskw2v.import_word2vec("memory://word2vec.txt")
    Vectors(2 words x 3, url='memory://word2vec.txt')
    """
    url = as_url(url, "file")
    if binary is None:
        binary = url.removesuffix(".gz").endswith(".bin")
    with open_for_reading(url, storage_options) as raw, io.BufferedReader(raw, 1 << 20) as f:  # type: ignore[type-var]
        rows, columns = _read_header(f, url)
        # The fewest bytes of this many rows: checked before memory is allocated, as the header may be wrong.
        min_bytes = rows * (4 * columns + 2 if binary else 2 * columns + 2) - 1
        fs, path = filesystem(url, storage_options or {})
        if min_bytes > fs.size(path) * (_GZIP_RATIO if url.endswith(".gz") else 1):
            problem = f"{url} is too small for the {rows} vectors of {columns} dimensions in its header."
            raise InputError(problem, _REMEDY)
        check_room((rows, 4 * columns + _WORD_MEMORY), ..., 1, url)
        words, matrix = [], np.empty((rows, columns), np.float32)
        for i, (word, row) in enumerate((_read_binary_rows if binary else _read_text_rows)(f, url, rows, columns)):
            try:
                words.append(word.decode())
            except UnicodeDecodeError:
                raise _malformed(url, i, f"a word that is not UTF-8 ({word[:60]!r})") from None
            matrix[i] = row
        if (rest := f.read(64)).strip():
            problem = f"{url} goes on after the {rows} vectors that its header announces, with {rest!r}."
            raise InputError(problem, "Correct the header, or give binary=True or False.")
    check_rows(url, words, matrix)
    return Vectors(Vocabulary.from_words(words, [0] * rows), matrix, url=url)


def _read_header(f: BinaryIO, url: str) -> tuple[int, int]:
    """Read the header line: the numbers of words and of dimensions."""
    line = f.readline(_MAX_WORD_BYTES)
    match = re.fullmatch(rb"(\d{1,18}) (\d{1,9})\s*", line)
    if line[:1] == _PICKLE:
        raise InputError(
            f"{url} is a pickle, such as gensim's save writes: reading it would run code.",
            "In gensim, if you trust it: KeyedVectors.load(path).save_word2vec_format('vectors.bin', binary=True), "
            "and import that file; or daskw2v.from_gensim(KeyedVectors.load(path)).",
        )
    if match is None or not 1 <= int(match[2]) <= _MAX_DIMENSIONS:
        raise InputError(
            f"{url} begins with {line[:60]!r}, not with the number of words and of dimensions (at most "
            f"{_MAX_DIMENSIONS:,}).",
            "Give a file in word2vec's format; add a first line such as '400000 100' to a GloVe file.",
        )
    return int(match[1]), int(match[2])


def _read_text_rows(f: BinaryIO, url: str, rows: int, columns: int) -> Iterator[tuple[bytes, Float32Array]]:
    """Yield the word and the numbers, shape (columns,), of each line of a text file."""
    max_line = _MAX_WORD_BYTES + _MAX_NUMBER_BYTES * columns
    for i in range(rows):
        line = f.readline(max_line)
        if len(line) == max_line:
            raise _malformed(url, i, f"{max_line:,} bytes without an end of its line")
        word, *numbers = line.split() or [b""]
        if len(numbers) != columns:
            raise _malformed(url, i, f"{len(numbers)} numbers, not {columns}")
        try:
            values = np.array([float(number) for number in numbers])
        except ValueError as error:
            raise _malformed(url, i, f"no number ({error})") from None
        with np.errstate(over="ignore"):  # `check_rows` refuses infinity
            yield word, values.astype(np.float32)


def _read_binary_rows(f: BinaryIO, url: str, rows: int, columns: int) -> Iterator[tuple[bytes, Float32Array]]:
    """Yield each word and its numbers, shape (columns,), of a binary file."""
    size = columns * _NUMBERS.itemsize
    for i in range(rows):
        word = bytearray()
        while (byte := f.read(1)) != b" ":
            if not byte or len(word) > _MAX_WORD_BYTES:
                raise _malformed(url, i, "no word followed by a space")
            word += byte
        numbers = f.read(size)
        if len(numbers) != size:
            raise _malformed(url, i, f"{len(numbers)} bytes, not {size}")
        yield bytes(word.lstrip(b"\n")), np.frombuffer(numbers, _NUMBERS)


def _malformed(url: str, i: int, problem: str) -> InputError:
    """Return the error for vector number i, from 0, of a file; `problem` completes "Vector 1 of URL has ..."."""
    return InputError(f"Vector {i + 1} of {url} has {problem}.", _REMEDY)


def check_rows(url: str, words: Sequence[str], matrix: Float32Array) -> None:
    """Raise an error if a file has a word twice, or a vector that is not finite.

    Raises
    ------
    InputError
        If the file has one of these.
    """
    if len(set(words)) != len(words):
        counts = Counter(words)
        twice = next(word for word in words if counts[word] > 1)
        raise InputError(f"{url} holds {twice!r} twice.", "Keep one vector of each word.")
    invalid = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(invalid):
        problem = f"The vector of {words[invalid[0]]!r} in {url} is not finite ({len(invalid)} are not)."
        raise InputError(problem, "Train again with a lower learning rate, or leave these words out.")


def check_words(vectors: Vectors, pattern: str, format_name: str) -> None:
    """Raise an error if a format cannot represent a word of a model.

    Parameters
    ----------
    vectors
        The model.
    pattern
        Regular expression of the words that the format cannot represent.
    format_name
        Name of the format in the message.

    Raises
    ------
    InputError
        If a word matches the regular expression.
    """
    if invalid := [word for word in vectors if re.search(pattern, word)]:
        raise InputError(
            f"{format_name} cannot represent {len(invalid)} of the words, which are empty or contain what ends a word: "
            f"{', '.join(map(repr, invalid[:5]))}{', ...' if len(invalid) > 5 else ''}.",
            "Export as parquet or safetensors, or train without these words.",
        )
