"""Markets of words, such as the cities of listings: tables that name them, and the market of each word.

A table has the columns `word`, or `item`, and `market`, and may have `count`: how often the word is in that market;
once without that column. The market of a word is the one with the highest count; of equal counts, the first by name.
So the tables of parts of the data say together what one table of all data would.
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
from daskw2v.vocabulary.word_tables import WORD, TableKind, as_text, check_text, single, word_column

pa, pc = Extra("pyarrow", "arrow"), Extra("pyarrow.compute", "arrow")

MARKET, COUNT = "market", "count"
_PAIRS = 1 << 22  # pairs of word and market that are added up at once


def check_table(source: Source, options: Mapping[str, Any], timeout: float) -> None:
    """Refuse a file that is no table of markets; of its rows, no more than the first block of CSV is read.

    Raises
    ------
    InputError
        If it cannot be read, lacks a column, or has one of another type.
    """
    types, _ = _TABLES.head(source, options, timeout)
    for name, kind in zip((WORD, MARKET), types.values(), strict=False):
        check_text(kind, name, source.url)
    if COUNT in types and not pa.types.is_integer(types[COUNT]):
        raise _no_count(source.url)


def read_table(source: Source, options: Mapping[str, Any], timeout: float) -> Iterator[Any]:
    """Yield a table of markets in record batches of Arrow with the columns word, market and count.

    Raises
    ------
    InputError
        If the file cannot be read or is no table, lacks a column, or has a count that is no integer of 0 or more.
    """
    for batch in _TABLES.read(source, options, timeout):
        yield _checked(batch.columns, source.url)


def _columns(names: Sequence[str], url: str) -> list[str]:
    """Return the columns that are read, the column of words first."""
    wanted = "word, or item, and market"
    return [word_column(names, url, wanted), single(names, MARKET, url, wanted), *([COUNT] if COUNT in names else [])]


_TABLES = TableKind("table of markets", _columns, lambda: {MARKET: pa.string(), COUNT: pa.int64()})


def _checked(columns: Sequence[Any], url: str) -> Any:
    texts = [as_text(column, name, url) for name, column in zip((WORD, MARKET), columns, strict=False)]
    counts = columns[2] if len(columns) > 2 else pa.array(np.ones(len(columns[0]), np.int64))
    if not pa.types.is_integer(counts.type) or counts.null_count or (len(counts) and pc.min(counts).as_py() < 0):
        raise _no_count(url)
    return pa.record_batch([*texts, counts.cast(pa.int64())], _schema())


def _no_count(url: str) -> InputError:
    return InputError(f"{url} has a count that is no integer of 0 or more.", "Correct it, or leave the column out.")


def _schema() -> Any:
    return pa.schema([(WORD, pa.large_string()), (MARKET, pa.large_string()), (COUNT, pa.int64())])


def add_up(tables: Sequence[Any]) -> Any:
    """Return tables of Arrow with the columns word, market and count as one, sorted, with each pair once."""
    sums = pa.concat_tables([_schema().empty_table(), *tables]).group_by([WORD, MARKET]).aggregate([(COUNT, "sum")])
    return sums.rename_columns([WORD, MARKET, COUNT]).sort_by([(WORD, "ascending"), (MARKET, "ascending")])


class MarketCounts:
    """Counts of each word of a vocabulary in each market; small beside the vocabulary's words."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary, self._names = vocabulary, dict[str, int]()
        self._pairs, self._counts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        self._held = 0

    def add(self, rows: Any) -> None:
        """Add a record batch of Arrow with the columns word, market and count. Other words are passed over."""
        words, named, numbers = rows.column(WORD), rows.column(MARKET).dictionary_encode(), self._names
        # Markets are numbered by first appearance; no name is -1
        names = named.dictionary.to_pylist()
        codes = np.array([numbers.setdefault(name, len(numbers)) if name else -1 for name in names], np.int64)
        ids = self._vocabulary.find_all(Vocabulary(*strings_of(words), np.zeros(len(words), np.int64)))
        markets = codes[named.indices.to_numpy()]
        known = (ids >= 0) & (markets >= 0)
        self._pairs.append((ids[known].astype(np.int64) << 32) | markets[known])
        self._counts.append(rows.column(COUNT).to_numpy()[known])
        self._held += int(known.sum())
        if self._held > _PAIRS:
            self._add_up()

    def markets(self) -> Int32Array:
        """Return the number of each word's market, -1 without one, shape (V,): that of its name, in their order."""
        pairs, counts = self._add_up()
        rank = np.argsort(np.argsort(np.array([name.encode() for name in self._names], object)))
        ids, ranks = pairs >> 32, rank[pairs & 0xFFFFFFFF]
        order = np.lexsort((ranks, -counts, ids))
        markets = np.full(len(self._vocabulary), -1, np.int32)
        best = order[np.flatnonzero(np.diff(ids[order], prepend=-1))]
        markets[ids[best]] = ranks[best]
        return markets

    def _add_up(self) -> tuple[Int64Array, Int64Array]:
        """Return each pair of word and market once, and its count; pairs without a count are dropped."""
        pairs, where = np.unique(np.concatenate(self._pairs), return_inverse=True)
        counts = np.zeros(len(pairs), np.int64)
        np.add.at(counts, where, np.concatenate(self._counts))
        self._pairs, self._counts, self._held = [pairs[counts > 0]], [counts[counts > 0]], 0
        return self._pairs[0], self._counts[0]
