"""Writes text that is in no file as Parquet files of a work directory, named by their content.

A file that is there is not written again, so a run that was interrupted goes on, and text that has not changed is the
same corpus, wherever the work directory lies. Text of any kind becomes tables of Arrow first: strings for text, lists
of strings for tokens; int64 for weights of rows.
"""

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from distributed import Client

from daskw2v.cluster.tasks import run_on_partitions
from daskw2v.collections import kinds
from daskw2v.collections.kinds import Derived, GetClient, TextInputs, check_column, is_one_of
from daskw2v.config.params import Params, TextParams
from daskw2v.config.resources import Resources
from daskw2v.corpus.files import Source
from daskw2v.corpus.formats import check_formats, columns
from daskw2v.corpus.formats.parquet import written_parquet
from daskw2v.corpus.sources import find_sources
from daskw2v.corpus.streams import batched
from daskw2v.errors import InputError, counted
from daskw2v.extras import Extra, needed
from daskw2v.progress import Listener, Progress
from daskw2v.store.durability import durable
from daskw2v.store.stage import Layout
from daskw2v.store.storage import Store

pa, pc = Extra("pyarrow", "arrow"), Extra("pyarrow.compute", "arrow")
pq = Extra("pyarrow.parquet", "arrow")

LAYOUT = Layout("inputs/<file>", unused="inputs/<file>")
_GROUP = 4 << 20  # bytes of text in a row group: blocks are made of row groups, each of which is read at once
_END = b"PAR1"
_File = tuple[str, int]  # name and size of a file
TABLE_BYTES = 32 << 20  # of a column, about
_SHOWN = 120  # characters of an error of Arrow's, which shows text
_TOKEN = 8  # bytes of a token, about
BATCH = 1 << 20  # of sentences that are turned into Arrow's at once
_RULE = "must be texts, or lists of strings or integers"


def find_texts(
    inputs: TextInputs, work: Store, params: Params, resources: Resources, client: GetClient, listener: Listener
) -> list[Source]:
    """Find the files of the text; text that is in no file is written to the work directory.

    Workers write the partitions of Dask's collections, of which nothing reaches this process. What is in this process
    is written by it.

    Parameters
    ----------
    inputs
        Checked by `check_texts`. Names, as of `find_sources`. Or bags, DataFrames, Series, Delayed or futures of Dask;
        tables of pandas, polars or Arrow; datasets of Hugging Face; iterables of texts, of lists of tokens, or of
        records with a column. Or text that is `Derived` from other data.
    work, params, resources
        The folder that files are written to; the column that holds text; how files are read.
    client
        Returns the cluster, where it is needed.
    listener
        Called with the progress.

    Raises
    ------
    ParameterError, InputError
        As `find_sources` and `check_formats` do; or if there is no text, or a table has no such column.
    """
    if kinds.is_named(inputs):
        find = partial(find_sources, work=work.url, filters=params.filters, errors=params.errors, listener=listener)
        sources = find(inputs, params.format, resources.storage_options, resources.store_timeout)
        check_formats((source.format for source in sources), params)
        return sources
    if isinstance(inputs, Derived):
        return inputs.write(work, params, resources, client, listener)
    needed("pyarrow", "arrow", "Text that is in no file is written as Parquet.")
    home, tasks = work / LAYOUT.folder, kinds.tasks_of(inputs, params.column, params.weight)
    write = partial(_write, home=home, column=params.column, weight=params.weight)
    if tasks is None:
        written = {0: _write_here(kinds.partitions_of(inputs), write, listener)}
    else:
        written = _write_there(client(), tasks, partial(_write_partition, write), listener)
    parts = [part for number in sorted(written) for part in written[number]]
    if not parts:
        raise InputError(f"There is no text in the {type(inputs).__name__}.", "Give at least one sentence.")
    return [written_parquet(work, f"{LAYOUT.folder}/{name}", size) for name, size in parts]


@contextmanager
def found_texts(
    inputs: TextInputs, work: Store, params: Params, resources: Resources, client: GetClient, listener: Listener
) -> Iterator[Callable[[], list[Source]]]:
    """Give a function that finds the files of the text, as `find_texts` does, and may be called several times.

    Text that is derived is looked for in each call, since something damaged may have been removed. Other text may be
    there only once, and is looked for before the block. After a block that succeeds, written files are removed unless
    `keep_inputs` is set.
    """
    derive = partial(find_texts, inputs, work, params, resources, client, listener)
    sources = [] if isinstance(inputs, Derived) else derive()
    yield derive if isinstance(inputs, Derived) else lambda: sources
    if not resources.keep_inputs:  # `check_texts` refuses it where a file is the user's
        for name in {source.name for source in sources}:
            (work / name).remove()


def _write_here(partitions: Iterator[Any], write: Callable[[Any], Iterator[_File]], listener: Listener) -> list[_File]:
    written = list[_File]()
    with durable():
        for part in chain.from_iterable(map(write, partitions)):
            written.append(part)
            listener(Progress("collect", len(written), 0, "files"))
    return written


def _write_there(
    client: Client, tasks: Sequence[Any], write: Callable[[Any], list[_File]], listener: Listener
) -> dict[int, list[_File]]:
    written = dict[int, list[_File]]()
    for number, parts in run_on_partitions(client, "collect", write, tasks):
        written[number] = parts
        listener(Progress("collect", len(written), len(tasks), "partitions", message=counted(len(tasks), "partition")))
    return written


def _write_partition(write: Callable[[Any], Iterator[_File]], partition: Any) -> list[_File]:
    """Task: write a partition. Dask may call it again, or hand the partition over to another worker."""
    if isinstance(partition, Iterator):
        raise InputError(
            f"A partition is a {type(partition).__name__}, which can be read only once, and is not sent to others.",
            "Let the task return a list or a table.",
        )
    return list(write(partition))


def _write(partition: Any, home: Store, column: str, weight: str | None) -> Iterator[_File]:
    """Write the text of a partition; yield its files, in order."""
    for table in tables_of(partition, column, weight):
        name = f"{_digest(table)}.parquet"
        size = home.size(name)
        if size is None or not _is_whole(home, name, size):
            content = _parquet(table)
            home.write_bytes(name, content)
            size = len(content)
        yield name, size


def _is_whole(home: Store, name: str, size: int) -> bool:
    """Tell whether a file ends as Parquet files do; damage inside is found when it is read."""
    return size > len(_END) and home.read_range(name, size - len(_END), size) == _END


def _digest(table: Any) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for field, column in zip(table.schema, table.columns, strict=True):
        digest.update(f"{field.name} {field.type}".encode())
        for values in content_of(column.combine_chunks()):
            digest.update(values)
    return digest.hexdigest()


def _parquet(table: Any) -> bytes:
    file = io.BytesIO()
    rows = max(1, len(table) * _GROUP // max(table.nbytes, _GROUP))
    options = {"compression": "zstd", "use_dictionary": False, "write_page_checksum": True}
    pq.write_table(table, file, row_group_size=rows, **options)
    return file.getvalue()


def tables_of(part: Any, column: str, weight: str | None = None) -> Iterator[Any]:
    """Yield the text of a partition, in tables of some 32 MB that are not empty.

    Parameters
    ----------
    part
        A table of pandas, polars or Arrow, a column of one, or an iterable of texts, of lists of tokens, or of records.
    column
        Name of the column of tables, and key of records.
    weight
        Name, or key, of the rows' weights, if they have any.

    Yields
    ------
    Table
        `column` is of type `large_string`, or `large_list` of that; `weight` of int64.

    Raises
    ------
    InputError
        If there is no such column, or it holds neither text nor lists of tokens; or a value is no weight.
    """
    names = [column] if weight is None else [column, weight]
    found = [[_from_table(part, name) for name in names]] if kinds.is_table(part) else _from_sentences(part, names)
    batches = (batch for arrays in found for batch in pa.Table.from_arrays(arrays, names).to_batches())
    cut = chain.from_iterable(_cut(_normal(batch)) for batch in batches)
    for held in batched(cut, lambda batch: batch.nbytes, TABLE_BYTES):
        if any(batch.schema != held[0].schema for batch in held):
            raise InputError(f"The text ({column!r}) holds texts and lists of tokens.", f"It {_RULE}.")
        yield pa.Table.from_batches(held).combine_chunks()


def _cut(batch: Any) -> Iterator[Any]:
    """Yield the rows of a batch; nothing if it has no text."""
    rows = max(1, len(batch) * TABLE_BYTES // max(batch.nbytes, TABLE_BYTES))
    for start in range(0, 0 if pa.types.is_null(batch.column(0).type) else len(batch), rows):
        yield batch.slice(start, rows)


def _from_table(table: Any, column: str) -> Any:
    """Return a column of a table, which may be the table itself, as Arrow's."""
    framed = is_one_of(table, kinds.FRAMES)
    if not framed and not is_one_of(table, kinds.ARROW_TABLES):
        return _as_arrow(table, column)
    root = check_column(column, list(table.columns if framed else table.column_names))
    array = _as_arrow(table[root], column) if framed else table.column(root)
    return array if root == column else _inside(array, root, column)


def _inside(array: Any, root: str, column: str) -> Any:
    """Return the nested column that a path leads to, of the column that it begins with."""
    (path,) = columns.find_columns(pa.schema([(root, array.type)]), column, None, "The table").paths
    chunks = getattr(array, "chunks", [array])
    return pa.chunked_array([columns.column_of(pa.record_batch([chunk], [root]), path) for chunk in chunks])


def _as_arrow(table: Any, column: str) -> Any:
    """Return a column as Arrow's."""
    if is_one_of(table, kinds.POLARS_COLUMNS):
        return table.to_arrow()
    return table if is_one_of(table, kinds.ARROW_COLUMNS) else _array(table, column)


def _from_sentences(sentences: Iterable[Any], names: list[str]) -> Iterator[list[Any]]:
    held, size = [list[Any]() for _ in names], 0
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
    """Return the value of a key, or the nested value that a path leads to."""
    if check_column(column, list(record)) == column:
        return record[column]
    try:
        return columns.find_field(column, record, lambda value: value if isinstance(value, Mapping) else {})[1]
    except columns.NoFieldError as error:
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
    counts = [pa.array(columns.weights_of(n, name, "the input")) for n, name in zip(weights, names, strict=True)]
    return pa.RecordBatch.from_arrays([_text(text, column), *counts], batch.schema.names)


def _text(array: Any, column: str) -> Any:
    """Return texts in the type that all texts are written in, and tokens in the type of all tokens."""
    kind = array.type
    if pa.types.is_null(kind) or (not columns.is_text(kind) and array.null_count == len(array)):
        return pa.nulls(len(array))
    if not columns.is_text(kind):
        raise InputError(f"The text ({column!r}) is of type {kind}; it {_RULE}.", "Give column, or convert it.")
    return columns.lists_of(array) if columns.is_list(kind) else columns.strings_in(array).fill_null("")


def content_of(array: Any) -> Iterator[Any]:
    """Yield the content of a column as arrays of NumPy, which are the same however it lies in memory."""
    if pa.types.is_integer(array.type):
        yield array.to_numpy()
        return
    if columns.is_list(array.type):
        yield pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
        array = array.flatten().fill_null("")
    data, offsets = columns.strings_of(array)
    yield np.diff(offsets)
    yield data
