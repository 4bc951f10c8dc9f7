"""Parts of the readers of evaluation files: names, numbered lines, fields, and lookup of words."""

import csv
import os
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from daskw2v.errors import InputError
from daskw2v.models.stored.files import open_for_reading
from daskw2v.store.urls import Location
from daskw2v.vocabulary.vocabulary import Vocabulary

MAX_BYTES = 1 << 28  # of a set, unpacked
_MAX_LINE = 1 << 20  # bytes of a line


def file_stem(url: Location) -> str:
    """Return the name of a file without folder and suffix; the file may be in an archive (zip://name::archive)."""
    return PurePosixPath(os.fspath(url).partition("::")[0].removesuffix(".gz")).stem


def read_lines(
    url: Location, storage_options: Mapping[str, Any] | None = None, *, keep_all: bool = False
) -> Iterator[tuple[int, str]]:
    """Yield the number, from 1, and the text of each line of a UTF-8 file, without white space at both ends.

    Blank lines and comments (#) are counted, but yielded only if `keep_all`.

    Raises
    ------
    InputError
        If the file cannot be read, has more than 256 MiB or a line of 1 MiB, or is not UTF-8.
    """
    n_bytes = 0
    with open_for_reading(url, storage_options) as f:
        for number, line in enumerate(iter(lambda: f.readline(_MAX_LINE), b""), 1):
            n_bytes += len(line)
            if len(line) == _MAX_LINE or n_bytes > MAX_BYTES:
                problem = f"At line {number}, {url} exceeds {_MAX_LINE:,} bytes in a line or {MAX_BYTES:,} in total."
                raise InputError(problem, "It is not an evaluation set: give another file.")
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            except UnicodeDecodeError as error:
                problem = f"Line {number} of {url} is not UTF-8 ({error.reason})."
                raise InputError(problem, "Convert the file to UTF-8.") from None
            if keep_all or (text and not text.startswith("#")):
                yield number, text


def malformed_line(url: Location, number: int, line: str, problem: str, remedy: str) -> InputError:
    """Return the error for a malformed line of a file; `problem` completes "Line 3 of URL is ..."."""
    return InputError(f"Line {number} of {url} is {problem}: {line[:60]!r}.", remedy)


def split_fields(line: str, separators: str) -> list[str]:
    """Return the fields of a line, which may be in quotes, without white space at both ends.

    The line is split at the first of the characters `separators` that it contains, or else at white space.
    """
    separator = next((s for s in separators if s in line), None)
    if '"' not in line:
        return [field.strip() for field in line.split(separator)]
    try:
        (parts,) = csv.reader([line], delimiter=separator or " ", skipinitialspace=True)
    except csv.Error as error:
        raise InputError(f"A line of the set cannot be read ({error}): {line[:60]!r}.", "Repair it.") from None
    return [field.strip() for field in parts]


def known_id(vocabulary: Vocabulary, word: str, limit: int | None = None) -> int:
    """Return the id of a word as written, or else in lower case; -1 if neither form has an id below `limit`."""
    ids = (vocabulary.find(form) for form in (word, word.lower()))
    return next((id_ for id_ in ids if id_ is not None and (limit is None or id_ < limit)), -1)
