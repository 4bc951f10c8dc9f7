"""Features of words from a user's table: categories and numbers, such as the brand and the price of an item.

A table has the column `word`, or `item`, and further columns, each a feature. Strings, integers and booleans are
categories, and lists of them several categories; an empty string is no category, and a file may lack all values of a
column. Floating-point numbers are numbers, which have a share of the two knots around them. Knots are quantiles. A word
in several rows has the categories of all of them, and the mean of their numbers. Files are checked by their schemas
before any text is read.
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
from daskw2v.features.keys import FeatureColumn, format_category, interpolate_knots
from daskw2v.features.words import WordFeatures
from daskw2v.kernels.distinct import distinct
from daskw2v.store.threads import in_threads
from daskw2v.types import Float64Array, Int64Array
from daskw2v.vocabulary.vocabulary import Vocabulary
from daskw2v.vocabulary.word_tables import NAMES, TableKind, as_text, check_text, find_word_column, single

pa, pc = Extra("pyarrow", "arrow"), Extra("pyarrow.compute", "arrow")

_Collected = tuple[FeatureColumn, Int64Array, Int64Array, Float64Array]  # a column; of each feature word, row and share
KNOTS = 16  # of a column of numbers, at most
_MAX_NUMBER = 1e300  # differences of two numbers are finite
_COLUMNS = "word, or item, and one or more others"


def read_table(source: Source, options: Mapping[str, Any], timeout: float) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield batches of a table of features: an Arrow array of words, and Arrow arrays of the features by name.

    Words are large_string, "" for null. `options` and `timeout` (seconds) are the store's.

    Raises
    ------
    InputError
        If the file cannot be read or is no table, or lacks a column.
    """
    for batch in _TABLES.read(source, options, timeout):
        (_, *names), (words, *columns) = batch.schema.names, batch.columns
        yield as_text(words, "word", source.url), dict(zip(names, columns, strict=True))


def read_types(source: Source, options: Mapping[str, Any], timeout: float) -> tuple[dict[str, Any], bool]:
    """Return the Arrow types of a file's features by name, and whether the file has no row.

    Arguments and errors are as for `read_table`.
    """
    types, empty = _TABLES.head(source, options, timeout)
    (_, kind), *features = types.items()
    check_text(kind, "word", source.url)
    return dict(features), empty


def check_table(
    table: str, sources: Sequence[Source], options: Mapping[str, Any], timeout: float, weights: Mapping[str, float]
) -> None:
    """Check that files are a table of features; of their rows, at most the first block of CSV is read.

    Parameters
    ----------
    table
        Name of the table in messages.
    sources
        Files of the table.
    options, timeout
        Options of the store, and its timeout in seconds.
    weights
        Weights of columns by name, 1 for columns that are not named.

    Raises
    ------
    InputError
        If a file cannot be read or lacks a column of words; if a column is of a type that is no feature, or of two
        kinds; if no column has a weight above 0, a column with a weight is missing, or only names of folders hold it;
        or if no file has a row.
    """
    heads = in_threads(partial(read_types, options=options, timeout=timeout), sources)
    kinds = dict[str, tuple[Any, Any, str]]()  # by column: the class that collects it, its type, and the first file
    for source, (types, _) in zip(sources, heads, strict=True):
        for name, type_ in types.items():
            if weights.get(name, 1.0) == 0 or pa.types.is_null(type_):  # all values are missing
                continue
            kind = choose_collector(name, type_, source.url)
            first_kind, first_type, url = kinds.setdefault(name, (kind, type_, source.url))
            if kind is not first_kind:
                problem = f"Column {name!r} is {type_} in {source.url}, and {first_type} in {url}."
                raise InputError(problem, "Give one type in all files: numbers such as 5.0, or categories.")
    names = dict.fromkeys(name for types, _ in heads for name in types)
    folders = _find_varying_folders(sources) - names.keys()
    for name in weights.keys() - names.keys() - folders:
        problem = f"{table} has no column {name!r}, which has a weight."
        raise InputError(problem, f"Its features are: {', '.join(names)}.")
    for name in sorted(folders):
        if weights.get(name, 1.0) != 0:
            problem = f"Only names of folders tell {name!r} of the rows in {table}: it would be no feature."
            raise InputError(problem, f"Write it as a column, or leave it out: feature_weights={{{name!r}: 0}}.")
    if all(weights.get(name, 1.0) == 0 for name in names):
        raise InputError(f"All columns of {table} weigh 0: {', '.join(names)}.", "Give one of them a weight above 0.")
    if all(empty for _, empty in heads):
        raise InputError(f"{table} has no row, in {counted(len(sources), 'file')}.", "Write the table again.")


def summarize_table(features: WordFeatures, columns: Sequence[FeatureColumn], base: Sequence[FeatureColumn]) -> str:
    """Return a summary of a run's table as text: words covered, columns, and changes since the base model.

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
        *(f"{column.name}: {_describe_size(column)}" for column in columns if column.size),
    ]
    current, previous = ({column.name: column for column in group if column.size} for group in (columns, base))
    parts += [f"{name} is no longer there" for name in previous if name not in current]
    parts += [
        f"{name} had {_describe_size(column)} before, and starts anew"
        for name, column in previous.items()
        if name in current and bool(column.knots) != bool(current[name].knots)
    ]
    return "; ".join(parts)


def _order_columns(present: Sequence[str], url: str) -> list[str]:
    """Return the names of a table's columns, the column of words first; `present` are the names in the file.

    Raises an InputError if a column is missing or repeated, both word and item exist, or there are no features.
    """
    word = find_word_column(present, url, _COLUMNS)
    if {*NAMES} <= {*present}:
        raise InputError(f"{url} has the columns word and item, which both name words.", "Leave one of them out.")
    names = [single(present, name, url, _COLUMNS) for name in present if name != word]
    if not names:
        raise InputError(f"{url} has no column besides {word!r}.", f"Give a table with the columns {_COLUMNS}.")
    return [word, *names]


_TABLES = TableKind("table of features", _order_columns)


class TableFeatures:
    """Collects the features of the words of a vocabulary from batches of a table.

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
        self._without_rows: dict[str, None] = {}  # columns without a weight, or a value in a batch
        self._has_words = False

    def add(self, words: Any, columns: Mapping[str, Any], url: str) -> None:
        """Add a batch that `read_table` yields; words outside the vocabulary are passed over.

        Raises
        ------
        InputError
            If a column is of a type that is no feature, or of another kind than before.
        """
        ids = self._vocabulary.find_all(Vocabulary(*strings_of(words), np.zeros(len(words), np.int64)))
        known = np.flatnonzero(ids >= 0)
        self._has_words = self._has_words or len(known) > 0
        for name, column in columns.items():
            if self._weights.get(name, 1.0) == 0 or pa.types.is_null(column.type):  # all values are missing
                self._without_rows[name] = None
                continue
            kind = choose_collector(name, column.type, url)
            collected = self._columns.setdefault(name, kind())
            if type(collected) is not kind:
                raise InputError(f"Column {name!r} of {url} is {column.type}.", "Give one type in all of its files.")
            collected.add(ids[known].astype(np.int64), _cast_views(column).take(pa.array(known)))

    def finish(self) -> tuple[tuple[FeatureColumn, ...], WordFeatures]:
        """Return the columns, and the features of each word, with own rows of weight 1.

        A column of weight 0, or of type null in all files, has no rows and comes last. Items of queries may name it.

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
                if self._has_words
                else f"The table has features of none of the {words} of the vocabulary.",
                "Give values, and weights above 0." if self._has_words else "Give the words as they are in the text.",
            )
        without_rows = [name for name in self._without_rows if name not in self._columns]
        columns += [FeatureColumn(name, self._weights.get(name, 1.0)) for name in without_rows]
        order = np.argsort(owners, kind="stable")
        offsets = np.searchsorted(owners[order], np.arange(len(counts) + 1))
        rows, weights = rows[order].astype(np.int32), weights[order].astype(np.float32)
        return tuple(columns), WordFeatures(offsets, rows, weights, np.ones(len(counts), np.float32))


class _Categories:
    """Collects a column of categories: pairs of a word's id and the number of a category."""

    def __init__(self) -> None:
        self._names, self._pairs = dict[str, int](), list[Int64Array]()

    def add(self, ids: Int64Array, column: Any) -> None:
        """Add the values of words with these ids, an Arrow array of categories or of lists of them."""
        if _is_list(column.type):
            ids, column = ids[pc.list_parent_indices(column).to_numpy()], column.flatten()
        if pa.types.is_dictionary(column.type):  # it may hold categories of words outside the vocabulary
            column = column.dictionary_decode()
        named = column.dictionary_encode()
        names, numbers = named.dictionary.to_pylist(), self._names
        known = (
            -1 if name in (None, "") else numbers.setdefault(format_category(name), len(numbers)) for name in names
        )
        codes = np.array([*known, -1], np.int64)[named.indices.fill_null(len(names)).to_numpy()]
        self._pairs.append((ids[codes >= 0] << 32) | codes[codes >= 0])

    def finish(self, name: str, weight: float, counts: Int64Array) -> _Collected:
        """Return the column with the given name and weight, and the ids, rows in the column, and shares of all pairs.

        Categories are ordered by the falling sum of their words' counts; `counts` has the counts of all words.
        """
        pairs = distinct(np.concatenate([np.empty(0, np.int64), *self._pairs]))
        ids, codes = pairs >> 32, pairs & 0xFFFFFFFF
        frequencies = np.bincount(codes, counts[ids], len(self._names))
        values = np.array(list(self._names), object)  # texts of one type would all be as long as the longest
        order = np.argsort(values, kind="stable")
        order = order[np.argsort(-frequencies[order], kind="stable")]
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return FeatureColumn(name, weight, values=tuple(values[order])), ids, rank[codes], np.ones(len(ids))


class _Numbers:
    """Collects a column of numbers: words' ids, and a number for each."""

    def __init__(self) -> None:
        self._ids, self._values = list[Int64Array](), list[Float64Array]()

    def add(self, ids: Int64Array, column: Any) -> None:
        """Add the numbers of words with these ids, an Arrow array; numbers that are not finite are left out."""
        values = np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
        finite = np.isfinite(values)
        self._ids.append(ids[finite])
        self._values.append(np.clip(values[finite], -_MAX_NUMBER, _MAX_NUMBER))

    def finish(self, name: str, weight: float, counts: Int64Array) -> _Collected:
        """Return the column, ids, rows and shares, as `_Categories.finish`: a number has the rows of its two knots.

        A word with several numbers has their mean; `counts` is not read.
        """
        ids, indices = np.unique(np.concatenate([np.empty(0, np.int64), *self._ids]), return_inverse=True)
        values = np.concatenate([np.empty(0), *self._values])
        means = np.bincount(indices, values, len(ids)) / np.maximum(1, np.bincount(indices, minlength=len(ids)))
        if not len(ids):
            return FeatureColumn(name, weight), ids, ids, means
        knots = np.unique(np.quantile(means, np.linspace(0, 1, KNOTS)))
        below, share = interpolate_knots(means, knots)
        word_ids, rows = np.concatenate([ids, ids]), np.concatenate([below, below + 1])
        shares = np.concatenate([1.0 - share, share])
        kept, column = shares > 0, FeatureColumn(name, weight, knots=tuple(knots.tolist()))
        return column, word_ids[kept], rows[kept], shares[kept]


def _cast_views(column: Any) -> Any:
    """Return an Arrow array with string views, or lists of them, cast to large strings, which `take` supports."""
    if column.type == pa.string_view():
        return column.cast(pa.large_string())
    if _is_list(column.type) and column.type.value_type == pa.string_view():
        return column.cast(pa.large_list(pa.large_string()))
    return column


def _is_list(arrow_type: Any) -> bool:
    """Return whether values of an Arrow type are lists."""
    return bool(pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type))


def choose_collector(name: str, arrow_type: Any, url: str) -> Callable[[], "_Categories | _Numbers"]:
    """Return the class that collects a column of an Arrow type; a type that is no feature raises InputError.

    `name` and `url`, of the column and its file, are for messages.
    """
    value_type = arrow_type
    if _is_list(arrow_type):
        value_type = arrow_type.value_type
    elif pa.types.is_floating(arrow_type) or pa.types.is_decimal(arrow_type):
        return _Numbers
    if pa.types.is_dictionary(value_type):
        value_type = value_type.value_type
    are_categories = is_string, pa.types.is_integer, pa.types.is_boolean, pa.types.is_null
    if any(is_kind(value_type) for is_kind in are_categories):
        return _Categories
    if pa.types.is_binary(value_type) or pa.types.is_large_binary(value_type):  # CSV in Latin-1, too
        problem = f"Column {name!r} of {url} holds bytes, or text that is not UTF-8."
        raise InputError(problem, f"Write it as text in UTF-8, or leave it out: feature_weights={{{name!r}: 0}}.")
    remedy = f"Give strings, integers or lists of them, or numbers; or leave it out: feature_weights={{{name!r}: 0}}."
    raise InputError(f"Column {name!r} of {url} is of type {arrow_type}, which is no feature.", remedy)


def _find_varying_folders(sources: Sequence[Source]) -> set[str]:
    """Return the names of the columns in names of folders whose values differ among files.

    Values that are equal tell nothing: the folder may be that of one day's table.
    """
    values = [set(parse_folder_columns(source.url).items()) for source in sources]
    return {name for columns in values for name, _ in columns ^ values[0]}


def _describe_size(column: FeatureColumn) -> str:
    """Return the kind and the number of rows of a column, for messages."""
    return ("numbers, " if column.knots else "categories, ") + counted(column.size, "row")
