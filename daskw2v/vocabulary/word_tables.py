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

Choose = Callable[[Sequence[str], str], list[str]]  # the columns to read, of the names of a table's columns and its URL


def read_table(
    source: Source, options: Mapping[str, Any], timeout: float, choose: Choose, types: Mapping[str, Any], kind: str
) -> Iterator[list[Any]]:
    """Yield the columns of a table that `choose` returns, batch by batch; raises what it raises.

    Parameters
    ----------
    source, options, timeout
        The file, options for fsspec, and seconds to wait for each answer of the store.
    choose
        Called with the names of all columns and the URL; returns the names of the columns to read.
    types
        Arrow types of columns of CSV, by name; others are inferred.
    kind
        Name of the kind of table, for errors.

    Raises
    ------
    InputError
        If the file cannot be read or is no table.
    """
    with _opened(source, options, timeout, types, kind) as table:
        yield from table.batches(choose(table.schema.names, source.url))


class Head(NamedTuple):
    """The head of a table, which is known before its rows are read.

    Parameters
    ----------
    types
        Arrow types of the columns that are chosen, by name.
    empty
        Whether it has no row.
    """

    types: dict[str, Any]
    empty: bool


def read_head(
    source: Source, options: Mapping[str, Any], timeout: float, choose: Choose, types: Mapping[str, Any], kind: str
) -> Head:
    """Return the head of a table, from metadata or the first block of CSV; takes and raises what `read_table` does."""
    with _opened(source, options, timeout, types, kind) as table:
        chosen = choose(table.schema.names, source.url)
        return Head({name: table.schema.field(name).type for name in chosen}, table.is_empty())


def word_column(names: Sequence[str], url: str, columns: str) -> str:
    """Return the name of the column of words.

    Raises
    ------
    InputError
        If there is none, or several of that name; it says which `columns` the table is to have.
    """
    word = next((name for name in NAMES if name in names), WORD)
    return single(names, word, url, columns)


def single(names: Sequence[str], name: str, url: str, columns: str) -> str:
    """Return the name of a column that is there once; raises as `word_column` does."""
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
    batches: Callable[[Sequence[str]], Iterator[list[Any]]]


@contextmanager
def _opened(
    source: Source, options: Mapping[str, Any], timeout: float, types: Mapping[str, Any], kind: str
) -> Iterator[_Table]:
    """Give a table; raises as `read_table` does, also while it is read."""
    opened = _OPENERS.get(source.format)
    if opened is None:
        raise InputError(f"{source.url} is {source.format}, not a {kind}.", "Give Parquet or CSV.")
    with open_source(source, options, timeout) as file, reading_as(source.format, source.url):
        yield opened(file, source, types)


def _open_parquet(file: Any, source: Source, _: Mapping[str, Any]) -> _Table:
    parquet = pq.ParquetFile(file, page_checksum_verification=True)

    def batches(names: Sequence[str]) -> Iterator[list[Any]]:
        for batch in parquet.iter_batches(_ROWS, columns=names):
            batch.validate(full=True)  # a damaged file may point outside its dictionaries
            yield [batch.column(name) for name in names]

    return _Table(parquet.schema_arrow, lambda: not parquet.metadata.num_rows, batches)


def _open_csv(file: Any, source: Source, types: Mapping[str, Any], delimiter: str) -> _Table:
    reader = pa_csv.open_csv(
        pa.CompressedInputStream(file, source.compression) if source.compression else file,
        pa_csv.ReadOptions(use_threads=False),
        pa_csv.ParseOptions(delimiter=delimiter),
        pa_csv.ConvertOptions(column_types={**dict.fromkeys(NAMES, pa.string()), **types}),
    )

    def batches(names: Sequence[str]) -> Iterator[list[Any]]:
        for batch in reader:
            yield [batch.column(name) for name in names]

    return _Table(reader.schema, lambda: not any(map(len, reader)), batches)


_OPENERS: Mapping[str, Callable[..., _Table]] = {
    PARQUET.name: _open_parquet,
    CSV.name: partial(_open_csv, delimiter=","),
    TSV.name: partial(_open_csv, delimiter="\t"),
}
