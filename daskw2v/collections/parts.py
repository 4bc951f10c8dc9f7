"""Writes text that is in no file as Parquet files of a work directory, named by their content.

A file that is there is not written again, so a run that was interrupted goes on, and text that has not changed is the
same corpus, wherever the work directory lies.
"""

import hashlib
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any

from distributed import Client

from daskw2v.cluster.tasks import run_on_partitions
from daskw2v.collections.kinds import Derived, TextInputs, is_named, partitions_of, tasks_of
from daskw2v.collections.tables import content_of, tables_of
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.files import Source
from daskw2v.corpus.formats import PARQUET, check_formats
from daskw2v.corpus.sources import find_sources
from daskw2v.errors import InputError, counted
from daskw2v.extras import Extra, needed
from daskw2v.progress import Listener, Progress
from daskw2v.store.durability import durable
from daskw2v.store.stage import Layout
from daskw2v.store.storage import Store

pa = Extra("pyarrow", "arrow")
pq = Extra("pyarrow.parquet", "arrow")

LAYOUT = Layout("inputs/<file>", unused="inputs/<file>")
_GROUP = 4 << 20  # bytes of text in a row group: what a block is made of, and what is read at once
_END = b"PAR1"
_File = tuple[str, int]  # name and size of a file


def find_texts(
    inputs: TextInputs,
    work: Store,
    params: Params,
    resources: Resources,
    client: Callable[[], Client],
    listener: Listener,
) -> list[Source]:
    """Find the files of the text; text that is in no file is written to the work directory.

    Workers write the partitions of Dask's collections, of which nothing reaches this process. What is in this process
    is written by it.

    Parameters
    ----------
    inputs
        Checked by `check_texts`. Names, as of `find_sources`. Or bags, DataFrames, Series, Delayed or futures of Dask;
        tables of pandas, polars or Arrow; datasets of Hugging Face; iterables of texts, of lists of tokens, or of
        records with a column. Or what is `Derived` from other data.
    work, params, resources
        Where files are written; the column that holds text.
    client
        Returns the cluster, where it is needed.
    listener
        Called with the progress.

    Raises
    ------
    ParameterError, InputError
        As `find_sources` and `check_formats` do; or if there is no text, or a table has no such column.
    """
    if is_named(inputs):
        sources = find_sources(
            inputs, params.format, resources.storage_options, resources.store_timeout, work=work.url,
            filters=params.filters, errors=params.errors, listener=listener,
        )  # fmt: skip
        check_formats(sources, params)
        return sources
    if isinstance(inputs, Derived):
        return inputs.write(work, params, resources, client, listener)
    needed("pyarrow", "arrow", "Text that is in no file is written as Parquet.")
    home, tasks = work / LAYOUT.folder, tasks_of(inputs, params.column, params.weight)
    write = partial(_write, home=home, column=params.column, weight=params.weight)
    if tasks is None:
        written = {0: _write_here(partitions_of(inputs), write, listener)}
    else:
        written = _write_there(client(), tasks, partial(_write_partition, write), listener)
    parts = [part for number in sorted(written) for part in written[number]]
    if not parts:
        raise InputError(f"There is no text in the {type(inputs).__name__}.", "Give at least one sentence.")
    return [
        Source(f"{home.url}/{name}", size, "", PARQUET.name, None, name=f"{LAYOUT.folder}/{name}")
        for name, size in parts
    ]


@contextmanager
def found_texts(
    inputs: TextInputs,
    work: Store,
    params: Params,
    resources: Resources,
    client: Callable[[], Client],
    listener: Listener,
) -> Iterator[Callable[[], list[Source]]]:
    """Give a function that finds the files of the text, as `find_texts` does, and may be called several times.

    Text that is derived is looked for in each call, since something damaged may have been removed. Other text may be
    there only once, and is looked for before the block. After a block that succeeds, keep what is to be kept.
    """
    derive = partial(find_texts, inputs, work, params, resources, client, listener)
    sources = [] if isinstance(inputs, Derived) else derive()
    yield derive if isinstance(inputs, Derived) else lambda: sources
    if not resources.keep_inputs:  # of which `check_texts` tells that no file is the user's
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
    """Tell whether a file ends as Parquet files do; what is damaged inside is found when it is read."""
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
