"""Features of words from a user's table: categories and numbers, such as the brand and the price of an item.

A table has the column `word`, or `item`, and others, each a feature. Strings, integers and booleans are categories, and
lists of them several at once; empty strings are none, and a file may lack all values of a column. Floating-point
numbers are numbers, which have a share of the two knots that they lie between. Knots are quantiles. A word of several
rows has the categories of all, and the mean of its numbers. Files are checked by their schemas before any text is read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from daskw2v.corpus.files import Source
from daskw2v.corpus.formats.columns import is_string, strings_of
from daskw2v.corpus.names import parse_folder_columns
from daskw2v.errors import InputError, counted
from daskw2v.extras import Extra
from daskw2v.features.keys import FeatureColumn, category, shares_of
from daskw2v.features.words import WordFeatures
from daskw2v.kernels.distinct import distinct
from daskw2v.store.threads import in_threads
from daskw2v.types import Float64Array, Int64Array
from daskw2v.vocabulary.vocabulary import Vocabulary
from daskw2v.vocabulary.word_tables import NAMES, TableKind, as_text, check_text, find_word_column, single

pa, pc = Extra("pyarrow", "arrow"), Extra("pyarrow.compute", "arrow")

_Collected = tuple[FeatureColumn, Int64Array, Int64Array, Float64Array]  # a column; words, their rows and shares
KNOTS = 16  # of a column of numbers, at most
_MOST = 1e300  # largest number: differences of two are finite
_COLUMNS = "word, or item, and one or more others"


def read_table(source: Source, options: Mapping[str, Any], timeout: float) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the words of a table of features, and its other columns by name, as arrays of Arrow, batch by batch.

    Raises
    ------
    InputError
        If the file cannot be read or is no table, or lacks a column.
    """
    for batch in _TABLES.read(source, options, timeout):
        (_, *names), (words, *columns) = batch.schema.names, batch.columns
        yield as_text(words, "word", source.url), dict(zip(names, columns, strict=True))


def read_types(source: Source, options: Mapping[str, Any], timeout: float) -> tuple[dict[str, Any], bool]:
    """Return the Arrow types of a file's features by name, and whether it has no row; raises as `read_table`."""
    types, empty = _TABLES.head(source, options, timeout)
    (_, kind), *features = types.items()
    check_text(kind, "word", source.url)
    return dict(features), empty


def check_table(
    place: str, sources: Sequence[Source], options: Mapping[str, Any], timeout: float, weights: Mapping[str, float]
) -> None:
    """Refuse files that are no table of features; of their rows, no more than the first block of CSV is read.

    Raises
    ------
    InputError
        If one cannot be read or lacks a column; if a column is of a type that is no feature, or of two kinds; if none
        has a weight above 0, one that has a weight is missing, or names of folders tell one; or if no file has a row.
    """
    heads = in_threads(partial(read_types, options=options, timeout=timeout), sources)
    kinds = dict[str, tuple[Any, Any, str]]()  # of each column: the class that collects it, type, and first file
    for source, (types, _) in zip(sources, heads, strict=True):
        for name, type_ in types.items():
            if weights.get(name, 1.0) == 0 or pa.types.is_null(type_):  # all values are missing
                continue
            kind = kind_of(name, type_, source.url)
            before, its_type, url = kinds.setdefault(name, (kind, type_, source.url))
            if kind is not before:
                raise InputError(
                    f"Column {name!r} is {type_} in {source.url}, and {its_type} in {url}.",
                    "Give one type in all files: numbers such as 5.0, or categories.",
                )
    names = dict.fromkeys(name for types, _ in heads for name in types)
    folders = _folders(sources) - names.keys()
    for name in weights.keys() - names.keys() - folders:
        raise InputError(
            f"{place} has no column {name!r}, which has a weight.", f"Its features are: {', '.join(names)}."
        )
    for name in sorted(folders):
        if weights.get(name, 1.0) != 0:
            raise InputError(
                f"Only names of folders tell {name!r} of the rows in {place}: it would be no feature.",
                f"Write it as a column, or leave it out: feature_weights={{{name!r}: 0}}.",
            )
    if all(weights.get(name, 1.0) == 0 for name in names):
        raise InputError(f"All columns of {place} weigh 0: {', '.join(names)}.", "Give one of them a weight above 0.")
    if all(empty for _, empty in heads):
        raise InputError(f"{place} has no row, in {counted(len(sources), 'file')}.", "Write the table again.")


def summary_of(features: WordFeatures, columns: Sequence[FeatureColumn], base: Sequence[FeatureColumn]) -> str:
    """Return a summary of a run's table as a sentence: words covered, columns, and changes since the base model.

    Parameters
    ----------
    features
        The features of the vocabulary's words.
    columns, base
        The columns of the table, and the columns of the base model; empty without one.
    """
    covered = np.count_nonzero(np.diff(features.offsets))
    parts = [
        f"the table has {covered:,} of {counted(features.n_words, 'word')}",
        *(f"{column.name}: {_size(column)}" for column in columns if column.size),
    ]
    now, before = ({column.name: column for column in known if column.size} for known in (columns, base))
    parts += [f"{name} is no longer there" for name in before if name not in now]
    parts += [
        f"{name} had {_size(column)} before, and starts anew"
        for name, column in before.items()
        if name in now and bool(column.knots) != bool(now[name].knots)
    ]
    return "; ".join(parts)


def _columns(present: Sequence[str], url: str) -> list[str]:
    """Return the columns of a table, the column of words first."""
    word = find_word_column(present, url, _COLUMNS)
    if {*NAMES} <= {*present}:
        raise InputError(f"{url} has the columns word and item, which both name words.", "Leave one of them out.")
    names = [single(present, name, url, _COLUMNS) for name in present if name != word]
    if not names:
        raise InputError(f"{url} has no column besides {word!r}.", f"Give a table with the columns {_COLUMNS}.")
    return [word, *names]


_TABLES = TableKind("table of features", _columns)


class TableFeatures:
    """A collection of the features of the words of a vocabulary.

    Parameters
    ----------
    vocabulary
        The words.
    weights
        Weights of columns, by name, 1 for columns that are not named; 0 leaves a column out.
    """

    def __init__(self, vocabulary: Vocabulary, weights: Mapping[str, float]) -> None:
        self._vocabulary, self._weights = vocabulary, weights
        self._columns: dict[str, _Categories | _Numbers] = {}
        self._left_out: dict[str, None] = {}  # columns without a weight, or a value in a batch
        self._knows = False

    def add(self, words: Any, columns: Mapping[str, Any], url: str) -> None:
        """Add a batch that `read_table` yields; other words are passed over.

        Raises
        ------
        InputError
            If a column is of a type that is no feature, or of another kind than before.
        """
        ids = self._vocabulary.find_all(Vocabulary(*strings_of(words), np.zeros(len(words), np.int64)))
        known = np.flatnonzero(ids >= 0)
        self._knows = self._knows or len(known) > 0
        for name, column in columns.items():
            if self._weights.get(name, 1.0) == 0 or pa.types.is_null(column.type):  # all values are missing
                self._left_out[name] = None
                continue
            kind = kind_of(name, column.type, url)
            collected = self._columns.setdefault(name, kind())
            if type(collected) is not kind:
                raise InputError(f"Column {name!r} of {url} is {column.type}.", "Give one type in all of its files.")
            collected.add(ids[known].astype(np.int64), _without_views(column).take(pa.array(known)))

    def finish(self) -> tuple[tuple[FeatureColumn, ...], WordFeatures]:
        """Return the columns, and the features of each word; weights of own rows are 1.

        A column that is left out has no rows, and comes last: items may name it.

        Raises
        ------
        InputError
            If no word has a feature.
        """
        counts, columns, first = self._vocabulary.counts, list[FeatureColumn](), 0
        parts = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
        for name, collected in self._columns.items():
            weight = self._weights.get(name, 1.0)
            column, ids, numbers, shares = collected.finish(name, weight, counts)
            columns.append(column)
            parts.append((ids, first + numbers, weight * shares))
            first += column.size
        owners, rows, weights = map(np.concatenate, zip(*parts, strict=True))
        if not len(owners):
            words = counted(len(counts), "word")
            raise InputError(
                f"The table has no feature of the {words} of the vocabulary that it names: all columns weigh 0 or are "
                "empty."
                if self._knows
                else f"The table has features of none of the {words} of the vocabulary.",
                "Give values, and weights above 0." if self._knows else "Give the words as they are in the text.",
            )
        columns += [
            FeatureColumn(name, self._weights.get(name, 1.0)) for name in self._left_out if name not in self._columns
        ]
        order = np.argsort(owners, kind="stable")
        offsets = np.searchsorted(owners[order], np.arange(len(counts) + 1))
        rows, weights = rows[order].astype(np.int32), weights[order].astype(np.float32)
        return tuple(columns), WordFeatures(offsets, rows, weights, np.ones(len(counts), np.float32))


class _Categories:
    """A column of categories: pairs of a word and the number of a category."""

    def __init__(self) -> None:
        self._names, self._pairs = dict[str, int](), list[Int64Array]()

    def add(self, ids: Int64Array, column: Any) -> None:
        if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            ids, column = ids[pc.list_parent_indices(column).to_numpy()], column.flatten()
        if pa.types.is_dictionary(column.type):  # it may hold categories of other words
            column = column.dictionary_decode()
        named = column.dictionary_encode()
        names, numbers = named.dictionary.to_pylist(), self._names
        known = (-1 if name in (None, "") else numbers.setdefault(category(name), len(numbers)) for name in names)
        codes = np.array([*known, -1], np.int64)[named.indices.fill_null(len(names)).to_numpy()]
        self._pairs.append((ids[codes >= 0] << 32) | codes[codes >= 0])

    def finish(self, name: str, weight: float, counts: Int64Array) -> _Collected:
        """Return the column, most frequent categories first, and of each pair the word, the category and its share."""
        pairs = distinct(np.concatenate([np.empty(0, np.int64), *self._pairs]))
        ids, codes = pairs >> 32, pairs & 0xFFFFFFFF
        often = np.bincount(codes, counts[ids], len(self._names))
        values = np.array(list(self._names), object)  # texts of one type would all be as long as the longest
        order = np.argsort(values, kind="stable")
        order = order[np.argsort(-often[order], kind="stable")]
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return FeatureColumn(name, weight, values=tuple(values[order])), ids, rank[codes], np.ones(len(ids))


class _Numbers:
    """A column of numbers: words and their numbers."""

    def __init__(self) -> None:
        self._ids, self._values = list[Int64Array](), list[Float64Array]()

    def add(self, ids: Int64Array, column: Any) -> None:
        values = np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
        finite = np.isfinite(values)
        self._ids.append(ids[finite])
        self._values.append(np.clip(values[finite], -_MOST, _MOST))

    def finish(self, name: str, weight: float, counts: Int64Array) -> _Collected:
        """Return the column, and of each word the knots around its number, and their shares."""
        ids, places = np.unique(np.concatenate([np.empty(0, np.int64), *self._ids]), return_inverse=True)
        values = np.concatenate([np.empty(0), *self._values])
        means = np.bincount(places, values, len(ids)) / np.maximum(1, np.bincount(places, minlength=len(ids)))
        if not len(ids):
            return FeatureColumn(name, weight), ids, ids, means
        knots = np.unique(np.quantile(means, np.linspace(0, 1, KNOTS)))
        below, share = shares_of(means, knots)
        both, rows = np.concatenate([ids, ids]), np.concatenate([below, below + 1])
        shares = np.concatenate([1.0 - share, share])
        used = shares > 0
        return FeatureColumn(name, weight, knots=tuple(knots.tolist())), both[used], rows[used], shares[used]


def _without_views(column: Any) -> Any:
    """Return a column of texts, or of lists of them, that `take` reads: it knows no views."""
    kind = column.type
    if kind == pa.string_view():
        return column.cast(pa.large_string())
    if (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and kind.value_type == pa.string_view():
        return column.cast(pa.large_list(pa.large_string()))
    return column


def kind_of(name: str, kind: Any, url: str) -> Callable[[], "_Categories | _Numbers"]:
    """Return the class that collects a column of an Arrow type."""
    value = kind
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        value = kind.value_type
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _Numbers
    if pa.types.is_dictionary(value):
        value = value.value_type
    if is_string(value) or pa.types.is_integer(value) or pa.types.is_boolean(value) or pa.types.is_null(value):
        return _Categories
    if pa.types.is_binary(value) or pa.types.is_large_binary(value):  # CSV in Latin-1, too
        raise InputError(
            f"Column {name!r} of {url} holds bytes, or text that is not UTF-8.",
            f"Write it as text in UTF-8, or leave it out: feature_weights={{{name!r}: 0}}.",
        )
    raise InputError(
        f"Column {name!r} of {url} is of type {kind}, which is no feature.",
        f"Give strings, integers or lists of them, or numbers; or leave it out: feature_weights={{{name!r}: 0}}.",
    )


def _folders(sources: Sequence[Source]) -> set[str]:
    """Return the columns in names of folders whose values differ: a folder may hold the table of one day alone."""
    values = [set(parse_folder_columns(source.url).items()) for source in sources]
    return {name for columns in values for name, _ in columns ^ values[0]}


def _size(column: FeatureColumn) -> str:
    return ("numbers, " if column.knots else "categories, ") + counted(column.size, "row")
