"""The registry of input formats. A new format is a module in this folder and a line below."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from daskw2v.config.choice import refuse_unread
from daskw2v.config.params import Params
from daskw2v.config.registry import Registry
from daskw2v.corpus.files import TextBlock, open_source
from daskw2v.corpus.formats.arrow import ARROW
from daskw2v.corpus.formats.base import Format
from daskw2v.corpus.formats.csv import CSV, TSV
from daskw2v.corpus.formats.jsonl import JSONL
from daskw2v.corpus.formats.orc import ORC
from daskw2v.corpus.formats.parquet import PARQUET
from daskw2v.corpus.formats.text import TEXT
from daskw2v.corpus.invalid import InvalidInput
from daskw2v.corpus.pieces import Piece, ReadReport
from daskw2v.corpus.tokenizers import Tokenizer, tokenize
from daskw2v.store.retries import TIMEOUT

__all__ = ["CSV", "FORMATS", "JSONL", "PARQUET", "TEXT", "TSV", "Format", "check_formats", "find_format", "read_block"]

_BUILT_IN = (TEXT, JSONL, CSV, TSV, PARQUET, ARROW, ORC)
FORMATS = Registry("format", "daskw2v.formats", Format, {format.name: format for format in _BUILT_IN})


def find_format(name: str) -> Format:
    """Return the format with a name; raises a ParameterError that lists all names if there is none."""
    return FORMATS.find(name)


def check_formats(names: Iterable[str], params: Params) -> None:
    """Refuse fields of Params that none of the named formats reads.

    Raises
    ------
    ParameterError
        If a format does not exist, or a field that only further formats read differs from its default.
    """
    names = list(dict.fromkeys(names))
    refuse_unread(params, "format", names, {**FORMATS, **{name: find_format(name) for name in names}})


def read_block(
    block: TextBlock,
    *,
    column: str,
    errors: str,
    tokenizer: Tokenizer,
    storage_options: dict[str, Any],
    report: ReadReport,
    timeout: float = TIMEOUT,
    also: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[Piece]:
    """Read the sentences of a block of text in pieces of 128 KiB, or up to 4 MiB for longer lines.

    A line belongs to the block in which it starts. A line of plain text may be larger than memory, since its pieces
    are cut between tokens. A line of JSONL is read at once and may have 64 MiB.

    Parameters
    ----------
    block
        The block to read.
    column
        Key (JSONL) or column (tables) of the text, or of lists of tokens.
    errors
        "strict" stops at invalid input. "replace" replaces invalid UTF-8 by U+FFFD, "skip" drops the line. "replace"
        and "skip" drop unreadable JSONL lines and rows of CSV.
    tokenizer
        Result of `make_tokenizer`. Lists of tokens are not tokenized.
    storage_options
        Options for fsspec.
    report
        Counts, to which each piece is added when it is read.
    timeout
        Seconds to wait for each answer of the store.
    also
        Further fields of Params, of which a format gets those that it honours.

    Yields
    ------
    RawText or Tokens
        The sentences in order. A `RawText` ends its sentence if `Tokens` follow, or if it is the last piece.

    Raises
    ------
    InputError
        If the file changed since it was listed, is damaged, holds no text by its first bytes, or is invalid in strict
        mode; if a line of JSONL or a word is too long; if the tokenizer fails.
    ParameterError
        If a user's tokenizer returns anything but lists of strings.
    StoreError
        As `open_source`.
    """
    tokenizer = replace(tokenizer, cut=partial(tokenize, tokenizer, block.source.url))
    with open_source(block.source, storage_options, timeout) as file:
        format, policy = find_format(block.source.format), InvalidInput(errors, report)
        options = {name: also[name] for name in format.honours if name in also and name != "column"}
        yield from format.read(file, block, column, policy, tokenizer, **options)
