"""CSV and TSV with a header. A file is one block: whether a newline ends a row depends on all rows before it."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from daskw2v.corpus.files import Source, TextBlock
from daskw2v.corpus.formats.base import Format, empty_file_error
from daskw2v.corpus.formats.columns import converting_arrow_errors, cut_slices, find_columns, get_column, read_arrays
from daskw2v.corpus.invalid import InvalidInput, refuse_no_text
from daskw2v.corpus.pieces import Piece
from daskw2v.corpus.streams import CHUNK, read_file_chunks
from daskw2v.corpus.tokenizers import Tokenizer
from daskw2v.errors import InputError
from daskw2v.extras import Extra

pa, pa_csv = Extra("pyarrow", "arrow"), Extra("pyarrow.csv", "arrow")

_TITLE = "CSV"
ROW = 1 << 24  # maximum bytes of a row, and bytes parsed at once


class _Stream(io.RawIOBase):
    """A file that is read from chunks of bytes."""

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


class CsvTable:
    """An open table of CSV: its header, and its rows.

    Parameters
    ----------
    file, source
        The file, open for reading bytes as stored, and its description.
    delimiter
        The character between fields.
    skip
        Called with the location of a row that has another number of fields than the header, and with the problem. The
        row is left out, unless `skip` raises an InputError.

    Attributes
    ----------
    schema
        Arrow schema of the columns' names; all columns are read as text.
    n_rows
        Number of rows that were read, with the header; users of `batches` count them. Skipped rows are not counted.
    """

    def __init__(self, file: Any, source: Source, delimiter: str, skip: Callable[[str, str], None]) -> None:
        self._url, self._delimiter, self._skip = source.url, delimiter, skip
        chunks = read_file_chunks(file, source.compression, source.url)
        text = io.BufferedReader(_Stream(chain(chunks, [b"\n"])))  # without an end, a header alone would be no row
        start = text.read(CHUNK)
        refuse_no_text(start, source.url)
        self._text = io.BufferedReader(_Stream(chain([start], iter(partial(text.read, CHUNK), b""))))
        self._error: InputError | None = None
        self.schema = _read_header(start, source.url, delimiter)
        self.n_rows = 1

    def _handle_invalid_row(self, row: Any) -> str:
        """Return "skip" or "error" for pyarrow's `InvalidRow`, which has another number of fields than the header."""
        location = f"{self._url}, row {row.number} (the header is row 1)"
        try:
            self._skip(location, f"{row.actual_columns} fields, where the header has {row.expected_columns}")
        except InputError as error:  # pyarrow would print it
            self._error = error
            return "error"
        return "skip"

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the named columns as strings, as they are written, in record batches of bounded size.

        Raises
        ------
        InputError
            If the rows cannot be parsed. Text may be invalid UTF-8.
        """
        types = dict.fromkeys(columns, pa.string())
        parse = pa_csv.ParseOptions(
            delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=self._handle_invalid_row
        )
        try:
            reader = pa_csv.open_csv(
                self._text,
                pa_csv.ReadOptions(use_threads=False, block_size=ROW),
                parse,
                pa_csv.ConvertOptions(check_utf8=False, include_columns=columns, column_types=types),
            )
            yield from reader
        except pa.ArrowInvalid as error:
            raise self._error or InputError(
                f"{self._url} cannot be read as CSV after row {self.n_rows:,} ({error}).",
                f"Repair the file. A row may have {ROW:,} bytes; an open quote makes one of all that follow.",
            ) from None


def _cut(source: Source, block_bytes: int, storage_options: Mapping[str, Any], timeout: float) -> list[TextBlock]:
    """Return the only block of a file, as `Format.cut` does; refuse an empty file by an InputError."""
    if not source.size:
        raise empty_file_error(source, _TITLE)
    return [TextBlock(source, 0, source.size)]


def _read(
    file: Any,
    block: TextBlock,
    column: str,
    policy: InvalidInput,
    tokenizer: Tokenizer,
    *,
    default_delimiter: str,
    delimiter: str | None = None,
    weight: str | None = None,
) -> Iterator[Piece]:
    """Read a column of text, whose lines are sentences. A row may have 16 MiB.

    Parameters
    ----------
    file, block, column, policy, tokenizer
        As for `Format.read`.
    default_delimiter
        The delimiter of the format.
    delimiter
        The delimiter of Params; None for that of the format.
    weight
        Name of the column of the rows' weights; None if rows count once.
    """
    source = block.source
    with converting_arrow_errors(_TITLE, source.url):
        table = CsvTable(file, source, delimiter or default_delimiter, policy.skip)
        columns = find_columns(table.schema, column, weight, source.url)
        for part in cut_slices(table.batches(columns.names)):
            location = f"{source.url}, column {column!r} from row {table.n_rows + 1} on,"
            yield from read_arrays(columns.arrays([part], get_column), location, policy, tokenizer)
            table.n_rows += len(part)


def _read_header(start: bytes, url: str, delimiter: str) -> Any:
    """Return the names in the first row of a table as an Arrow schema of strings; refuse a header above `CHUNK` bytes.

    `start` are the first bytes of the table, which may end inside a row; pyarrow would refuse them.
    """
    if len(start) == CHUNK and b"\n" not in start and b"\r" not in start:
        raise InputError(f"{url} has a header of more than {CHUNK:,} bytes.", "Leave columns out.")
    text = io.StringIO(start.decode("utf-8-sig", errors="replace"), newline="")
    names: list[str] = next(filter(None, csv.reader(text, delimiter=delimiter)), [])
    return pa.schema([(name, pa.string()) for name in names])


DELIMITERS = {"csv": ",", "tsv": "\t"}  # by the format's name


def _delimited_format(name: str, title: str) -> Format:
    """Return a format of delimited text: its name, which is also its suffix, and its title in messages."""
    read, honours = partial(_read, default_delimiter=DELIMITERS[name]), ("column", "weight", "delimiter")
    suffixes, requires = (f".{name}",), ("pyarrow", "arrow")
    return Format(name=name, title=title, suffixes=suffixes, cut=_cut, read=read, honours=honours, requires=requires)


CSV, TSV = _delimited_format("csv", "CSV"), _delimited_format("tsv", "TSV")
