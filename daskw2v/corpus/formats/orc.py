"""ORC: blocks are stripes."""

from collections.abc import Iterator, Mapping
from typing import Any

from daskw2v.corpus.files import Source, TextBlock, open_source
from daskw2v.corpus.formats.base import Format, cut_short
from daskw2v.corpus.formats.columns import checked, cut_evenly, find_columns, read_arrays, reading_as
from daskw2v.corpus.invalid import InvalidInput
from daskw2v.corpus.pieces import RawText, Tokens
from daskw2v.corpus.tokenizers import Tokenizer
from daskw2v.extras import Extra

orc = Extra("pyarrow.orc", "arrow")


def _cut(source: Source, block_bytes: int, storage_options: Mapping[str, Any], timeout: float) -> list[TextBlock]:
    if not source.size:
        raise cut_short(source, "ORC")
    with open_source(source, storage_options, timeout) as file, reading_as("ORC", source.url):
        return cut_evenly(source, orc.ORCFile(file).nstripes, block_bytes)


def _read(
    file: Any, block: TextBlock, column: str, policy: InvalidInput, tokenizer: Tokenizer, weight: str | None = None
) -> Iterator[RawText | Tokens]:
    """Read one column of each stripe, which must fit into memory."""
    url = block.source.url
    with reading_as("ORC", url):
        table = orc.ORCFile(file)
        found = find_columns(table.schema, column, weight, url)
        stripes = (table.read_stripe(n, columns=found.paths) for n in range(block.start, block.stop))
        place = f"{url}, column {column!r} from stripe {block.start} on,"
        yield from read_arrays(found.arrays(stripes, checked), place, policy, tokenizer)


ORC = Format(
    name="orc",
    title="ORC",
    suffixes=(".orc",),
    cut=_cut,
    read=_read,
    expansion=2.0,
    compressible=False,
    honours=("column", "weight"),
    requires=("pyarrow", "arrow"),
)
