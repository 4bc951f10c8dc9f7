"""JSON lines: objects with text, or a list of tokens, at a key."""

import json
from collections.abc import Iterable, Iterator
from itertools import groupby, repeat
from typing import Any

from daskw2v.corpus.files import TextBlock
from daskw2v.corpus.formats.base import Format, cut_bytes
from daskw2v.corpus.formats.columns import NoFieldError, find_field, is_weight
from daskw2v.corpus.formats.text import text_pieces
from daskw2v.corpus.invalid import InvalidInput
from daskw2v.corpus.pieces import RawText, Tokens, tokens_of
from daskw2v.corpus.streams import with_newlines
from daskw2v.corpus.tokenizers import Tokenizer

_PART = 1 << 22  # characters that become tokens at once
_RECORD = 64  # what a list of tokens counts besides


def _read(
    file: Any, block: TextBlock, column: str, policy: InvalidInput, tokenizer: Tokenizer, weight: str | None = None
) -> Iterator[RawText | Tokens]:
    for offset, data in text_pieces(file, block, policy.report, whole_lines=True):
        policy.report.count_lines(data)
        records = _records(data, block.source.url, offset, column, weight, policy)
        for is_text, group in groupby(records, key=lambda record: isinstance(record, str)):
            for values in _parts(group):
                piece = tokenizer(_lines(values)) if is_text else tokens_of(values)
                if isinstance(piece, RawText) or len(piece.starts):
                    yield piece


def _lines(texts: Iterable[str]) -> bytes:
    return with_newlines("".join(f"{text}\n" for text in texts).encode())


def _parts(records: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield records in lists of bounded size: weights may repeat them."""
    held, size = list[Any](), 0
    for record in records:
        held.append(record)
        size += len(record) + 1 if isinstance(record, str) else sum(map(len, record)) + _RECORD
        if size >= _PART:
            yield held
            held, size = [], 0
    if held:
        yield held


def _records(
    data: bytes, url: str, offset: int, column: str, weight: str | None, policy: InvalidInput
) -> Iterator[str | list[str]]:
    for line in data.split(b"\n"):
        place = f"{url} at byte {offset}"
        text = policy.utf8(line, url, offset).decode()
        offset += len(line) + 1
        if not text or text.isspace():
            continue
        problem, value, times = _value(text, column, weight)
        if problem:
            policy.skip(place, problem)
        elif value is None:  # no text, as in a table
            continue
        elif isinstance(value, str):
            for scalar in policy.scalars([value], place):
                yield from repeat(scalar, times)
        else:
            yield from repeat(policy.scalars([str(token) for token in value], place), times)


def _value(line: str, column: str, weight: str | None) -> tuple[str, Any, int]:
    """Return a description of what is wrong with a line, or "", its text or list of tokens, and how often it counts."""
    problem, record = _object(line)
    if problem:
        return problem, None, 0
    problem, value = _field(record, column)
    times = 1
    if weight is not None and not problem:
        problem, times = _field(record, weight)
        if not problem and not is_weight(times):
            problem = f"{weight!r} is {times!r}, which is no weight"
    if problem:
        return problem, None, 0
    # not isinstance: true and false are not integers, though bool is an int in Python
    if isinstance(value, str | None) or (isinstance(value, list) and all(type(token) in (str, int) for token in value)):
        return "", value, times
    return f"{column!r} is neither a string nor a list of strings or integers", None, 0


def _object(line: str) -> tuple[str, Any]:
    """Return a description of what is wrong with a line, or "", and its object."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"invalid JSON ({error})", None
    if not isinstance(record, dict):
        return f"a JSON {type(record).__name__} instead of an object", None
    return "", record


def _field(record: Any, column: str) -> tuple[str, Any]:
    """Return a description of what is wrong with a record, or "", and the value at a path."""
    try:
        # A call takes half as long as parsing the line, and few columns are nested
        return "", record[column] if column in record else find_field(column, record, _fields)[1]
    except NoFieldError as error:
        return f"no key {column!r}; the keys are: {', '.join(map(repr, error.present)) or 'none'}", None


def _fields(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


JSONL = Format(
    name="jsonl", title="JSONL", suffixes=(".jsonl", ".ndjson", ".json"), cut=cut_bytes, read=_read,
    honours=("column", "weight"),
)  # fmt: skip
