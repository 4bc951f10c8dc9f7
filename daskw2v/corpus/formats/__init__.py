"""The registry of input formats. A new one is a module here and a line below."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from daskw2v.config.registry import Registry
from daskw2v.corpus.files import TextBlock, open_source
from daskw2v.corpus.formats.base import Format
from daskw2v.corpus.formats.jsonl import JSONL
from daskw2v.corpus.formats.parquet import PARQUET
from daskw2v.corpus.formats.text import TEXT
from daskw2v.corpus.invalid import InvalidInput
from daskw2v.corpus.pieces import RawText, ReadReport, Tokens
from daskw2v.corpus.tokenizers import Tokenizer, tokenize
from daskw2v.store.retries import TIMEOUT

__all__ = ["FORMATS", "JSONL", "PARQUET", "TEXT", "Format", "find_format", "read_block"]

FORMATS = Registry("format", "daskw2v.formats", Format, {format.name: format for format in (TEXT, JSONL, PARQUET)})


def find_format(name: str) -> Format:
    """Return the format of that name, or raise a ParameterError that lists them."""
    return FORMATS.find(name)


def read_block(
    block: TextBlock,
    *,
    column: str,
    errors: str,
    tokenizer: Tokenizer,
    storage_options: dict[str, Any],
    report: ReadReport,
    timeout: float = TIMEOUT,
) -> Iterator[RawText | Tokens]:
    """Read the sentences of a block in pieces of 128 KiB, or up to 4 MiB for longer lines.

    A line belongs to the block in which it starts. A line of plain text may be larger than memory, since its pieces
    are cut between tokens. A line of JSONL is read whole and may have 64 MiB.

    Parameters
    ----------
    block
        The block.
    column
        Key (JSONL) or column (Parquet) of the text, or of lists of tokens.
    errors
        "strict" stops at invalid input. "replace" replaces invalid UTF-8 by U+FFFD, "skip" drops the line. Both drop
        unreadable JSONL lines.
    tokenizer
        Result of `make_tokenizer`. Lists of tokens are not tokenized.
    storage_options
        Options for fsspec.
    report
        Updated while pieces are read.
    timeout
        Seconds to wait for each answer of the store.

    Yields
    ------
    RawText or Tokens
        The sentences in order. A `RawText` ends its sentence if `Tokens` follow, or if it is the last piece.

    Raises
    ------
    InputError
        If the file changed since it was found, is damaged, is UTF-16 or UTF-32, or is invalid in strict mode; if a
        line of JSONL or a word is too long; if the tokenizer fails.
    """
    tokenizer = replace(tokenizer, cut=partial(tokenize, tokenizer, block.source.url))
    with open_source(block.source, storage_options, timeout) as file:
        yield from find_format(block.source.format).read(file, block, column, InvalidInput(errors, report), tokenizer)
