"""Markets of words, such as the cities of listings: tables that name them, and the market of each word.

A table has the columns `word`, or `item`, and `market`, and may have `count`: how often the word occurs in the market;
without the column, once for each row. A word's market is the market with the highest count; of equal counts, the first
by name. Counts are added up over tables, so that several tables mean the same as one table with all their rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from daskw2v.corpus.files import Source
from daskw2v.corpus.formats.columns import strings_of
from daskw2v.errors import InputError
from daskw2v.extras import Extra
from daskw2v.types import Int32Array, Int64Array
from daskw2v.vocabulary.vocabulary import Vocabulary
from daskw2v.vocabulary.word_tables import WORD, TableKind, as_text, check_text, find_word_column, single

pa, pc = Extra("pyarrow", "arrow"), Extra("pyarrow.compute", "arrow")

MARKET, COUNT = "market", "count"
_MAX_PAIRS = 1 << 22  # pairs of word and market that are held before they are added up


def check_table(source: Source, options: Mapping[str, Any], timeout: float) -> None:
    """Refuse a file that is no table of markets, by its columns; of rows, only the first block of a CSV file is read.

    Parameters
    ----------
    source, options, timeout
        The file, options for fsspec, and seconds to wait for each answer of the store.

    Raises
    ------
    InputError
        If the file cannot be read, lacks a column, or has a column of another type.
    """
    types, _ = _TABLES.head(source, options, timeout)
    for name, kind in zip((WORD, MARKET), types.values(), strict=False):
        check_text(kind, name, source.url)
    if COUNT in types and not pa.types.is_integer(types[COUNT]):
        raise _count_error(source.url)


def read_table(source: Source, options: Mapping[str, Any], timeout: float) -> Iterator[Any]:
    """Yield the rows of a table of markets, in record batches of Arrow with the columns word, market and count.

    Parameters
    ----------
    source, options, timeout
        The file, options for fsspec, and seconds to wait for each answer of the store.

    Raises
    ------
    InputError
        If the file cannot be read or is no table, lacks a column, or has a count that is no integer of 0 or more.
    """
    for batch in _TABLES.read(source, options, timeout):
        yield _convert(batch.columns, source.url)


def _choose_columns(names: Sequence[str], url: str) -> list[str]:
    """Return the names of the columns to read: words, markets and, if the table has it, count.

    `names` are all columns; without one of words or of markets, an InputError is raised.
    """
    required = "word, or item, and market"
    word, market = find_word_column(names, url, required), single(names, MARKET, url, required)
    return [word, market, *([COUNT] if COUNT in names else [])]


_TABLES = TableKind("table of markets", _choose_columns, lambda: {MARKET: pa.string(), COUNT: pa.int64()})


def _convert(columns: Sequence[Any], url: str) -> Any:
    """Return Arrow columns of words, markets and perhaps counts, 1 each without them, as a record batch of `_schema`.

    Words or markets that are no strings or integers, and counts that are no integers of 0 or more, raise InputError.
    """
    texts = [as_text(column, name, url) for name, column in zip((WORD, MARKET), columns, strict=False)]
    counts = columns[2] if len(columns) > 2 else pa.array(np.ones(len(columns[0]), np.int64))
    if not pa.types.is_integer(counts.type) or counts.null_count or (len(counts) and pc.min(counts).as_py() < 0):
        raise _count_error(url)
    return pa.record_batch([*texts, counts.cast(pa.int64())], _schema())


def _count_error(url: str) -> InputError:
    """Return the error for a table whose column of counts holds other values than integers of 0 or more."""
    return InputError(f"{url} has a count that is no integer of 0 or more.", "Correct it, or leave the column out.")


def _schema() -> Any:
    """Return the Arrow schema of a table of markets: word, market and count."""
    return pa.schema([(WORD, pa.large_string()), (MARKET, pa.large_string()), (COUNT, pa.int64())])


def add_up(tables: Sequence[Any]) -> Any:
    """Add up the counts of equal pairs of word and market in Arrow tables; return one table, sorted by the pairs.

    All tables have the columns word and market, large_string, and count, int64. Without tables the result has no rows.
    """
    sums = pa.concat_tables([_schema().empty_table(), *tables]).group_by([WORD, MARKET]).aggregate([(COUNT, "sum")])
    return sums.rename_columns([WORD, MARKET, COUNT]).sort_by([(WORD, "ascending"), (MARKET, "ascending")])


class MarketCounts:
    """The count of each word of a vocabulary in each market; takes little memory beside the vocabulary's words."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary, self._market_numbers = vocabulary, dict[str, int]()
        self._pairs, self._counts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        self._held = 0  # pairs since they were last added up

    def add(self, rows: Any) -> None:
        """Add the counts of an Arrow record batch with the columns word, market and count.

        Words outside the vocabulary, and rows without a market, are passed over.
        """
        words, column, numbers = rows.column(WORD), rows.column(MARKET).dictionary_encode(), self._market_numbers
        # Markets are numbered by first appearance; no name is -1
        names = column.dictionary.to_pylist()
        codes = np.array([numbers.setdefault(name, len(numbers)) if name else -1 for name in names], np.int64)
        ids = self._vocabulary.find_all(Vocabulary(*strings_of(words), np.zeros(len(words), np.int64)))
        markets = codes[column.indices.to_numpy()]
        known = (ids >= 0) & (markets >= 0)
        self._pairs.append((ids[known].astype(np.int64) << 32) | markets[known])
        self._counts.append(rows.column(COUNT).to_numpy()[known])
        self._held += int(known.sum())
        if self._held > _MAX_PAIRS:
            self._add_up()

    def markets(self) -> Int32Array:
        """Return the market of each word, shape (V,) int32: the rank of the market's name, -1 for words without one.

        Names of all markets that were added are ranked by their UTF-8.
        """
        pairs, counts = self._add_up()
        rank = np.argsort(np.argsort(np.array([name.encode() for name in self._market_numbers], object)))
        ids, ranks = pairs >> 32, rank[pairs & 0xFFFFFFFF]
        order = np.lexsort((ranks, -counts, ids))
        markets = np.full(len(self._vocabulary), -1, np.int32)
        best = order[np.flatnonzero(np.diff(ids[order], prepend=-1))]
        markets[ids[best]] = ranks[best]
        return markets

    def _add_up(self) -> tuple[Int64Array, Int64Array]:
        """Add up the counts of equal pairs; return the distinct pairs with counts above 0, and the counts.

        Both arrays have shape (n,), int64, and are sorted by pair: id << 32 | market. They replace what was added.
        """
        pairs, inverse = np.unique(np.concatenate(self._pairs), return_inverse=True)
        counts = np.zeros(len(pairs), np.int64)
        np.add.at(counts, inverse, np.concatenate(self._counts))
        self._pairs, self._counts, self._held = [pairs[counts > 0]], [counts[counts > 0]], 0
        return self._pairs[0], self._counts[0]
