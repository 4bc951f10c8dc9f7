"""Reading a block: text or tokens, whatever the file's format."""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from typing import Any

from daskw2v.corpus.parquet import read_parquet
from daskw2v.corpus.pieces import ReadReport, Text, Tokens, tokens_of
from daskw2v.corpus.policy import Policy
from daskw2v.corpus.sources import Block, find_sources, open_source
from daskw2v.corpus.streams import CHUNK, NO_SEPARATORS, decompressed, line_chunks, line_start, pieces
from daskw2v.corpus.tokenizers import Tokenizer, tokenize
from daskw2v.errors import InputError
from daskw2v.locations import Location
from daskw2v.steady import PATIENCE

__all__ = ["ReadReport", "Text", "Tokens", "read_block", "read_file"]

_BOM = b"\xef\xbb\xbf"
_OTHER_BOMS = {  # the longer first: UTF-32's begins as UTF-16's
    b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16",
}  # fmt: skip
LONGEST_PART = 1 << 26  # bytes of a line of JSON, or of a word: it is held whole, and may take twenty times as much


def read_block(
    block: Block,
    *,
    column: str,
    errors: str,
    tokenizer: Tokenizer,
    storage_options: dict[str, Any],
    report: ReadReport,
    patience: float = PATIENCE,
) -> Iterator[Text | Tokens]:
    """Read the sentences of a block, in pieces of 128 KiB, of longer lines up to 4 MiB.

    A line belongs to the block in which it starts. A line of plain text may be longer than memory (its pieces
    are cut between tokens); a line of JSONL is held whole, and may have 64 MiB.

    Parameters
    ----------
    block
        What to read.
    column
        Key (JSONL) or column (Parquet) that holds text, or lists of tokens.
    errors
        "strict" stops at invalid input. "replace" puts U+FFFD for invalid UTF-8, "skip" drops the line; both
        drop JSONL lines that cannot be understood.
    tokenizer
        From `make_tokenizer`; lists of tokens are taken as they are.
    storage_options
        Options for fsspec.
    report
        Is added to while the pieces are read.
    patience
        Seconds to wait for each answer of where the file lies.

    Yields
    ------
    Text or Tokens
        The sentences in order. The last Text before a Tokens, and the last of all, ends its sentence.

    Raises
    ------
    InputError
        If the file changed since it was found, is damaged, in UTF-16 or UTF-32, or offends in strict mode; if a line
        of JSONL or a word is too long; if the tokenizer fails.
    """
    tokenizer = partial(tokenize, tokenizer, block.source.url)
    policy = Policy(errors, report)
    with open_source(block.source, storage_options, patience) as file:
        if block.source.format == "parquet":
            yield from read_parquet(file, block, column, policy, tokenizer)
        elif block.source.format == "jsonl":
            yield from _read_jsonl(file, block, column, policy, tokenizer)
        else:
            yield from _read_text(file, block, policy, tokenizer)


def read_file(url: Location, storage_options: Mapping[str, Any], most: int, patience: float = PATIENCE) -> bytes:
    """Return all of a file, decompressed: a small one; or of all files that a pattern matches.

    Raises
    ------
    InputError
        If it cannot be found or read, or has more than `most` bytes.
    """
    content = bytearray()
    for source in find_sources(url, "text", storage_options, patience, folders=False):
        with open_source(source, storage_options, patience) as file:
            parts = iter(partial(file.read, CHUNK), b"")
            for chunk in decompressed(file, source.compression, source.url) if source.compression else parts:
                content += chunk
                if len(content) > most:
                    raise InputError(f"{url} is longer than {most:,} bytes.", "Give a shorter one.")
    return bytes(content)


def _read_text(file: Any, block: Block, policy: Policy, tokenizer: Tokenizer) -> Iterator[Text | Tokens]:
    for offset, data in text_pieces(file, block, policy.report, whole_lines=False):
        policy.report.count_lines(data)
        piece = tokenizer(policy.utf8(data, block.source.url, offset))
        if isinstance(piece, Tokens):
            policy.report.cut += not data.endswith(b"\n")
            if not len(piece.starts):
                continue
        yield piece


def text_pieces(file: Any, block: Block, report: ReadReport, *, whole_lines: bool) -> Iterator[tuple[int, bytes]]:
    """Yield where each piece of a block's text lies, and the piece, which ends after a line or between two words.

    Parameters
    ----------
    file, block
        The open file, and what of it is read: the lines that start there.
    report
        Is told the bytes read.
    whole_lines
        Cut after newlines only, however long a line is.

    Raises
    ------
    InputError
        If the file is damaged or no UTF-8, or a line (with `whole_lines`) or a word is too long to be held.
    """
    first, source = 0, block.source
    if source.compression:
        chunks = decompressed(file, source.compression, source.url)
    else:
        first = line_start(file, block.start, block.stop)
        if first >= block.stop:
            return
        chunks = line_chunks(file, first, block.stop)
    chunks = _in_parts(chunks, source.url, whole_lines=whole_lines)
    for offset, data in pieces(_counted(chunks, report), first, whole_lines=whole_lines):
        if offset == 0:
            _refuse_other_encodings(data, source.url)
        if offset == 0 and data.startswith(_BOM):
            yield len(_BOM), data[len(_BOM) :]
        else:
            yield offset, data


def _refuse_other_encodings(data: bytes, url: str) -> None:
    """Stop at the mark of another encoding: its text, read as UTF-8, would be letters between NUL bytes."""
    for mark, encoding in _OTHER_BOMS.items():
        if data.startswith(mark):
            raise InputError(f"{url} begins as {encoding} does; text must be UTF-8.", "Convert it, as iconv does.")


def _counted(chunks: Iterable[bytes], report: ReadReport) -> Iterator[bytes]:
    for chunk in chunks:
        report.bytes_read += len(chunk)
        yield chunk


def _in_parts(chunks: Iterable[bytes], url: str, *, whole_lines: bool) -> Iterator[bytes]:
    """Stop at a line of JSON, or a word, that memory may have no room for: a few packed MB can hold many GB of it."""
    held = 0
    for chunk in chunks:
        cut = chunk.rfind(b"\n") + 1 if whole_lines else len(chunk.rstrip(NO_SEPARATORS))
        held = len(chunk) - cut + (0 if cut else held)
        if held > LONGEST_PART:
            raise InputError(
                f"{url} has a {'line of JSON' if whole_lines else 'word'} of more than {LONGEST_PART:,} bytes.",
                "Cut it, or leave the file out: it may be no text.",
            )
        yield chunk


def _read_jsonl(file: Any, block: Block, column: str, policy: Policy, tokenizer: Tokenizer) -> Iterator[Text | Tokens]:
    for offset, data in text_pieces(file, block, policy.report, whole_lines=True):
        policy.report.count_lines(data)
        records = _records(data, block.source.url, offset, column, policy)
        for is_text, group in groupby(records, key=lambda record: isinstance(record, str)):
            values = list(group)
            piece = tokenizer("".join(f"{text}\n" for text in values).encode()) if is_text else tokens_of(values)
            if isinstance(piece, Text) or len(piece.starts):
                yield piece


def _records(data: bytes, url: str, offset: int, column: str, policy: Policy) -> Iterator[str | list[str]]:
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
    """Return what is wrong with a line ("" if nothing is), and its text or list of tokens."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"invalid JSON ({error})", None
    if not isinstance(record, dict):
        return f"a JSON {type(record).__name__} where an object should stand", None
    if column not in record:
        return f"no key {column!r}; the keys are: {', '.join(map(repr, record)) or 'none'}", None
    value = record[column]
    if isinstance(value, str):
        return "", value
    # bool is an int to Python, not to whoever wrote the file
    if isinstance(value, list) and all(type(token) in (str, int) for token in value):
        return "", value
    return f"{column!r} is neither a string nor a list of strings or integers", None
