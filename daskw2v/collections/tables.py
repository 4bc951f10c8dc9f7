"""Text of any kind as tables of Arrow: strings for text, lists of strings for tokens; int64 for weights of rows."""

from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import chain
from typing import Any

import numpy as np

from daskw2v.collections.kinds import (
    ARROW_COLUMNS,
    ARROW_TABLES,
    FRAMES,
    POLARS_COLUMNS,
    check_column,
    is_one_of,
    is_table,
)
from daskw2v.config.params import TextParams
from daskw2v.corpus.formats.columns import find_column, is_list, is_text, lists_of, strings_in, strings_of
from daskw2v.corpus.formats.paths import NoFieldError, find_field
from daskw2v.corpus.formats.weights import weights_of
from daskw2v.errors import InputError
from daskw2v.extras import Extra

pa = Extra("pyarrow", "arrow")
pc = Extra("pyarrow.compute", "arrow")

TABLE_BYTES = 32 << 20  # of a column, about
_SHOWN = 120  # characters of an error of Arrow's, which shows text
_TOKEN = 8  # bytes of a token, about
BATCH = 1 << 20  # of sentences that are turned into Arrow's at once
_RULE = "must be texts, or lists of strings or integers"


def tables_of(part: Any, column: str, weight: str | None = None) -> Iterator[Any]:
    """Yield the text of a partition, in tables of some 32 MB that are not empty.

    Parameters
    ----------
    part
        A table of pandas, polars or Arrow, a column of one, or an iterable of texts, of lists of tokens, or of records.
    column
        Name of the column of tables, and key of records.
    weight
        Likewise of the rows' weights, if they have any.

    Yields
    ------
    Table
        `column` is of type `large_string`, or `large_list` of that; `weight` of int64.

    Raises
    ------
    InputError
        If there is no such column, or it holds neither text nor lists of tokens; or what is no weight.
    """
    names = [column] if weight is None else [column, weight]
    found = [[_from_table(part, name) for name in names]] if is_table(part) else _from_sentences(part, names)
    batches = (batch for arrays in found for batch in pa.Table.from_arrays(arrays, names).to_batches())
    held: list[Any] = []
    size = 0
    for batch in chain.from_iterable(_cut(_normal(batch)) for batch in batches):
        if held and batch.schema != held[0].schema:
            raise InputError(f"The text ({column!r}) holds texts and lists of tokens.", f"It {_RULE}.")
        held.append(batch)
        size += batch.nbytes
        if size >= TABLE_BYTES:
            yield pa.Table.from_batches(held).combine_chunks()
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held).combine_chunks()


def _cut(batch: Any) -> Iterator[Any]:
    """Yield the rows of a batch; nothing of one that has no text."""
    rows = max(1, len(batch) * TABLE_BYTES // max(batch.nbytes, TABLE_BYTES))
    for start in range(0, 0 if pa.types.is_null(batch.column(0).type) else len(batch), rows):
        yield batch.slice(start, rows)


def _from_table(table: Any, column: str) -> Any:
    """Return a column of a table, which may be the table itself, as Arrow's."""
    framed = is_one_of(table, FRAMES)
    if not framed and not is_one_of(table, ARROW_TABLES):
        return _as_arrow(table, column)
    root = check_column(column, list(table.columns if framed else table.column_names))
    array = _as_arrow(table[root], column) if framed else table.column(root)
    return array if root == column else _inside(array, root, column)


def _inside(array: Any, root: str, column: str) -> Any:
    """Return the nested column that a path leads to, of the column that it begins with."""
    found = find_column(pa.schema([(root, array.type)]), column, "The table")
    chunks = getattr(array, "chunks", [array])
    return pa.chunked_array([found.of(pa.record_batch([chunk], [root])) for chunk in chunks])


def _as_arrow(table: Any, column: str) -> Any:
    """Return a column as Arrow's."""
    if is_one_of(table, POLARS_COLUMNS):
        return table.to_arrow()
    return table if is_one_of(table, ARROW_COLUMNS) else _array(table, column)


def _from_sentences(sentences: Iterable[Any], names: list[str]) -> Iterator[list[Any]]:
    held: list[list[Any]] = [[] for _ in names]
    size = 0
    for sentence in sentences:
        row = [_value(sentence, name) for name in names] if isinstance(sentence, Mapping) else [sentence]
        if isinstance(row[0], Set):
            raise InputError(f"A sentence is a {type(row[0]).__name__}, which has no order.", "Give lists of tokens.")
        unread = [] if isinstance(sentence, Mapping) else [name for name in names if name != TextParams.column]
        if unread:
            raise InputError(
                f"A sentence is a {type(sentence).__name__}, without {unread[0]!r}.",
                "Give records, or leave out column and weight.",
            )
        for values, value in zip(held, row, strict=True):
            values.append(value)
        size += _size(row[0])
        if size >= BATCH:  # Python's tokens take ten times as much as Arrow's
            yield list(map(_array, held, names))
            held, size = [[] for _ in names], 0
    if held[0]:
        yield list(map(_array, held, names))


def _value(record: Mapping[str, Any], column: str) -> Any:
    """Return the value of a key, or the nested one that a path leads to."""
    if check_column(column, list(record)) == column:
        return record[column]
    try:
        return find_field(column, record, lambda value: value if isinstance(value, Mapping) else {})[1]
    except NoFieldError as error:
        raise InputError(f"There is no key {column!r}.", f"There is {', '.join(error.present) or 'none'}.") from None


def _size(sentence: Any) -> int:
    length = len(sentence) if hasattr(sentence, "__len__") else 1
    return length if isinstance(sentence, str) else _TOKEN * length


def _array(values: Any, column: str) -> Any:
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, UnicodeError, OverflowError) as error:
        problem = str(error).partition("\n")[0][:_SHOWN]
        raise InputError(f"The text ({column!r}) cannot be read as one column ({problem}).", f"It {_RULE}.") from None


def _normal(batch: Any) -> Any:
    """Return a batch of text, and of weights, in the types that these are written in."""
    text, *weights = batch.columns
    column, *names = batch.schema.names
    counts = [pa.array(weights_of(n, name, "the input")) for n, name in zip(weights, names, strict=True)]
    return pa.RecordBatch.from_arrays([_text(text, column), *counts], batch.schema.names)


def _text(array: Any, column: str) -> Any:
    """Return texts or tokens in the one type that each of them is written in."""
    kind = array.type
    if pa.types.is_null(kind):
        return array
    if pa.types.is_null(kind) or (not is_text(kind) and array.null_count == len(array)):
        return pa.nulls(len(array))
    if not is_text(kind):
        raise InputError(f"The text ({column!r}) is of type {kind}; it {_RULE}.", "Give column, or convert it.")
    return lists_of(array) if is_list(kind) else strings_in(array).fill_null("")


def content_of(array: Any) -> Iterator[Any]:
    """Yield what tells one column from another, as arrays of NumPy, however it lies in memory."""
    if pa.types.is_integer(array.type):
        yield array.to_numpy()
        return
    if is_list(array.type):
        yield pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
        array = array.flatten().fill_null("")
    data, offsets = strings_of(array)
    yield np.diff(offsets)
    yield data
