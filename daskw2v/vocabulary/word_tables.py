"""Tables of the user's that say something of words, in Parquet or CSV: read in record batches of Arrow."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from daskw2v.corpus.files import Source, open_source
from daskw2v.corpus.formats import PARQUET
from daskw2v.corpus.formats.columns import is_string, reading_as
from daskw2v.corpus.formats.csv import CSV, TSV
from daskw2v.errors import InputError
from daskw2v.extras import Extra

pa, pa_csv, pq = Extra("pyarrow", "arrow"), Extra("pyarrow.csv", "arrow"), Extra("pyarrow.parquet", "arrow")

WORD = "word"
NAMES = (WORD, "item")  # of the column of words, the first that is there
_ROWS = 1 << 16  # of a Parquet file read at once

Choose = Callable[[Sequence[str], str], list[str]]  # which columns are read, of those that a URL's table has


def read_table(
    source: Source, options: Mapping[str, Any], timeout: float, choose: Choose, types: Mapping[str, Any], kind: str
) -> Iterator[list[Any]]:
    """Yield some columns of a table, batch by batch; raises what `choose` raises.

    Parameters
    ----------
    source, options, timeout
        The file, options for fsspec, and seconds to wait for each answer of the store.
    choose
        Returns the names of the columns, given all of them and the URL.
    types
        Arrow types of columns of CSV, by name; others are inferred.
    kind
        What the table is, for errors.

    Raises
    ------
    InputError
        If the file cannot be read or is no table.
    """
    read = _READERS.get(source.format)
    if read is None:
        raise InputError(f"{source.url} is {source.format}, not a {kind}.", "Give Parquet or CSV.")
    with open_source(source, options, timeout) as file, reading_as(source.format, source.url):
        yield from read(file, source, choose, types)


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
    if not (is_string(column.type) or pa.types.is_integer(column.type) or pa.types.is_null(column.type)):
        raise InputError(f"The {name}s of {url} are of type {column.type}.", "Give strings or integers.")
    return column.cast(pa.large_string()).fill_null("")


def _read_parquet(file: Any, source: Source, choose: Choose, _: Mapping[str, Any]) -> Iterator[list[Any]]:
    parquet = pq.ParquetFile(file, page_checksum_verification=True)
    names = choose(parquet.schema_arrow.names, source.url)
    for batch in parquet.iter_batches(_ROWS, columns=names):
        yield [batch.column(name) for name in names]


def _read_csv(
    file: Any, source: Source, choose: Choose, types: Mapping[str, Any], delimiter: str
) -> Iterator[list[Any]]:
    batches = pa_csv.open_csv(
        pa.CompressedInputStream(file, source.compression) if source.compression else file,
        pa_csv.ReadOptions(use_threads=False),
        pa_csv.ParseOptions(delimiter=delimiter),
        pa_csv.ConvertOptions(column_types={**dict.fromkeys(NAMES, pa.string()), **types}),
    )
    names = choose(batches.schema.names, source.url)
    for batch in batches:
        yield [batch.column(name) for name in names]


_READERS: Mapping[str, Callable[..., Iterator[list[Any]]]] = {
    PARQUET.name: _read_parquet,
    CSV.name: partial(_read_csv, delimiter=","),
    TSV.name: partial(_read_csv, delimiter="\t"),
}
