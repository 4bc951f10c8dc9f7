"""JSON lines: objects with text, or a list of tokens, at a key."""

import json
from collections.abc import Iterator
from itertools import groupby, repeat
from typing import Any

from daskw2v.corpus.files import TextBlock
from daskw2v.corpus.formats.base import Format, cut_bytes
from daskw2v.corpus.formats.columns import NoFieldError, find_field, is_weight
from daskw2v.corpus.formats.text import read_text_pieces
from daskw2v.corpus.invalid import InvalidInput
from daskw2v.corpus.pieces import Piece, RawText, make_tokens
from daskw2v.corpus.streams import batched, with_newlines
from daskw2v.corpus.tokenizers import Tokenizer

_PART = 1 << 22  # characters that become tokens at once
_RECORD = 64  # characters that a list of tokens counts as, besides those of its tokens


def _read(
    file: Any, block: TextBlock, column: str, policy: InvalidInput, tokenizer: Tokenizer, weight: str | None = None
) -> Iterator[Piece]:
    """Read the records of a block as `Format.read` does; `weight` is the key of the records' weights."""
    for offset, data in read_text_pieces(file, block, policy.report, whole_lines=True):
        policy.report.count_lines(data)
        records = _parse_records(data, block.source.url, offset, column, weight, policy)
        for is_text, group in groupby(records, key=lambda record: isinstance(record, str)):
            for values in batched(group, _estimate_size, _PART):  # weights may repeat records
                if is_text:
                    piece = tokenizer(with_newlines("".join(f"{text}\n" for text in values).encode()))
                else:
                    piece = make_tokens(values)
                if isinstance(piece, RawText) or len(piece.starts):
                    yield piece


def _estimate_size(record: str | list[str]) -> int:
    """Return about how many characters a text or a list of tokens takes."""
    return len(record) + 1 if isinstance(record, str) else sum(map(len, record)) + _RECORD


class _LineError(Exception):
    """The error of a line that is no record with text; the message says why."""


def _parse_records(
    data: bytes, url: str, offset: int, column: str, weight: str | None, policy: InvalidInput
) -> Iterator[str | list[str]]:
    """Yield the text, or list of tokens, of each line of JSON, as often as the line counts.

    Parameters
    ----------
    data
        Complete lines.
    url, offset
        URL of the file, and offset of `data` in it, for messages.
    column, weight
        Key of the text, and key of the weight, None if lines count once.
    policy
        Handles invalid lines.
    """
    for line in data.split(b"\n"):
        location = f"{url} at byte {offset}"
        text = policy.valid_utf8(line, url, offset).decode()
        offset += len(line) + 1
        if not text or text.isspace():
            continue
        try:
            value, times = _parse_line(text, column, weight)
        except _LineError as error:
            policy.skip(location, str(error))
            continue
        if isinstance(value, str):
            for valid in policy.without_surrogates([value], location):
                yield from repeat(valid, times)
        elif value is not None:  # null is no text, as in a table
            yield from repeat(policy.without_surrogates([str(token) for token in value], location), times)


def _parse_line(line: str, column: str, weight: str | None) -> tuple[Any, int]:
    """Return a JSON line's text, list of strings or integers, or None for null, and how often the line counts.

    Raises
    ------
    _LineError
        If the line is no object, has no such keys, or holds other values.
    """
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _LineError(f"invalid JSON ({error})") from None
    if not isinstance(record, dict):
        raise _LineError(f"a JSON {type(record).__name__} instead of an object")
    value, times = _get_field(record, column), 1
    if weight is not None and not is_weight(times := _get_field(record, weight)):
        raise _LineError(f"{weight!r} is {times!r}, which is no weight")
    # not isinstance: true and false are not integers, though bool is an int in Python
    if isinstance(value, str | None) or (isinstance(value, list) and all(type(token) in (str, int) for token in value)):
        return value, times
    raise _LineError(f"{column!r} is neither a string nor a list of strings or integers")


def _get_field(record: dict[str, Any], column: str) -> Any:
    """Return the value of a record at a key, or at a path of keys, joined by dots; raises a _LineError without it."""
    if column in record:  # `find_field` takes half as long as parsing the line, and few columns are nested
        return record[column]
    try:
        return find_field(column, record, lambda value: value if isinstance(value, dict) else {})[1]
    except NoFieldError as error:
        keys = ", ".join(map(repr, error.present)) or "none"
        raise _LineError(f"no key {column!r}; the keys are: {keys}") from None


_SUFFIXES, _HONOURS = (".jsonl", ".ndjson", ".json"), ("column", "weight")
JSONL = Format(name="jsonl", title="JSONL", suffixes=_SUFFIXES, cut=cut_bytes, read=_read, honours=_HONOURS)
