"""Writes text that is in no file as Parquet files of a work directory, named by their content.

A file that exists is not written again. Hence an interrupted run goes on, and text that has not changed is the same
corpus, wherever the work directory lies. Text of any kind becomes tables of Arrow first: strings for text, lists of
strings for tokens; int64 for weights of rows.
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

from daskw2v.cluster.connecting import GetClient
from daskw2v.cluster.tasks import run_on_partitions
from daskw2v.collections import kinds
from daskw2v.collections.kinds import Derived, TextInputs, check_column, is_one_of
from daskw2v.config.params import Params, TextParams
from daskw2v.config.resources import Resources
from daskw2v.corpus.files import Source
from daskw2v.corpus.formats import check_formats, columns
from daskw2v.corpus.formats.parquet import describe_parquet
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
_GROUP_BYTES = 4 << 20  # of text in a row group: blocks are made of row groups, each of which is read at once
_END = b"PAR1"
_File = tuple[str, int]  # name of a file, and its size in bytes
TABLE_BYTES = 32 << 20  # of a file's table, about
_SHOWN = 120  # characters of an error of Arrow, which shows text
_TOKEN_BYTES = 8  # of a token, about
BATCH = 1 << 20  # bytes of sentences that become an Arrow array at once
_RULE = "must be texts, or lists of strings or integers"


def find_texts(
    inputs: TextInputs, work: Store, params: Params, resources: Resources, client: GetClient, listener: Listener
) -> list[Source]:
    """Return the files of the text that inputs hold; text that is in no file is written to the work directory.

    Workers write the partitions of Dask's collections, of which nothing reaches this process. This process writes text
    that it holds.

    Parameters
    ----------
    inputs
        Checked by `check_texts`. Names, as of `find_sources`. Or bags, DataFrames, Series, Delayed or futures of Dask;
        tables of pandas, polars or Arrow; datasets of Hugging Face; iterables of texts, of lists of tokens, or of
        records with a column. Or text that is `Derived` from other data.
    work
        The work directory.
    params, resources
        The settings of the call: the columns of text and weights, and how files are found.
    client
        Returns the cluster; called only if workers have to write.
    listener
        Called with the progress.

    Raises
    ------
    ParameterError, InputError
        As `find_sources` and `check_formats` do; or if there is no text, or a table lacks a column.
    """
    if kinds.are_names(inputs):
        find = partial(find_sources, work=work.url, filters=params.filters, errors=params.errors, listener=listener)
        sources = find(inputs, params.format, resources.storage_options, resources.store_timeout)
        check_formats((source.format for source in sources), params)
        return sources
    if isinstance(inputs, Derived):
        return inputs.write(work, params, resources, client, listener)
    needed("pyarrow", "arrow", "Text that is in no file is written as Parquet.")
    folder, partitions = work / LAYOUT.folder, kinds.dask_partitions(inputs, params.column, params.weight)
    write = partial(_write, folder=folder, column=params.column, weight=params.weight)
    if partitions is None:
        written = {0: _write_locally(kinds.local_partitions(inputs), write, listener)}
    else:
        written = _write_on_workers(client(), partitions, partial(_write_partition, write), listener)
    files = [file for number in sorted(written) for file in written[number]]
    if not files:
        raise InputError(f"There is no text in the {type(inputs).__name__}.", "Give at least one sentence.")
    return [describe_parquet(work, f"{LAYOUT.folder}/{name}", size) for name, size in files]


@contextmanager
def text_finder(
    inputs: TextInputs, work: Store, params: Params, resources: Resources, client: GetClient, listener: Listener
) -> Iterator[Callable[[], list[Source]]]:
    """Yield a function without arguments that returns what `find_texts` returns, and may be called several times.

    Derived text is found anew in each call, since damaged files of it may have been removed. Other text is found once,
    before the block, as an iterator can be read only once. After a block that succeeds, written files are removed
    unless `resources.keep_inputs` is set. Parameters and errors are those of `find_texts`.
    """
    find = partial(find_texts, inputs, work, params, resources, client, listener)
    sources = [] if isinstance(inputs, Derived) else find()
    yield find if isinstance(inputs, Derived) else lambda: sources
    if not resources.keep_inputs:  # `check_texts` refuses False where a file is the user's
        for name in {source.name for source in sources}:
            (work / name).remove()


def _write_locally(
    partitions: Iterator[Any], write: Callable[[Any], Iterator[_File]], listener: Listener
) -> list[_File]:
    """Write partitions in this process by `write`, which is `_write` of a partition; return the files."""
    written = list[_File]()
    with durable():
        for file in chain.from_iterable(map(write, partitions)):
            written.append(file)
            listener(Progress("collect", 0, 0, "files", message=f"{counted(len(written), 'file')} written"))
    return written


def _write_on_workers(
    client: Client, partitions: Sequence[Any], write: Callable[[Any], list[_File]], listener: Listener
) -> dict[int, list[_File]]:
    """Write partitions that Dask computes by tasks of `write`; return the files of each partition, by its index."""
    written, n = dict[int, list[_File]](), len(partitions)
    for number, files in run_on_partitions(client, "collect", write, partitions):
        written[number] = files
        listener(Progress("collect", len(written), n, "partitions", message=counted(n, "partition")))
    return written


def _write_partition(write: Callable[[Any], Iterator[_File]], partition: Any) -> list[_File]:
    """Task: write a partition by `write`; return its files.

    Dask may run the task again, or on another worker, so that an iterator, which is read only once, is refused by an
    InputError.
    """
    if isinstance(partition, Iterator):
        raise InputError(
            f"A partition is a {type(partition).__name__}, which can be read only once, and is not sent to others.",
            "Let the task return a list or a table.",
        )
    return list(write(partition))


def _write(partition: Any, folder: Store, column: str, weight: str | None) -> Iterator[_File]:
    """Write the text of a partition into files of a folder, unless they exist; yield all these files, in order.

    Other parameters and errors are as in `tables_of`.
    """
    for table in tables_of(partition, column, weight):
        name = f"{_digest(table)}.parquet"
        size = folder.size(name)
        if size is None or not _is_complete(folder, name, size):
            content = _to_parquet(table)
            folder.write_bytes(name, content)
            size = len(content)
        yield name, size


def _is_complete(folder: Store, name: str, size: int) -> bool:
    """Return whether a file of `size` bytes ends as Parquet files do; damage inside shows when the file is read."""
    return size > len(_END) and folder.read_range(name, size - len(_END), size) == _END


def _digest(table: Any) -> str:
    """Return a digest of the names, types and content of an Arrow table's columns, 32 hexadecimal digits."""
    digest = hashlib.blake2b(digest_size=16)
    for field, column in zip(table.schema, table.columns, strict=True):
        digest.update(f"{field.name} {field.type}".encode())
        for values in content_of(column.combine_chunks()):
            digest.update(values)
    return digest.hexdigest()


def _to_parquet(table: Any) -> bytes:
    """Return an Arrow table as the bytes of a Parquet file."""
    file = io.BytesIO()
    rows = max(1, len(table) * _GROUP_BYTES // max(table.nbytes, _GROUP_BYTES))
    options = {"compression": "zstd", "use_dictionary": False, "write_page_checksum": True}
    pq.write_table(table, file, row_group_size=rows, **options)
    return file.getvalue()


def tables_of(part: Any, column: str, weight: str | None = None) -> Iterator[Any]:
    """Yield the text of a partition, in Arrow tables of about 32 MB that are not empty.

    Parameters
    ----------
    part
        A table of pandas, polars or Arrow, a column of such a table, or an iterable of texts, of lists of tokens, or of
        records.
    column
        Name, or path, of the column of text in tables, or key in records.
    weight
        Name, path or key of the rows' weights; None if rows have no weights.

    Yields
    ------
    Table
        The column of text is of type `large_string`, or `large_list` of `large_string`; the column of weights is int64.

    Raises
    ------
    InputError
        If there is no such column, or it holds neither text nor lists of tokens; or a value is no weight.
    """
    names = [column] if weight is None else [column, weight]
    rows = [[_from_table(part, name) for name in names]] if kinds.is_table(part) else _from_sentences(part, names)
    batches = (batch for arrays in rows for batch in pa.Table.from_arrays(arrays, names).to_batches())
    slices = chain.from_iterable(_cut(_convert(batch)) for batch in batches)
    for group in batched(slices, lambda batch: batch.nbytes, TABLE_BYTES):
        if any(batch.schema != group[0].schema for batch in group):
            raise InputError(f"The text ({column!r}) holds texts and lists of tokens.", f"It {_RULE}.")
        yield pa.Table.from_batches(group).combine_chunks()


def _cut(batch: Any) -> Iterator[Any]:
    """Yield slices of about `TABLE_BYTES` of a record batch; none if its first column, of text, holds nulls alone."""
    rows = max(1, len(batch) * TABLE_BYTES // max(batch.nbytes, TABLE_BYTES))
    for start in range(0, 0 if pa.types.is_null(batch.column(0).type) else len(batch), rows):
        yield batch.slice(start, rows)


def _from_table(table: Any, column: str) -> Any:
    """Return a column of a table as an Arrow array; `table` may also be the column.

    Parameters
    ----------
    table
        A table of pandas, polars or Arrow, or a column of such a table.
    column
        Name of the column, or path that leads to it.

    Raises
    ------
    InputError
        If there is no such column, or Arrow cannot hold it.
    """
    is_frame = is_one_of(table, kinds.FRAMES)
    if not is_frame and not is_one_of(table, kinds.ARROW_TABLES):
        return _as_arrow(table, column)
    root = check_column(column, list(table.columns if is_frame else table.column_names))
    array = _as_arrow(table[root], column) if is_frame else table.column(root)
    return array if root == column else _nested_column(array, root, column)


def _nested_column(array: Any, root: str, column: str) -> Any:
    """Return the nested column that the path `column` leads to, from the Arrow array of the column `root`."""
    (path,) = columns.find_columns(pa.schema([(root, array.type)]), column, None, "The table").paths
    chunks = getattr(array, "chunks", [array])
    return pa.chunked_array([columns.get_column(pa.record_batch([chunk], [root]), path) for chunk in chunks])


def _as_arrow(table: Any, column: str) -> Any:
    """Return a column of pandas, polars or Arrow as an Arrow array; the name `column` is for messages."""
    if is_one_of(table, kinds.POLARS_COLUMNS):
        return table.to_arrow()
    return table if is_one_of(table, kinds.ARROW_COLUMNS) else _to_arrow(table, column)


def _from_sentences(sentences: Iterable[Any], names: list[str]) -> Iterator[list[Any]]:
    """Yield the sentences of an iterable as lists of Arrow arrays, one array for each name.

    Parameters
    ----------
    sentences
        Texts, lists of tokens, or records.
    names
        Key of the text in records and, if there are weights, key of the weight.

    Raises
    ------
    InputError
        If a sentence is a set, is a record without such a key, or is no record where `names` has another key than the
        default.
    """
    held, size = [list[Any]() for _ in names], 0
    for sentence in sentences:
        row = [_get_value(sentence, name) for name in names] if isinstance(sentence, Mapping) else [sentence]
        if isinstance(row[0], Set):
            raise InputError(f"A sentence is a {type(row[0]).__name__}, which has no order.", "Give lists of tokens.")
        missing = [] if isinstance(sentence, Mapping) else [name for name in names if name != TextParams.column]
        if missing:
            problem = f"A sentence is a {type(sentence).__name__}, without {missing[0]!r}."
            raise InputError(problem, "Give records, or leave out column and weight.")
        for values, value in zip(held, row, strict=True):
            values.append(value)
        size += _estimate_size(row[0])
        if size >= BATCH:  # tokens of Python take ten times as much memory as those of Arrow
            yield list(map(_to_arrow, held, names))
            held, size = [[] for _ in names], 0
    if held[0]:
        yield list(map(_to_arrow, held, names))


def _get_value(record: Mapping[str, Any], column: str) -> Any:
    """Return the value of a record at a key, or the nested value at a path; raises an InputError if there is none."""
    if check_column(column, list(record)) == column:
        return record[column]
    try:
        return columns.find_field(column, record, lambda value: value if isinstance(value, Mapping) else {})[1]
    except columns.NoFieldError as error:
        raise InputError(f"There is no key {column!r}.", f"There is {', '.join(error.present) or 'none'}.") from None


def _estimate_size(sentence: Any) -> int:
    """Return about how many bytes a text or a list of tokens takes."""
    length = len(sentence) if hasattr(sentence, "__len__") else 1
    return length if isinstance(sentence, str) else _TOKEN_BYTES * length


def _to_arrow(values: Any, column: str) -> Any:
    """Return values of Python, or a column of pandas, as an Arrow array; raises an InputError if Arrow refuses them."""
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, UnicodeError, OverflowError) as error:
        problem = str(error).partition("\n")[0][:_SHOWN]
        raise InputError(f"The text ({column!r}) cannot be read as one column ({problem}).", f"It {_RULE}.") from None


def _convert(batch: Any) -> Any:
    """Return a record batch of texts or lists of tokens, and perhaps of weights, in the types of `tables_of`."""
    text, *weights = batch.columns
    column, *names = batch.schema.names
    counts = [pa.array(columns.read_weights(n, name, "the input")) for n, name in zip(weights, names, strict=True)]
    return pa.RecordBatch.from_arrays([_convert_text(text, column), *counts], batch.schema.names)


def _convert_text(array: Any, column: str) -> Any:
    """Return an Arrow array of texts or lists of tokens in the types of `tables_of`; nulls alone have the type null.

    Raises
    ------
    InputError
        If the array holds neither.
    """
    kind = array.type
    if pa.types.is_null(kind) or (not columns.is_text(kind) and array.null_count == len(array)):
        return pa.nulls(len(array))
    if not columns.is_text(kind):
        raise InputError(f"The text ({column!r}) is of type {kind}; it {_RULE}.", "Give column, or convert it.")
    return columns.convert_lists(array) if columns.is_list(kind) else columns.convert_strings(array).fill_null("")


def content_of(array: Any) -> Iterator[Any]:
    """Yield the content of an Arrow array of integers, texts or lists of texts as NumPy arrays.

    These are equal for equal content, however the Arrow array lies in memory: the integers; or, for lists, the length
    of each list; then the length of each text in bytes; then the bytes of all texts.
    """
    if pa.types.is_integer(array.type):
        yield array.to_numpy()
        return
    if columns.is_list(array.type):
        yield pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
        array = array.flatten().fill_null("")
    data, offsets = columns.strings_of(array)
    yield np.diff(offsets)
    yield data
