"""What the evaluation files have in common: names, numbered lines, fields, and words in the form the model knows."""

import os
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from daskw2v.errors import InputError
from daskw2v.locations import Location
from daskw2v.models.files import reading
from daskw2v.vocabulary.vocabulary import Vocabulary

MOST_BYTES = 1 << 28  # of a set, unpacked
_LONGEST = 1 << 20  # bytes of a line


def stem(url: Location) -> str:
    """Return the name of a file, which may lie in an archive (zip://name::archive), without folder and suffix."""
    return PurePosixPath(os.fspath(url).partition("::")[0].removesuffix(".gz")).stem


def read_lines(url: Location, storage_options: Mapping[str, Any] | None = None) -> Iterator[tuple[int, str]]:
    """Read a UTF-8 file's lines with their numbers; blank lines and comments (#) are left out.

    Raises
    ------
    InputError
        If the file cannot be read or is not UTF-8.
    """
    read = 0
    with reading(url, storage_options) as f:
        for number, line in enumerate(iter(lambda: f.readline(_LONGEST), b""), 1):
            read += len(line)
            if len(line) == _LONGEST or read > MOST_BYTES:
                raise InputError(
                    f"Line {number} of {url} is longer than {_LONGEST:,} bytes, or all up to it than {MOST_BYTES:,}.",
                    "This is no evaluation set: give another file.",
                )
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            except UnicodeDecodeError as error:
                raise InputError(
                    f"Line {number} of {url} is not UTF-8 ({error.reason}).", "Convert the file to UTF-8."
                ) from None
            if text and not text.startswith("#"):
                yield number, text


def fields(line: str, separators: str) -> list[str]:
    """Cut a line at the first of the separators that it holds, or at blanks where it holds none."""
    separator = next((s for s in separators if s in line), None)
    return [field.strip() for field in line.split(separator)]


def known_id(vocabulary: Vocabulary, word: str, limit: int | None = None) -> int | None:
    """Return the id, below `limit`, of a word as it is written, else lower-cased; None where neither is known."""
    for form in (word, word.lower()):
        found = vocabulary.find(form)
        if found is not None and (limit is None or found < limit):
            return found
    return None
