"""Arrow IPC, which Feather is: blocks are record batches. A stream, which has no index of them, is one block."""

from collections.abc import Iterator, Mapping
from typing import Any

from daskw2v.corpus.files import Source, TextBlock, open_source
from daskw2v.corpus.formats.base import Format, cut_short
from daskw2v.corpus.formats.columns import checked, cut_evenly, find_columns, read_arrays, reading_as
from daskw2v.corpus.invalid import InvalidInput
from daskw2v.corpus.pieces import RawText, Tokens
from daskw2v.corpus.tokenizers import Tokenizer
from daskw2v.errors import InputError
from daskw2v.extras import Extra

ipc = Extra("pyarrow.ipc", "arrow")

_TITLE = "Arrow IPC"
_FILE, _FEATHER_1 = b"ARROW1", b"FEA1"  # what files begin with; streams begin with the length of a message


def _cut(source: Source, block_bytes: int, storage_options: Mapping[str, Any], timeout: float) -> list[TextBlock]:
    if not source.size:
        raise cut_short(source, _TITLE)
    with open_source(source, storage_options, timeout) as file, reading_as(_TITLE, source.url):
        if not _has_index(file, source.url):
            return [TextBlock(source, 0, source.size)]
        return cut_evenly(source, ipc.open_file(file).num_record_batches, block_bytes)


def _read(
    file: Any, block: TextBlock, column: str, policy: InvalidInput, tokenizer: Tokenizer, weight: str | None = None
) -> Iterator[RawText | Tokens]:
    """Read one column of each record batch, which must fit into memory."""
    url = block.source.url
    with reading_as(_TITLE, url):
        indexed = _has_index(file, url)
        open_batches = ipc.open_file if indexed else ipc.open_stream
        schema = open_batches(file).schema
        found = find_columns(schema, column, weight, url)
        file.seek(0)
        only = ipc.IpcReadOptions(included_fields=[schema.get_field_index(name) for name in found.roots])
        reader = open_batches(file, options=only)
        batches = map(reader.get_batch, range(block.start, block.stop)) if indexed else reader
        place = f"{url}, column {column!r} from record batch {block.start} on,"
        yield from read_arrays(found.arrays(batches, checked), place, policy, tokenizer)


def _has_index(file: Any, url: str) -> bool:
    """Tell whether a file, which is rewound, is no stream."""
    start = file.read(len(_FILE))
    file.seek(0)
    if start.startswith(_FEATHER_1):
        raise InputError(f"{url} is Feather of version 1, which is not read.", "Write it again, as version 2.")
    return bool(start == _FILE)


ARROW = Format(
    name="arrow",
    title=_TITLE,
    suffixes=(".arrow", ".arrows", ".feather", ".ipc"),
    cut=_cut,
    read=_read,
    compressible=False,
    honours=("column", "weight"),
    requires=("pyarrow", "arrow"),
)
