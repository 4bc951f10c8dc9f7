"""The tables of a version: float32 rows, of words (`input`) and of other tables of the objective.

A table is written in blocks of rows or, if its rows are distributed to partitions (`Partitions`), by partition; in both
cases it is read in order of ids. Its rows are read on demand, as a table may be larger than memory; or they are in
memory, in one piece for each file. `store` is the version's folder throughout.
"""

from collections.abc import Iterator, Mapping
from multiprocessing.context import get_spawning_popen
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import zarr
from zarr.codecs import Crc32cCodec

from daskw2v.errors import DamageError, StoreError
from daskw2v.extras import Extra
from daskw2v.store.arrays import StoredArray, open_array, write_rows
from daskw2v.store.checksums import METADATA, ChunkChecksums
from daskw2v.store.limits import check_name
from daskw2v.store.stage import new_attempt
from daskw2v.store.storage import Store
from daskw2v.store.urls import is_private
from daskw2v.types import Float32Array, Int64Array
from daskw2v.vocabulary.partition import Partitions

TABLES, SUBWORDS = "tables", "subwords"  # attributes of a version: names of its tables, and whether it has a network
PickledAs = Literal["address", "rows"]

tokens = Extra("dask.base", "events")  # queries load no Dask


class StoredRows:
    """Rows in order of their ids, indexed like a matrix: by a number, a slice or an array of ids.

    Parameters
    ----------
    array
        Shape (V, D). If the rows are in p partitions, (ceil(V / p), p, D) with the attribute `n_words`, V:
        array[:, k] is partition k, whose last row may not exist.
    """

    dtype = np.dtype(np.float32)
    _was_sent = False  # whether another process sent the address

    def __init__(self, array: StoredArray) -> None:
        self.array = array
        self._folder, _, self._name = array.url.rpartition("/")
        self._n = array.shape[1] if array.ndim == 3 else 1
        n_words: Any = array.shape[0] if array.ndim == 2 else array.attrs.get("n_words")
        has_rows = array.ndim in (2, 3) and type(n_words) is int
        if array.dtype != self.dtype or not has_rows or array.shape[0] != -(-n_words // max(1, self._n)):
            raise DamageError(
                f"Table {self._name!r} of {self._folder} has type {array.dtype} and shape {array.shape}, "
                "which no model has.",
                "It is damaged, or not of daskw2v: restore it from a copy, or delete it and train again.",
                url=array.url,
            )
        self.shape: tuple[int, int] = (n_words, array.shape[-1])

    @property
    def pickles_as(self) -> PickledAs:
        """The content of a pickle: "address", the URL of the rows; "rows" if other processes cannot read that URL."""
        return "rows" if is_private(self.array.url) else "address"

    def __reduce__(self) -> Any:
        if self.pickles_as == "rows":
            return np.asarray, (self[:],)
        # Rows are read when they are asked for: Dask's scheduler unpickles messages too, and may reach no store
        return type(self), (self.array,), {"_was_sent": True}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # the files of a finished version do not change

    def __dask_tokenize__(self) -> Any:
        """Return the name of the rows among Dask's keys: their address and checksums, or the rows."""
        if self.pickles_as == "rows":
            return tokens.normalize_token(self[:])
        return self.array.url, self.shape, dict(self.array.attrs)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape[0]} x {self.shape[1]}, {self._n} partitions, {self.array.url})"

    @property
    def partitions(self) -> Partitions:
        """The partitions of the rows."""
        return Partitions(len(self), self._n)

    @property
    def nbytes(self) -> int:
        """Bytes that all rows take in memory."""
        return len(self) * self.shape[1] * self.dtype.itemsize

    @property
    def chunk_rows(self) -> int:
        """Rows in a chunk, or in corresponding chunks of all partitions; multiples of this are bounds of chunks."""
        return self.array.chunks[0] * self._n

    def __getitem__(self, key: int | slice | npt.ArrayLike) -> Float32Array:
        """Return one row, shape (D,), or the n rows of a slice or of ids, shape (n, D); ids below 0 count from the end.

        Raises
        ------
        IndexError
            If there is no such row, or the key has another type.
        StoreError
            If the rows are damaged, or are no longer at the address that a pickle held.
        """
        try:
            return self._read(key)
        except StoreError as error:
            if not self._was_sent:
                raise
            raise StoreError(
                f"{self.array.url} cannot be read in this process, which got a model with that address and no rows: "
                f"{error.problem}",
                "Put the model where all processes reach it, or open it with in_memory=True: pickles then hold rows.",
            ) from error

    def _read(self, key: int | slice | npt.ArrayLike) -> Float32Array:
        """Return rows as `__getitem__` does, with the errors of the store."""
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step == 1:
                return self._read_range(start, max(start, stop))
            return self._read_ids(np.arange(start, stop, step))
        ids = np.asarray(key)
        if ids.dtype.kind not in "iu" and ids.size:
            raise IndexError(f"Rows are indexed by integers, not by {ids.dtype}.")
        ids = ids.astype(np.int64)
        out_of_range = (ids < -len(self)) | (ids >= len(self))
        if out_of_range.any():
            raise IndexError(f"There is no row {ids[out_of_range].flat[0]} of {len(self)}.")
        rows = self._read_ids(np.where(ids < 0, ids + len(self), ids).reshape(-1))
        return rows.reshape(*ids.shape, self.shape[1])

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return all rows, shape (V, D), for `numpy.asarray`."""
        if copy is False:
            raise ValueError("Rows in a store cannot become an array without a copy.")
        return self[:] if dtype is None else self[:].astype(dtype, copy=False)

    def _read_range(self, start: int, stop: int) -> Float32Array:
        """Return the rows start..stop-1, shape (n, D)."""
        if self.array.ndim == 2:
            return self.array[start:stop]
        rows, n = np.empty((stop - start, self.shape[1]), np.float32), self._n
        for chunk in range(start - start % self.chunk_rows, stop, self.chunk_rows):
            first, last = max(start, chunk), min(stop, chunk + self.chunk_rows)
            slots = self.array[first // n : -(-last // n)]
            reversed_slots = slots[1 - first // n % 2 :: 2]
            reversed_slots[:] = reversed_slots[:, ::-1]  # partitions take turns in alternating order
            rows[first - start : last - start] = slots.reshape(-1, self.shape[1])[first % n :][: last - first]
        return rows

    def _read_ids(self, ids: Int64Array) -> Float32Array:
        """Return the rows of n ids, each 0 or above, shape (n, D)."""
        if self.array.ndim == 2:
            return self.array.take(ids)
        rows = np.empty((len(ids), self.shape[1]), np.float32)
        parts, numbers = self.partitions.locate(ids)
        for part in np.unique(parts).tolist():
            in_part = parts == part
            rows[in_part] = self.array.take((numbers[in_part], part))
        return rows

    def read_chunks(self, start: int) -> Iterator[Float32Array]:
        """Yield the chunks with the rows start..start+chunk_rows-1, one by one; `start` is a multiple of `chunk_rows`.

        Each has rows of one partition, behind which rows of zeros may follow.
        """
        first = start // self._n
        rows = slice(first, first + self.array.chunks[0])
        for selection in [(rows, k) for k in range(self._n)] if self.array.ndim == 3 else [rows]:
            yield self.array[selection]

    def read_partition(self, partition: int) -> Float32Array:
        """Return a partition's rows, shape (size, D).

        Raises
        ------
        StoreError
            If there is no such partition.
        """
        rows = slice(self._size(partition))
        return self.array[(rows, partition) if self.array.ndim == 3 else rows]

    def write_partition(self, partition: int, rows: Float32Array) -> None:
        """Write a partition's rows, shape (size, D); partitions share no chunk.

        Only complete chunks are written: Zarr would read a chunk before it writes a part of it.

        Raises
        ------
        StoreError
            If there is no such partition, or the rows have another shape.
        """
        if rows.shape != (shape := (self._size(partition), self.shape[1])):
            raise StoreError(
                f"Rows of shape {rows.shape} do not fit partition {partition} of table {self._name}, of shape {shape}.",
                "Write exactly the rows of the partition.",
            )
        if self.array.ndim == 2:
            self.array[...] = rows
            return
        length, step = self.array.shape[0], self.array.chunks[0]
        last = (length - 1) // step * step  # first row of the last chunk, of which a row may not exist
        end = np.zeros((length - last, self.shape[1]), np.float32)
        end[: len(rows) - last] = rows[last:]
        self.array[:last, partition] = rows[:last]
        self.array[last:, partition] = end

    def _size(self, partition: int) -> int:
        """Return the number of rows of a partition; raise StoreError if there is no such partition."""
        if not 0 <= partition < self._n:
            problem = f"Table {self._name} of {self._folder} has no partition {partition}."
            raise StoreError(problem, f"Its partitions are 0 to {self._n - 1}.")
        return self.partitions.size(partition)


class PiecedRows(StoredRows):
    """Rows in memory, in the pieces that are a table's files: mapped, or read where `StoredArray.pieces` cannot map.

    Parameters
    ----------
    array
        As of `StoredRows`, if `can_hold` accepts it.
    """

    def __init__(self, array: StoredArray) -> None:
        super().__init__(array)
        self._pieces = [piece.reshape(-1, self.shape[1]) for piece in array.pieces()]
        self._step = max(map(len, self._pieces), default=1)

    @property
    def pickles_as(self) -> PickledAs:
        """The content of a pickle: "rows"; "address", the URL, if a process being started maps the same files."""
        return "address" if self.array.is_local and get_spawning_popen() is not None else "rows"

    @staticmethod
    def can_hold(array: StoredArray) -> bool:
        """Return whether each file of a table holds complete rows of one partition, as daskw2v writes them."""
        return array.shards is None and array.chunks[1:] == (1, max(1, array.shape[-1]))[3 - array.ndim :]

    def pieces(self, limit: int) -> Iterator[tuple[Int64Array, Float32Array]]:
        """Yield the ids below `limit`, piece by piece, ascending in each, and their rows, which are not copied."""
        for number, rows in enumerate(self._pieces):
            chunk, part = divmod(number, self._n)
            first = chunk * self._step
            if first * self._n >= limit:
                break
            stop = min(first + self._step, self.partitions.size(part, limit))
            ids = self.partitions.words(part, first, stop)
            if len(ids):
                yield ids, rows[: len(ids)]

    def _read_range(self, start: int, stop: int) -> Float32Array:
        if start:
            return self._read_ids(np.arange(start, stop))
        rows = np.empty((stop, self.shape[1]), np.float32)
        for ids, piece in self.pieces(stop):
            rows[ids] = piece  # each row once, without a copy of the piece
        return rows

    def _read_ids(self, ids: Int64Array) -> Float32Array:
        result = np.empty((len(ids), self.shape[1]), np.float32)
        parts, rows = self.partitions.locate(ids) if len(ids) else (ids, ids)
        chunks, rows = np.divmod(rows, self._step)
        pieces = chunks * self._n + parts
        order = np.argsort(pieces, kind="stable")
        numbers, firsts = np.unique(pieces[order], return_index=True)
        for number, positions in zip(numbers.tolist(), np.split(order, firsts[1:]), strict=False):
            result[positions] = self._pieces[number][rows[positions]]
        return result


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
        Rows and columns of each table, by its name.
    row_block
        Rows of a chunk, the smallest number that one task writes. With partitions, corresponding chunks of all
        partitions together have this many rows.
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


def open_table(store: Store, table: str, group: zarr.Group | None = None) -> StoredRows:
    """Open a table, whose rows are read on demand.

    Parameters
    ----------
    store, table
        Folder of the version, and the table's name.
    group
        The version's group, if it is open already.

    Raises
    ------
    StoreError
        If the version or its table is missing or damaged, or no model has such a table.
    """
    group = store.open_group() if group is None else group
    check_name(table)
    if table not in group:
        raise DamageError(
            f"{store.url} has no table {table!r}.",
            f"The folder contains: {', '.join(store.children()) or 'nothing'}.",  # not opened, as it may be damaged
            url=f"{store.url}/{table}",
        )
    return StoredRows(open_array(group, table))


def table_names(store: Store, group: zarr.Group | None = None) -> list[str]:
    """Return the names of the tables that a version declares; arguments and errors are as in `open_table`."""
    names: Any = (store.open_group() if group is None else group).attrs.get(TABLES)
    if not isinstance(names, list) or "input" not in names or not all(isinstance(name, str) for name in names):
        damage = f"names the tables {names!r}, which is not a list of a model's tables"
        raise DamageError.of(f"{store.url}/{METADATA}", damage)
    return names


def read_table(store: Store, table: str, start: int = 0, stop: int | None = None) -> Float32Array:
    """Read the rows start..stop-1 of a table, by default all, shape (n, D) float32; raises as `open_table` does."""
    return open_table(store, table)[start:stop]


def write_table_rows(store: Store, table: str, start: int, rows: Float32Array) -> ChunkChecksums:
    """Write rows of a table from `start` on, complete chunks only; return their checksums, for `finish_tables`.

    Tasks may write different chunks concurrently.

    Raises
    ------
    StoreError
        If there is no such table, it has partitions, or the rows do not fit its shape or its chunks.
    """
    array = open_table(store, table, store.open_group(writable=True)).array
    if array.ndim != 2:
        raise StoreError(
            f"Table {table} of {store.url} has {array.shape[1]} partitions.", "Write it with write_partition."
        )
    if rows.shape[1:] != array.shape[1:] or start + len(rows) > array.shape[0]:
        problem = f"Rows of shape {rows.shape} from row {start} do not fit table {table} of shape {array.shape}."
        raise StoreError(problem, "Write rows of the table's width, within its bounds.")
    write_rows(array, start, rows)
    return array.chunk_checksums()


def read_partition(store: Store, table: str, partition: int) -> Float32Array:
    """Read the rows of a partition, (size, D) float32; raises as `open_table` and `StoredRows.read_partition` do."""
    return open_table(store, table).read_partition(partition)


def write_partition(store: Store, table: str, partition: int, rows: Float32Array) -> ChunkChecksums:
    """Write all rows of a partition, shape (size, D); return their checksums, for `finish_tables`.

    Tasks may write different partitions concurrently; raises as `open_table` and `StoredRows.write_partition` do.
    """
    stored = open_table(store, table, store.open_group(writable=True))
    stored.write_partition(partition, rows)
    return stored.array.chunk_checksums()


def _layout(rows: int, columns: int, row_block: int, n_partitions: int) -> dict[str, Any]:
    """Return the arguments shape, chunks and attributes of a table's Zarr array, as `StoredRows` reads them."""
    width = max(1, columns)
    if n_partitions == 1:
        return {"shape": (rows, columns), "chunks": (max(1, min(row_block, rows)), width)}
    n = Partitions(rows, n_partitions).n
    steps = -(-rows // n)
    chunks = (max(1, min(row_block // n, steps)), 1, width)  # of one partition each, so that each has one writer
    return {"shape": (steps, n, columns), "chunks": chunks, "attributes": {"n_words": rows}}
