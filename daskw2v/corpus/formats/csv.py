"""CSV and TSV with a header. A file is one block: whether a newline ends a row depends on all rows before it."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from daskw2v.corpus.files import Source, TextBlock
from daskw2v.corpus.formats.base import Format, cut_short
from daskw2v.corpus.formats.columns import column_of, find_columns, in_slices, read_arrays, reading_as
from daskw2v.corpus.invalid import InvalidInput, refuse_no_text
from daskw2v.corpus.pieces import RawText, Tokens
from daskw2v.corpus.streams import CHUNK, chunks_of
from daskw2v.corpus.tokenizers import Tokenizer
from daskw2v.errors import InputError
from daskw2v.extras import Extra

pa, pa_csv = Extra("pyarrow", "arrow"), Extra("pyarrow.csv", "arrow")

_TITLE = "CSV"
ROW = 1 << 24  # most bytes of a row, and bytes parsed at once


class _Stream(io.RawIOBase):
    """Chunks of bytes as a file."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks, self._rest = iter(chunks), memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest and (chunk := next(self._chunks, None)) is not None:
            self._rest = memoryview(chunk)
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


class Table:
    """An open table: its header, and its rows, which are counted.

    Parameters
    ----------
    file
        The file, open for reading bytes.
    source, delimiter
        Its description, and the text between fields.
    skip
        Called with the place of a row that has another number of fields than the header, and the problem. The row is
        left out unless this raises an InputError.
    """

    def __init__(self, file: Any, source: Source, delimiter: str, skip: Callable[[str, str], None]) -> None:
        self._url, self._delimiter, self._skip = source.url, delimiter, skip
        chunks = chunks_of(file, source.compression, source.url)
        text = io.BufferedReader(_Stream(chain(chunks, [b"\n"])))  # without an end, a header alone would be no row
        start = text.read(CHUNK)
        refuse_no_text(start, source.url)
        self._text = io.BufferedReader(_Stream(chain([start], iter(partial(text.read, CHUNK), b""))))
        self._refused: InputError | None = None
        self.schema = _header(start, source.url, delimiter)
        self.done = 1  # the header; rows that are dropped are not counted

    def _drop(self, row: Any) -> str:
        """Handle a row with another number of fields, as pyarrow asks."""
        place = f"{self._url}, row {row.number} (the header is row 1)"
        try:
            self._skip(place, f"{row.actual_columns} fields, where the header has {row.expected_columns}")
        except InputError as error:  # pyarrow would print it
            self._refused = error
            return "error"
        return "skip"

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield columns as text, as it is written, in record batches of bounded size.

        Raises
        ------
        InputError
            If the rows cannot be parsed. Text may be invalid UTF-8.
        """
        texts = dict.fromkeys(columns, pa.string())
        try:
            reader = pa_csv.open_csv(
                self._text,
                pa_csv.ReadOptions(use_threads=False, block_size=ROW),
                pa_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=self._drop),
                pa_csv.ConvertOptions(check_utf8=False, include_columns=columns, column_types=texts),
            )
            yield from reader
        except pa.ArrowInvalid as error:
            raise self._refused or InputError(
                f"{self._url} cannot be read as CSV after row {self.done:,} ({error}).",
                f"Repair the file. A row may have {ROW:,} bytes; an open quote makes one of all that follow.",
            ) from None


def _cut(source: Source, block_bytes: int, storage_options: Mapping[str, Any], timeout: float) -> list[TextBlock]:
    if not source.size:
        raise cut_short(source, _TITLE)
    return [TextBlock(source, 0, source.size)]


def _read(
    file: Any,
    block: TextBlock,
    column: str,
    policy: InvalidInput,
    tokenizer: Tokenizer,
    *,
    usual: str,
    delimiter: str | None = None,
    weight: str | None = None,
) -> Iterator[RawText | Tokens]:
    """Read a column of text, whose lines are sentences. A row may have 16 MiB.

    Parameters
    ----------
    usual
        The delimiter of such files.
    delimiter
        That of Params, if any.
    weight
        Column of the rows' weights.
    """
    source = block.source
    with reading_as(_TITLE, source.url):
        rows = Table(file, source, delimiter or usual, policy.skip)
        columns = find_columns(rows.schema, column, weight, source.url)
        for part in in_slices(rows.batches(columns.names)):
            place = f"{source.url}, column {column!r} from row {rows.done + 1} on,"
            yield from read_arrays(columns.arrays([part], column_of), place, policy, tokenizer)
            rows.done += len(part)


def _header(start: bytes, url: str, delimiter: str) -> Any:
    """Return the names in the first row, as a schema. What follows may be cut anywhere, which pyarrow refuses."""
    if len(start) == CHUNK and b"\n" not in start and b"\r" not in start:
        raise InputError(f"{url} has a header of more than {CHUNK:,} bytes.", "Leave columns out.")
    text = io.StringIO(start.decode("utf-8-sig", errors="replace"), newline="")
    names: list[str] = next(filter(None, csv.reader(text, delimiter=delimiter)), [])
    return pa.schema([(name, pa.string()) for name in names])


DELIMITERS = {"csv": ",", "tsv": "\t"}  # by the format's name


def _separated(name: str, title: str) -> Format:
    read, own = partial(_read, usual=DELIMITERS[name]), ("column", "weight", "delimiter")
    requires = "pyarrow", "arrow"
    return Format(name=name, title=title, suffixes=(f".{name}",), cut=_cut, read=read, honours=own, requires=requires)


CSV, TSV = _separated("csv", "CSV"), _separated("tsv", "TSV")
