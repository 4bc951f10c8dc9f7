"""Parquet: blocks are row groups."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from daskw2v.corpus.files import Source, TextBlock, open_source
from daskw2v.corpus.formats.base import Format, cut_short
from daskw2v.corpus.formats.columns import BATCH, column_of, find_columns, read_arrays, reading_as, rows_at_once
from daskw2v.corpus.invalid import InvalidInput
from daskw2v.corpus.pieces import RawText, Tokens
from daskw2v.corpus.tokenizers import Tokenizer
from daskw2v.extras import Extra

pq = Extra("pyarrow.parquet", "arrow")


def _cut(source: Source, block_bytes: int, storage_options: Mapping[str, Any], timeout: float) -> list[TextBlock]:
    """Combine row groups until they have `block_bytes`, uncompressed and with all columns.

    The bytes of a single column are not read, because damaged metadata of a column makes Arrow end the process.
    """
    if not source.size:
        raise cut_short(source, "Parquet")
    blocks, start, held = [], 0, 0
    sizes = _row_groups(source, storage_options, timeout)
    for stop, group_bytes in enumerate(sizes, 1):
        held += group_bytes
        if held >= block_bytes or stop == len(sizes):
            blocks.append(TextBlock(source, start, stop))
            start, held = stop, 0
    return blocks


def _row_groups(source: Source, storage_options: Mapping[str, Any], timeout: float) -> list[int]:
    with open_source(source, storage_options, timeout) as file, reading_as("Parquet", source.url):
        metadata = pq.ParquetFile(file).metadata
        return [metadata.row_group(g).total_byte_size for g in range(metadata.num_row_groups)]


def _read(
    file: Any, block: TextBlock, column: str, policy: InvalidInput, tokenizer: Tokenizer, weight: str | None = None
) -> Iterator[RawText | Tokens]:
    url = block.source.url
    with reading_as("Parquet", url):
        parquet = pq.ParquetFile(file, buffer_size=BATCH, page_checksum_verification=True)
        found = find_columns(parquet.schema_arrow, column, weight, url)
        groups = range(block.start, block.stop)
        batches = parquet.iter_batches(_rows(parquet.metadata, groups), groups, columns=found.paths)
        place = f"{url}, column {column!r} from row group {block.start} on,"
        yield from read_arrays(found.arrays(batches, column_of), place, policy, tokenizer)


def _rows(metadata: Any, groups: Iterable[int]) -> int:
    """Return the number of rows of a batch."""
    found = [metadata.row_group(g) for g in groups]
    return rows_at_once(sum(group.total_byte_size for group in found), sum(group.num_rows for group in found))


PARQUET = Format(
    name="parquet",
    title="Parquet",
    suffixes=(".parquet", ".pq"),
    cut=_cut,
    read=_read,
    expansion=2.0,
    compressible=False,
    honours=("column", "weight"),
    requires=("pyarrow", "arrow"),
)
