"""The user's tables about words, in Parquet or CSV: read in record batches of Arrow."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from daskw2v.corpus.files import Source, open_source
from daskw2v.corpus.formats import PARQUET
from daskw2v.corpus.formats.columns import converting_arrow_errors, is_string
from daskw2v.corpus.formats.csv import CSV, TSV
from daskw2v.errors import InputError
from daskw2v.extras import Extra

pa, pa_csv, pq = Extra("pyarrow", "arrow"), Extra("pyarrow.csv", "arrow"), Extra("pyarrow.parquet", "arrow")

WORD = "word"
NAMES = (WORD, "item")  # names of the column of words: the first that a table has
_BATCH_ROWS = 1 << 16  # rows of a Parquet file read at once


class Head(NamedTuple):
    """Facts of a table that are known before its rows are read.

    Parameters
    ----------
    types
        Arrow type of each column that is read, by the column's name.
    is_empty
        Whether the table has no row.
    """

    types: dict[str, Any]
    is_empty: bool


class TableKind(NamedTuple):
    """A kind of tables that users give, such as tables of markets.

    Parameters
    ----------
    title
        Name of the kind in messages.
    choose
        Function of the names of all columns of a table and the table's URL, which returns the names of the columns to
        read, or raises an InputError if a required column is missing.
    csv_types
        Function that returns the Arrow types of columns of CSV, by name; types of further columns are inferred.
    """

    title: str
    choose: Callable[[Sequence[str], str], list[str]]
    csv_types: Callable[[], Mapping[str, Any]] = dict

    def read(self, source: Source, options: Mapping[str, Any], timeout: float) -> Iterator[Any]:
        """Yield the columns of a table that `choose` returned, in its order, in record batches of Arrow.

        Parameters
        ----------
        source, options, timeout
            The file, options for fsspec, and seconds to wait for each answer of the store.

        Raises
        ------
        InputError
            If the file cannot be read, is no table, or lacks a required column.
        """
        with self._open(source, options, timeout) as (table, columns):
            yield from table.batches(columns)

    def head(self, source: Source, options: Mapping[str, Any], timeout: float) -> Head:
        """Return the head of a table, of which metadata or the first block of CSV is read.

        Parameters and errors are those of `read`.
        """
        with self._open(source, options, timeout) as (table, columns):
            return Head({name: table.schema.field(name).type for name in columns}, table.is_empty())

    @contextmanager
    def _open(
        self, source: Source, options: Mapping[str, Any], timeout: float
    ) -> Iterator[tuple["_Opened", list[str]]]:
        """Yield an open table and the names of the columns to read; raises as `read` does, also in the block."""
        open_table = _OPENERS.get(source.format)
        if open_table is None:
            raise InputError(f"{source.url} is {source.format}, not a {self.title}.", "Give Parquet or CSV.")
        with open_source(source, options, timeout) as file, converting_arrow_errors(source.format, source.url):
            table = open_table(file, source, self.csv_types())
            yield table, self.choose(table.schema.names, source.url)


def find_word_column(names: Sequence[str], url: str, required: str) -> str:
    """Return the name of the column of words: the first of `NAMES` that a table has.

    Parameters
    ----------
    names, url
        Names of all columns of the table, and its URL.
    required
        The columns that such a table must have, for the message of the error.

    Raises
    ------
    InputError
        If the table has no column of words, or several of one name.
    """
    word = next((name for name in NAMES if name in names), WORD)
    return single(names, word, url, required)


def single(names: Sequence[str], name: str, url: str, required: str) -> str:
    """Return a column's name, if exactly one of the names of a table's columns is equal to it.

    Parameters and errors are those of `find_word_column`.
    """
    if names.count(name) != 1:
        remedy = f"Give a table with the columns {required}; its columns are: {', '.join(names) or 'none'}."
        raise InputError(f"{url} has no single column {name!r}.", remedy)
    return name


def as_text(column: Any, name: str, url: str) -> Any:
    """Return an Arrow column of strings or integers as `large_string`, with "" for nulls.

    Raises
    ------
    InputError
        If the column is of another type.
    """
    check_text(column.type, name, url)
    return column.cast(pa.large_string()).fill_null("")


def check_text(kind: Any, name: str, url: str) -> None:
    """Refuse a column whose Arrow type is not one that `as_text` converts; raises an InputError."""
    if not (is_string(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise InputError(f"The {name}s of {url} are of type {kind}.", "Give strings or integers.")


class _Opened(NamedTuple):
    """An open table.

    Parameters
    ----------
    schema
        Arrow schema of all columns.
    is_empty
        Function that returns whether the table has no row.
    batches
        Function of names of columns, which yields these columns in record batches.
    """

    schema: Any
    is_empty: Callable[[], bool]
    batches: Callable[[Sequence[str]], Iterator[Any]]


def _open_parquet(file: Any, source: Source, _: Mapping[str, Any]) -> _Opened:
    """Return the table in an open Parquet file."""
    parquet = pq.ParquetFile(file, page_checksum_verification=True)

    def batches(names: Sequence[str]) -> Iterator[Any]:
        """Yield the named columns, as `_Opened.batches` does."""
        for batch in parquet.iter_batches(_BATCH_ROWS, columns=names):
            batch.validate(full=True)  # a damaged file may point outside its dictionaries
            yield batch.select(names)

    return _Opened(parquet.schema_arrow, lambda: not parquet.metadata.num_rows, batches)


def _open_csv(file: Any, source: Source, types: Mapping[str, Any], delimiter: str) -> _Opened:
    """Return the table in an open CSV file; `types` are Arrow types of columns by name."""
    reader = pa_csv.open_csv(
        pa.CompressedInputStream(file, source.compression) if source.compression else file,
        pa_csv.ReadOptions(use_threads=False),
        pa_csv.ParseOptions(delimiter=delimiter),
        pa_csv.ConvertOptions(column_types={**dict.fromkeys(NAMES, pa.string()), **types}),
    )
    return _Opened(
        reader.schema, lambda: not any(map(len, reader)), lambda names: (batch.select(names) for batch in reader)
    )


_OPENERS: Mapping[str, Callable[..., _Opened]] = {
    PARQUET.name: _open_parquet,
    CSV.name: partial(_open_csv, delimiter=","),
    TSV.name: partial(_open_csv, delimiter="\t"),
}
