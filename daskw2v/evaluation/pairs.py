"""Reader of word pairs with human scores, in the layouts of published sets.

One rule reads all of them: the first two fields are words, and the score is in the first field after them that is a
number. If the first line has no number there, it is a header.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from daskw2v.errors import InputError
from daskw2v.evaluation.reading import fields, read_lines
from daskw2v.store.urls import Location

_LEMMA = re.compile(r"(.+)-[a-z]")  # MEN's lemmas: sun-n, old-j, run-v


class ScoredPair(NamedTuple):
    """Two words and how similar people find them."""

    first: str
    second: str
    score: float


class _Line(NamedTuple):
    number: int
    text: str
    fields: list[str]


def read_pairs(url: Location, storage_options: Mapping[str, Any] | None = None) -> list[ScoredPair]:
    """Read the pairs of one set.

    Parameters
    ----------
    url
        File of WordSim-353, SimLex-999, MEN, MTurk-287 or -771, RW, SimVerb-3500, or of the same form. Tabs, commas or
        spaces separate fields. A header, comments (#) and other columns (parts of speech, single raters, relations)
        are skipped, and so are names of rows, as R writes them. Fields may be in quotes. If every word ends in a part
        of speech, as MEN's lemmas do (`sun-n`), the endings are removed.
    storage_options
        Options for fsspec.

    Returns
    -------
    pairs
        In the order of the file.

    Raises
    ------
    InputError
        If the file cannot be read or a line is malformed.
    """
    found = [_Line(number, text, fields(text, "\t,")) for number, text in read_lines(url, storage_options)]
    lines = _without_row_names(found)
    column = _score_column(lines[:2])
    if len(lines) > 1 and _number(lines[0], column) is None and len(lines[0].fields) > column:
        del lines[0]  # a header
    pairs = []
    for line in lines:
        score = _number(line, column)
        if score is None:
            raise InputError(
                f"Line {line.number} of {url} is not two words with a score in field {column + 1}: {line.text[:60]!r}.",
                "Write word1<TAB>word2<TAB>score in each line, or mark the line as a comment with #.",
            )
        pairs.append(ScoredPair(line.fields[0], line.fields[1], score))
    return _without_tags(pairs)


def _without_row_names(lines: list[_Line]) -> list[_Line]:
    """Leave out the names of rows, which R and pandas write: their column has an empty header, or none."""
    if len(lines) < 2 or not lines[0].fields:
        return lines
    unnamed = len(lines[1].fields) == len(lines[0].fields) + 1 and lines[0].text.startswith('"')
    if unnamed:
        return [lines[0], *(line._replace(fields=line.fields[1:]) for line in lines[1:])]
    return lines if lines[0].fields[0] else [line._replace(fields=line.fields[1:]) for line in lines]


def _score_column(first: Sequence[_Line]) -> int:
    """Return the field of the score: of the second line, since the first may be a header that numbers raters."""
    for line in reversed(first):
        for column in range(2, len(line.fields)):
            if _number(line, column) is not None:
                return column
    return 2


def _number(line: _Line, column: int) -> float | None:
    try:
        value = float(line.fields[column])
    except (IndexError, ValueError):
        return None
    return value if math.isfinite(value) else None


def _without_tags(pairs: list[ScoredPair]) -> list[ScoredPair]:
    lemmas = [(_LEMMA.fullmatch(pair.first), _LEMMA.fullmatch(pair.second), pair.score) for pair in pairs]
    untagged = [ScoredPair(a[1], b[1], score) for a, b, score in lemmas if a and b]
    return untagged if len(untagged) == len(pairs) else pairs
