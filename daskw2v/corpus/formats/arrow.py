"""Arrow IPC, which Feather is: blocks are record batches. A stream, which has no index of its batches, is one block."""

from collections.abc import Callable, Iterable
from typing import Any

from daskw2v.corpus.files import Source, TextBlock
from daskw2v.corpus.formats.columns import TextColumns, cut_evenly, get_checked_column, table_format
from daskw2v.errors import InputError
from daskw2v.extras import Extra

ipc = Extra("pyarrow.ipc", "arrow")

_FILE, _FEATHER_1 = b"ARROW1", b"FEA1"  # what files begin with; streams begin with the length of a message


def _cut(file: Any, source: Source, block_bytes: int) -> list[TextBlock]:
    """Return the blocks of an open file: ranges of record batches of about `block_bytes`; a stream is one block."""
    if not _has_index(file, source.url):
        return [TextBlock(source, 0, source.size)]
    return cut_evenly(source, ipc.open_file(file).num_record_batches, block_bytes)


def _open(file: Any, block: TextBlock) -> tuple[Any, Callable[[TextColumns], Iterable[Any]]]:
    """Return the schema of an open file, and a function that yields the record batches of a block.

    Each batch must fit into memory.
    """
    is_indexed = _has_index(file, block.source.url)
    open_batches = ipc.open_file if is_indexed else ipc.open_stream
    schema = open_batches(file).schema

    def batches(columns: TextColumns) -> Iterable[Any]:
        """Return the record batches of the block, with the columns of the file that hold `columns`."""
        file.seek(0)
        only = ipc.IpcReadOptions(included_fields=[schema.get_field_index(name) for name in columns.roots])
        reader = open_batches(file, options=only)
        return map(reader.get_batch, range(block.start, block.stop)) if is_indexed else reader

    return schema, batches


def _has_index(file: Any, url: str) -> bool:
    """Return whether an open file has an index of record batches, which streams lack; rewind it; refuse Feather 1."""
    start = file.read(len(_FILE))
    file.seek(0)
    if start.startswith(_FEATHER_1):
        raise InputError(f"{url} is Feather of version 1, which is not read.", "Write it again, as version 2.")
    return bool(start == _FILE)


_SUFFIXES = (".arrow", ".arrows", ".feather", ".ipc")
ARROW = table_format("arrow", "Arrow IPC", _SUFFIXES, "record batch", _cut, _open, get_checked_column)
