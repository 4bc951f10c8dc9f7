"""Parquet: blocks are row groups."""

from collections.abc import Callable, Iterable
from typing import Any

from daskw2v.corpus.files import Source, TextBlock
from daskw2v.corpus.formats.columns import BATCH, TextColumns, get_column, rows_at_once, table_format
from daskw2v.corpus.streams import batched
from daskw2v.extras import Extra
from daskw2v.store.storage import Store

pq = Extra("pyarrow.parquet", "arrow")


def _cut(file: Any, source: Source, block_bytes: int) -> list[TextBlock]:
    """Return the blocks of an open file: row groups that have `block_bytes` together, uncompressed and of all columns.

    The size of the column of text alone is not read, because damaged metadata of a column makes Arrow end the process.
    """
    metadata = pq.ParquetFile(file).metadata
    sizes = [metadata.row_group(g).total_byte_size for g in range(metadata.num_row_groups)]
    blocks = batched(range(len(sizes)), sizes.__getitem__, block_bytes)
    return [TextBlock(source, groups[0], groups[-1] + 1) for groups in blocks]


def _open(file: Any, block: TextBlock) -> tuple[Any, Callable[[TextColumns], Iterable[Any]]]:
    """Return the schema of an open file, and a function that yields the rows of a block in small record batches."""
    parquet = pq.ParquetFile(file, buffer_size=BATCH, page_checksum_verification=True)
    groups = range(block.start, block.stop)
    metadata = [parquet.metadata.row_group(g) for g in groups]
    rows = rows_at_once(sum(group.total_byte_size for group in metadata), sum(group.num_rows for group in metadata))
    return parquet.schema_arrow, lambda columns: parquet.iter_batches(rows, groups, columns=columns.names)


PARQUET = table_format("parquet", "Parquet", (".parquet", ".pq"), "row group", _cut, _open, get_column, expansion=2.0)


def describe_parquet(work: Store, path: str, size: int) -> Source:
    """Return the `Source` of a Parquet file in the work directory, whose path is named by its content.

    Parameters
    ----------
    work, path
        The work directory, and the path of the file below it.
    size
        Size of the file in bytes.
    """
    return Source(f"{work.url}/{path}", size, "", PARQUET.name, None, path)
