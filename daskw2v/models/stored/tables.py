"""The tables of a version: float32 rows of words, and of what they are trained against.

A table is written in blocks of rows or, if its rows are in partitions, by partition; in both cases it is read in order
of ids.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import zarr
from zarr.codecs import Crc32cCodec

from daskw2v.errors import DamageError, StoreError
from daskw2v.models.stored.rows import StoredRows
from daskw2v.store.arrays import StoredArray, open_array, write_rows
from daskw2v.store.checksums import METADATA, Written
from daskw2v.store.limits import check_name
from daskw2v.store.stage import new_attempt
from daskw2v.store.storage import Store
from daskw2v.types import Float32Array
from daskw2v.vocabulary.partition import Partitions

TABLES, SUBWORDS = "tables", "subwords"  # attributes of a version: names of its tables, and whether it has a network


def create_model(
    store: Store,
    tables: Mapping[str, tuple[int, int]],
    row_block: int,
    n_partitions: int = 1,
    *,
    subwords: bool = False,
) -> None:
    """Create a version and declare its contents, so that losses are detected later. An existing version is replaced.

    Parameters
    ----------
    store
        Folder of the version, `models/<version>`.
    tables
        Rows and columns of each table.
    row_block
        Rows of a chunk, the least that one task writes. With partitions, corresponding chunks of all partitions
        together have this many rows.
    n_partitions
        Number of partitions (`Partitions`); if above 1, tables are written by `write_partition`.
    subwords
        Whether `write_subwords` will write a network.

    Raises
    ------
    ParameterError
        If a table has fewer rows than there are partitions.
    """
    layouts = {name: _layout(*shape, row_block, n_partitions) for name, shape in tables.items()}
    group = store.create_group({TABLES: list(tables), SUBWORDS: subwords}, new_attempt())
    for name, layout in layouts.items():
        # NaN marks rows that were never written. Weights are not compressed, as that saves little.
        group.create_array(name, **layout, dtype=np.float32, fill_value=np.nan, compressors=[Crc32cCodec()])


def open_table(store: Store, table: str) -> StoredRows:
    """Open a table, whose rows are read on demand.

    Raises
    ------
    StoreError
        If the version or its table is missing.
    """
    return StoredRows(stored_table(store, store.open_group(), table))


def table_names(store: Store) -> list[str]:
    """Return the names of a version's tables, finished or not; raises as `open_table` does."""
    return declared_tables(store, store.open_group())


def read_table(store: Store, table: str, start: int = 0, stop: int | None = None) -> Float32Array:
    """Read rows start:stop of a table, shape (rows, D) float32; all of it by default; raises as `open_table` does."""
    return open_table(store, table)[start:stop]


def write_table_rows(store: Store, table: str, start: int, rows: Float32Array) -> Written:
    """Write rows of a table from `start` on, whole chunks only; return their checksums, for `finish_tables`.

    Tasks may write different chunks concurrently.

    Raises
    ------
    StoreError
        If there is no such table, it has partitions, or the rows do not fit its shape or its chunks.
    """
    array = stored_table(store, store.open_group(writable=True), table)
    if array.ndim != 2:
        raise StoreError(
            f"Table {table} of {store.url} has {array.shape[1]} partitions.", "Write it with write_partition."
        )
    if rows.shape[1:] != array.shape[1:] or start + len(rows) > array.shape[0]:
        raise StoreError(
            f"Rows of shape {rows.shape} from row {start} do not fit table {table} of shape {array.shape}.",
            "Write rows of the table's width, within its bounds.",
        )
    write_rows(array, start, rows)
    return array.written()


def read_partition(store: Store, table: str, partition: int) -> Float32Array:
    """Read a partition's rows, shape (size, D) float32.

    Raises
    ------
    StoreError
        If there is no such table or partition.
    """
    rows = open_table(store, table)
    _check_partition(store, table, rows, partition)
    return rows.read_partition(partition)


def write_partition(store: Store, table: str, partition: int, rows: Float32Array) -> Written:
    """Write all rows of a partition, shape (size, D); return their checksums, for `finish_tables`.

    Tasks may write different partitions concurrently.

    Raises
    ------
    StoreError
        If there is no such table or partition, or the rows have another shape.
    """
    array = stored_table(store, store.open_group(writable=True), table)
    stored = StoredRows(array)
    _check_partition(store, table, stored, partition)
    shape = (stored.partitions.size(partition), stored.shape[1])
    if rows.shape != shape:
        raise StoreError(
            f"Rows of shape {rows.shape} do not fit partition {partition} of table {table}, of shape {shape}.",
            "Write exactly the rows of the partition.",
        )
    stored.write_partition(partition, rows)
    return array.written()


def _layout(rows: int, columns: int, row_block: int, n_partitions: int) -> dict[str, Any]:
    """Return a table's shape, chunks and attributes, as `StoredRows` reads them."""
    width = max(1, columns)
    if n_partitions == 1:
        return {"shape": (rows, columns), "chunks": (max(1, min(row_block, rows)), width)}
    n = Partitions(rows, n_partitions).n
    steps = -(-rows // n)
    chunks = (max(1, min(row_block // n, steps)), 1, width)  # of one partition each, so that each has one writer
    return {"shape": (steps, n, columns), "chunks": chunks, "attributes": {"n_words": rows}}


def stored_table(store: Store, group: zarr.Group, name: str) -> StoredArray:
    """Return the array of a table; raises as `open_table` does."""
    check_name(name)
    if name not in group:
        raise DamageError(
            f"{store.url} has no table {name!r}.",
            f"The folder contains: {', '.join(store.children()) or 'nothing'}.",  # not opened, as it may be damaged
            url=f"{store.url}/{name}",
        )
    array = open_array(group, name)
    if array.dtype != np.float32 or not _fits(array):
        raise DamageError(
            f"Table {name!r} of {store.url} has type {array.dtype} and shape {array.shape}, which no model has.",
            "It is damaged, or not of daskw2v: restore it from a copy, or delete it and train again.",
            url=array.url,
        )
    return array


def declared_tables(store: Store, group: zarr.Group) -> list[str]:
    """Return the names of the declared tables, whether they exist or not."""
    names: Any = group.attrs.get(TABLES)
    if not isinstance(names, list) or "input" not in names or not all(isinstance(name, str) for name in names):
        raise DamageError.of(f"{store.url}/{METADATA}", f"names the tables {names!r}, and not those of a model")
    return names


def _fits(array: StoredArray) -> bool:
    """Return whether a table has a shape that `_layout` makes."""
    if array.ndim != 3:
        return array.ndim == 2
    n_words = array.attrs.get("n_words")
    return type(n_words) is int and array.shape[0] == -(-n_words // array.shape[1])


def _check_partition(store: Store, name: str, table: StoredRows, partition: int) -> None:
    if not 0 <= partition < table.partitions.n:
        raise StoreError(
            f"Table {name} of {store.url} has no partition {partition}.",
            f"Its partitions are 0 to {table.partitions.n - 1}.",
        )
