"""What the evaluation files have in common: numbered lines, and words in the form the model knows."""

from collections.abc import Iterator, Mapping
from typing import Any

from daskw2v.errors import InputError
from daskw2v.models.files import reading
from daskw2v.storage import Location
from daskw2v.vocabulary.vocabulary import Vocabulary


def read_lines(url: Location, storage_options: Mapping[str, Any] | None = None) -> Iterator[tuple[int, str]]:
    """Read a UTF-8 file's lines with their numbers; blank lines and comments (#) are left out.

    Raises
    ------
    InputError
        If the file cannot be read or is not UTF-8.
    """
    with reading(url, storage_options) as f:
        for number, line in enumerate(f, 1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            except UnicodeDecodeError as error:
                raise InputError(
                    f"Line {number} of {url} is not UTF-8 ({error.reason}).", "Convert the file to UTF-8."
                ) from None
            if text and not text.startswith("#"):
                yield number, text


def known_id(vocabulary: Vocabulary, word: str) -> int | None:
    """Return the id of a word as it is written, else lower-cased; None where the model knows neither."""
    found = vocabulary.find(word)
    return vocabulary.find(word.lower()) if found is None else found
