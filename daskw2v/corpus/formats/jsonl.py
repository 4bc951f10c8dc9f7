"""JSON lines: objects with text, or a list of tokens, at a key."""

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from daskw2v.corpus.files import TextBlock
from daskw2v.corpus.formats.base import Format, cut_bytes
from daskw2v.corpus.formats.text import text_pieces
from daskw2v.corpus.invalid import InvalidInput
from daskw2v.corpus.pieces import RawText, Tokens, tokens_of
from daskw2v.corpus.tokenizers import Tokenizer


def _read(
    file: Any, block: TextBlock, column: str, policy: InvalidInput, tokenizer: Tokenizer
) -> Iterator[RawText | Tokens]:
    for offset, data in text_pieces(file, block, policy.report, whole_lines=True):
        policy.report.count_lines(data)
        records = _records(data, block.source.url, offset, column, policy)
        for is_text, group in groupby(records, key=lambda record: isinstance(record, str)):
            values = list(group)
            piece = tokenizer("".join(f"{text}\n" for text in values).encode()) if is_text else tokens_of(values)
            if isinstance(piece, RawText) or len(piece.starts):
                yield piece


def _records(data: bytes, url: str, offset: int, column: str, policy: InvalidInput) -> Iterator[str | list[str]]:
    for line in data.split(b"\n"):
        place = f"{url} at byte {offset}"
        text = policy.utf8(line, url, offset).decode()
        offset += len(line) + 1
        if not text or text.isspace():
            continue
        problem, value = _value(text, column)
        if problem:
            policy.skip(place, problem)
        elif isinstance(value, str):
            yield from policy.scalars([value], place)
        else:
            yield policy.scalars([str(token) for token in value], place)


def _value(line: str, column: str) -> tuple[str, Any]:
    """Return a description of what is wrong with a line, or "", and its text or list of tokens."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"invalid JSON ({error})", None
    if not isinstance(record, dict):
        return f"a JSON {type(record).__name__} instead of an object", None
    if column not in record:
        return f"no key {column!r}; the keys are: {', '.join(map(repr, record)) or 'none'}", None
    value = record[column]
    if isinstance(value, str):
        return "", value
    # not isinstance: true and false are not integers, though bool is an int in Python
    if isinstance(value, list) and all(type(token) in (str, int) for token in value):
        return "", value
    return f"{column!r} is neither a string nor a list of strings or integers", None


JSONL = Format(name="jsonl", title="JSONL", suffixes=(".jsonl", ".ndjson", ".json"), cut=cut_bytes, read=_read)
