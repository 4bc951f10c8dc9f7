"""The rows of a table in a store, read on demand, as tables may be larger than memory; or in memory, as they lie."""

from collections.abc import Iterator
from multiprocessing.context import get_spawning_popen
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from daskw2v.errors import DamageError, StoreError
from daskw2v.extras import Extra
from daskw2v.store.arrays import StoredArray
from daskw2v.store.urls import is_private
from daskw2v.types import Float32Array, Int64Array
from daskw2v.vocabulary.partition import Partitions

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
    _was_sent = False  # from another process, by its address

    def __init__(self, array: StoredArray) -> None:
        self.array = array
        if array.ndim not in (2, 3) or array.dtype != self.dtype:
            raise DamageError.of(array.url, f"is {array.dtype} of shape {array.shape}, no table")
        self._n = array.shape[1] if array.ndim == 3 else 1
        n_words: Any = array.attrs.get("n_words") if array.ndim == 3 else array.shape[0]
        if type(n_words) is not int or -(-n_words // max(1, self._n)) != array.shape[0]:
            raise DamageError.of(array.url, f"has n_words={n_words!r}, and is of shape {array.shape}")
        self.shape: tuple[int, int] = (n_words, array.shape[-1])

    @property
    def pickles_as(self) -> PickledAs:
        """What a pickle holds: the address where rows lie, unless other processes would find nothing there."""
        return "rows" if is_private(self.array.url) else "address"

    def __reduce__(self) -> Any:
        if self.pickles_as == "rows":
            return np.asarray, (self[:],)
        # Read when rows are asked for: Dask's scheduler also loads what is sent, and may reach no store
        return type(self), (self.array,), {"_was_sent": True}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # what lies in a finished version does not change

    def __dask_tokenize__(self) -> Any:
        """Return what names the rows among Dask's keys: the address and checksums, or what is there."""
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
        """Bytes that the whole table takes in memory."""
        return len(self) * self.shape[1] * self.dtype.itemsize

    @property
    def chunk_rows(self) -> int:
        """Rows in a chunk, or in corresponding chunks of all partitions; reading this many reads no chunk twice."""
        return self.array.chunks[0] * self._n

    def __getitem__(self, key: int | slice | npt.ArrayLike) -> Float32Array:
        """Return one row, shape (D,), or several, shape (n, D).

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
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            return self._range(start, max(start, stop)) if step == 1 else self._pick(np.arange(start, stop, step))
        ids = np.asarray(key)
        if ids.dtype.kind not in "iu" and ids.size:
            raise IndexError(f"Rows are indexed by integers, not by {ids.dtype}.")
        ids = ids.astype(np.int64)
        outside = (ids < -len(self)) | (ids >= len(self))
        if outside.any():
            raise IndexError(f"There is no row {ids[outside].flat[0]} of {len(self)}.")
        rows = self._pick(np.where(ids < 0, ids + len(self), ids).reshape(-1))
        return rows.reshape(*ids.shape, self.shape[1])

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return the whole table, for `numpy.asarray`."""
        if copy is False:
            raise ValueError("Rows in a store cannot become an array without a copy.")
        return self[:] if dtype is None else self[:].astype(dtype, copy=False)

    def _range(self, start: int, stop: int) -> Float32Array:
        if self.array.ndim == 2:
            return self.array[start:stop]
        rows, n = np.empty((stop - start, self.shape[1]), np.float32), self._n
        for chunk in range(start - start % self.chunk_rows, stop, self.chunk_rows):
            first, last = max(start, chunk), min(stop, chunk + self.chunk_rows)
            dealt = self.array[first // n : -(-last // n)]
            odd = dealt[1 - first // n % 2 :: 2]
            odd[:] = odd[:, ::-1]  # words are dealt out back and forth
            rows[first - start : last - start] = dealt.reshape(-1, self.shape[1])[first % n :][: last - first]
        return rows

    def _pick(self, ids: Int64Array) -> Float32Array:
        if self.array.ndim == 2:
            return self.array.take(ids)
        rows = np.empty((len(ids), self.shape[1]), np.float32)
        parts, places = self.partitions.place(ids)
        for part in np.unique(parts).tolist():
            own = parts == part
            rows[own] = self.array.take((places[own], part))
        return rows

    def read_partition(self, partition: int) -> Float32Array:
        """Return a partition's rows, shape (size, D)."""
        return self.array[self._own(partition)]

    def write_partition(self, partition: int, rows: Float32Array) -> None:
        """Write a partition's rows, shape (size, D); partitions share no chunk.

        Chunks are written whole: Zarr would read what is in one before it writes a part of it.
        """
        if self.array.ndim == 2:
            self.array[...] = rows
            return
        length, step = self.array.shape[0], self.array.chunks[0]
        last = (length - 1) // step * step  # of whose chunk a row may not exist
        end = np.zeros((length - last, self.shape[1]), np.float32)
        end[: len(rows) - last] = rows[last:]
        self.array[:last, partition] = rows[:last]
        self.array[last:, partition] = end

    def _own(self, partition: int) -> Any:
        rows = slice(self.partitions.size(partition))
        return (rows, partition) if self.array.ndim == 3 else rows


class PiecedRows(StoredRows):
    """Rows in memory, in the pieces that are a table's files: mapped, or read where `StoredArray.pieces` cannot map.

    Parameters
    ----------
    array
        As of `StoredRows`; `can_hold` says which.
    """

    def __init__(self, array: StoredArray) -> None:
        super().__init__(array)
        self._pieces = [piece.reshape(-1, self.shape[1]) for piece in array.pieces()]
        self._step = max(map(len, self._pieces), default=1)

    @property
    def pickles_as(self) -> PickledAs:
        """What a pickle holds: the rows, unless it is for a process that is being started to map the same files."""
        return "address" if self.array.is_local and get_spawning_popen() is not None else "rows"

    @staticmethod
    def can_hold(array: StoredArray) -> bool:
        """Tell whether each of a table's files holds whole rows of one partition, as those that daskw2v writes do."""
        return array.shards is None and array.chunks[1:] == (1, max(1, array.shape[-1]))[3 - array.ndim :]

    def pieces(self, limit: int) -> Iterator[tuple[Int64Array, Float32Array]]:
        """Yield the words below `limit`, ascending in each piece, and their rows, which are no copies."""
        for number, rows in enumerate(self._pieces):
            place, part = divmod(number, self._n)
            first = place * self._step
            if first * self._n >= limit:
                break
            stop = min(first + self._step, self.partitions.size(part, limit))
            ids = self.partitions.words(part, first, stop)
            if len(ids):
                yield ids, rows[: len(ids)]

    def _range(self, start: int, stop: int) -> Float32Array:
        if start:
            return self._pick(np.arange(start, stop))
        found = np.empty((stop, self.shape[1]), np.float32)
        for ids, rows in self.pieces(stop):
            found[ids] = rows  # each once, without a copy of the piece
        return found

    def _pick(self, ids: Int64Array) -> Float32Array:
        found = np.empty((len(ids), self.shape[1]), np.float32)
        parts, rows = self.partitions.place(ids) if len(ids) else (ids, ids)
        places, rows = np.divmod(rows, self._step)
        pieces = places * self._n + parts
        order = np.argsort(pieces, kind="stable")
        numbers, firsts = np.unique(pieces[order], return_index=True)
        for number, own in zip(numbers.tolist(), np.split(order, firsts[1:]), strict=False):
            found[own] = self._pieces[number][rows[own]]
        return found


class RowsField:
    """The field `vectors` of a class, kept as `_rows`: rows in pieces become one array when the field is read."""

    def __set__(self, owner: Any, rows: npt.ArrayLike | StoredRows) -> None:
        vars(owner)["_rows"] = rows if isinstance(rows, StoredRows) else _as_float32(rows)

    def __get__(self, owner: Any, kind: type) -> Float32Array | StoredRows:
        if owner is None:
            raise AttributeError  # the field has no default
        rows: Float32Array | StoredRows = owner._rows
        if isinstance(rows, PiecedRows):
            vars(owner)["_rows"] = rows = rows[:]
        return rows


def _as_float32(given: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return real numbers as float32, without a copy where they are, and anything else as an array."""
    try:
        found = np.asarray(given)
    except ValueError:  # rows of several lengths
        found = np.asarray(None)
    if found.dtype.kind not in "fiu":
        return found
    with np.errstate(over="raise"):
        try:
            return found.astype(np.float32, copy=False)
        except FloatingPointError:
            return found
