"""The user's tables about words, in Parquet or CSV: read in record batches of Arrow."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from daskw2v.corpus.files import Source, open_source
from daskw2v.corpus.formats import PARQUET
from daskw2v.corpus.formats.columns import is_string, reading_as
from daskw2v.corpus.formats.csv import CSV, TSV
from daskw2v.errors import InputError
from daskw2v.extras import Extra

pa, pa_csv, pq = Extra("pyarrow", "arrow"), Extra("pyarrow.csv", "arrow"), Extra("pyarrow.parquet", "arrow")

WORD = "word"
NAMES = (WORD, "item")  # of the column of words: the first that a table has
_ROWS = 1 << 16  # of a Parquet file read at once


class Head(NamedTuple):
    """The head of a table, which is known before its rows are read.

    Parameters
    ----------
    types
        Arrow types of the columns that are read, by name.
    empty
        Whether it has no row.
    """

    types: dict[str, Any]
    empty: bool


class TableKind(NamedTuple):
    """A kind of tables.

    Parameters
    ----------
    title
        Its name, for errors.
    choose
        Function of the names of all columns of a table and its URL, which returns the columns to read.
    csv_types
        Function that returns the Arrow types of columns of CSV, by name; other types are inferred.
    """

    title: str
    choose: Callable[[Sequence[str], str], list[str]]
    csv_types: Callable[[], Mapping[str, Any]] = dict

    def read(self, source: Source, options: Mapping[str, Any], timeout: float) -> Iterator[Any]:
        """Yield the columns of a table, in record batches of Arrow.

        Parameters
        ----------
        source, options, timeout
            The file, options for fsspec, and seconds to wait for each answer of the store.

        Raises
        ------
        InputError
            If the file cannot be read or is no table; and errors of `choose`.
        """
        with self._opened(source, options, timeout) as (table, columns):
            yield from table.batches(columns)

    def head(self, source: Source, options: Mapping[str, Any], timeout: float) -> Head:
        """Return the head of a table, from metadata or the first block of CSV; arguments and errors as in `read`."""
        with self._opened(source, options, timeout) as (table, columns):
            return Head({name: table.schema.field(name).type for name in columns}, table.is_empty())

    @contextmanager
    def _opened(
        self, source: Source, options: Mapping[str, Any], timeout: float
    ) -> Iterator[tuple["_Table", list[str]]]:
        """Open a table; return it and the columns to read. Errors as in `read`, also while it is read."""
        opened = _OPENERS.get(source.format)
        if opened is None:
            raise InputError(f"{source.url} is {source.format}, not a {self.title}.", "Give Parquet or CSV.")
        with open_source(source, options, timeout) as file, reading_as(source.format, source.url):
            table = opened(file, source, self.csv_types())
            yield table, self.choose(table.schema.names, source.url)


def word_column(names: Sequence[str], url: str, columns: str) -> str:
    """Return the name of the column of words.

    Raises
    ------
    InputError
        If there is none, or several of that name; the message names the `columns` that a table must have.
    """
    word = next((name for name in NAMES if name in names), WORD)
    return single(names, word, url, columns)


def single(names: Sequence[str], name: str, url: str, columns: str) -> str:
    """Return the name of a column that a table has once; raises as `word_column` does."""
    if names.count(name) != 1:
        raise InputError(
            f"{url} has no single column {name!r}.",
            f"Give a table with the columns {columns}; its columns are: {', '.join(names) or 'none'}.",
        )
    return name


def as_text(column: Any, name: str, url: str) -> Any:
    """Return a column of strings or integers as text, nulls as "".

    Raises
    ------
    InputError
        If it is of another type.
    """
    check_text(column.type, name, url)
    return column.cast(pa.large_string()).fill_null("")


def check_text(kind: Any, name: str, url: str) -> None:
    """Refuse a column of an Arrow type that `as_text` refuses."""
    if not (is_string(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise InputError(f"The {name}s of {url} are of type {kind}.", "Give strings or integers.")


class _Table(NamedTuple):
    """An open table: its schema; functions that return whether it has no row, and the batches of named columns."""

    schema: Any
    is_empty: Callable[[], bool]
    batches: Callable[[Sequence[str]], Iterator[Any]]


def _open_parquet(file: Any, source: Source, _: Mapping[str, Any]) -> _Table:
    parquet = pq.ParquetFile(file, page_checksum_verification=True)

    def batches(names: Sequence[str]) -> Iterator[Any]:
        for batch in parquet.iter_batches(_ROWS, columns=names):
            batch.validate(full=True)  # a damaged file may point outside its dictionaries
            yield batch.select(names)

    return _Table(parquet.schema_arrow, lambda: not parquet.metadata.num_rows, batches)


def _open_csv(file: Any, source: Source, types: Mapping[str, Any], delimiter: str) -> _Table:
    reader = pa_csv.open_csv(
        pa.CompressedInputStream(file, source.compression) if source.compression else file,
        pa_csv.ReadOptions(use_threads=False),
        pa_csv.ParseOptions(delimiter=delimiter),
        pa_csv.ConvertOptions(column_types={**dict.fromkeys(NAMES, pa.string()), **types}),
    )
    return _Table(
        reader.schema, lambda: not any(map(len, reader)), lambda names: (batch.select(names) for batch in reader)
    )


_OPENERS: Mapping[str, Callable[..., _Table]] = {
    PARQUET.name: _open_parquet,
    CSV.name: partial(_open_csv, delimiter=","),
    TSV.name: partial(_open_csv, delimiter="\t"),
}
