"""The rows of a table in a store, read on demand: tables may be larger than memory."""

from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.errors import DamageError
from daskw2v.store.checksums import StoredArray
from daskw2v.types import Float32Array, Int64Array
from daskw2v.vocabulary.partition import Partitions


class StoredRows:
    """Rows in order of their ids, indexed like a matrix: by a number, a slice or an array of ids.

    Parameters
    ----------
    array
        Shape (V, D). If the rows are in p partitions, (ceil(V / p), p, D) with the attribute `n_words`, V:
        array[:, k] is partition k, whose last row may not exist.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, array: StoredArray) -> None:
        self.array = array
        if array.ndim not in (2, 3) or array.dtype != self.dtype:
            raise DamageError.of(array.url, f"is {array.dtype} of shape {array.shape}, no table")
        self._n = array.shape[1] if array.ndim == 3 else 1
        n_words: Any = array.attrs.get("n_words") if array.ndim == 3 else array.shape[0]
        if type(n_words) is not int or -(-n_words // max(1, self._n)) != array.shape[0]:
            raise DamageError.of(array.url, f"has n_words={n_words!r}, and is of shape {array.shape}")
        self.shape: tuple[int, int] = (n_words, array.shape[-1])

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"StoredRows({self.shape[0]} x {self.shape[1]}, {self._n} partitions, {self.array.url})"

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
        """
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
