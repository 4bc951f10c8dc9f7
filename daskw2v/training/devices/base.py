"""Trainers on a device: the base of all trainers, and the trainers of partitions and of rows.

A partition has the rows of a share of the words in one table, and a bucket the pairs of two partitions (strategy
`rotation`). A part is a range of words, of which rows are trained in batches of BATCH (strategy `columns`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from daskw2v.cluster.shared_memory import allocate_shared, share
from daskw2v.config.choice import Choice
from daskw2v.config.params import Params
from daskw2v.kernels import buffers
from daskw2v.kernels.simd import padded
from daskw2v.objectives.base import BucketTrainer, ColumnTrainer, MatrixColumns, Objective, PartTables, is_finite
from daskw2v.objectives.noise import BATCH
from daskw2v.objectives.registry import find_bucket_trainer, find_column_trainer
from daskw2v.sampling.skipgrams import Bucket
from daskw2v.types import Float32Array, Int64Array, UInt64Array


class Threads(NamedTuple):
    """The threads of a training task, and the settings of its device.

    Parameters
    ----------
    n
        Number of threads that train a replica, or that read text for the device that trains it.
    device
        The settings of the device.
    """

    n: int
    device: Choice


class DeviceRows(Protocol):
    """Rows of a table that a task leaves in the memory of its device, for the next task of the same process.

    The rows become an array, shape (rows, D) float32, where they are sent, written, or passed to `numpy.asarray`.
    """

    dtype: Any
    shape: tuple[int, int]

    def __len__(self) -> int:
        """Return the number of rows."""

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return the rows in this machine's memory."""


def map_arrays(to_device: Callable[[Any], Any], values: Any) -> Any:
    """Apply `to_device` to an array, or to all arrays in nested NamedTuples; return other values unchanged."""
    if isinstance(values, np.ndarray):
        return to_device(values)
    if hasattr(values, "_fields"):
        return type(values)(*(map_arrays(to_device, value) for value in values))
    return values


class DeviceTrainer(ABC):
    """The base of all trainers, which train in the memory of their device."""

    device: ClassVar[str]

    @abstractmethod
    def to_device(self, values: Any) -> Any:
        """Return an array of this machine in the device's memory; the array itself on the processor."""

    @abstractmethod
    def from_device(self, values: Any) -> Any:
        """Return an array of the device in this machine's memory; the array itself on the processor."""

    def _make_ready(self) -> None:  # noqa: B027 (most trainers need none)
        """Make the arrays that training needs besides the tables; called when all tables are on the device."""


class PartitionTrainer(DeviceTrainer):
    """Trains buckets of input and output partitions.

    Parameters
    ----------
    objective, params
        The objective, and the settings of the run.
    inputs, outputs
        For each partition, by number, a function that returns its rows, shape (rows, D) float32, or a result of
        `take` or `leave`. The rows are copied, unless they are `owned`.
    counts, total
        Function from the number of a partition to the count of each of its words, shape (rows,) int64; and the sum of
        the counts of all words.
    settings
        The settings of the device.
    each
        `map`, or a function like it that copies partitions by several threads.
    owned
        Whether nobody else needs the rows, so that they may be trained in place.
    """

    def __init__(
        self,
        objective: Objective,
        params: Params,
        inputs: Mapping[int, Callable[[], Any]],
        outputs: Mapping[int, Callable[[], Any]],
        counts: Callable[[int], Int64Array],
        total: int,
        settings: Choice,
        each: Callable[..., Iterable[Any]] = map,
        *,
        owned: bool = False,
    ) -> None:
        self._train, self._objective = self.find_kernel(objective), objective
        self._params, self._counts, self._total = params, counts, total
        self._settings, self._width = settings, padded(params.vector_size)

        def load(rows: Callable[[], Any]) -> Any:
            return self._adopted(rows()) if owned else self._copied(rows())

        self._inputs, self._outputs = (
            dict(zip(partitions, each(load, partitions.values()), strict=True)) for partitions in (inputs, outputs)
        )
        self._partitions = {"input": self._inputs, "output": self._outputs}
        self._make_ready()

    @classmethod
    def find_kernel(cls, objective: Objective) -> BucketTrainer:
        """Return the kernel that trains buckets by an objective, or raise a ParameterError."""
        return find_bucket_trainer(objective, cls.device)

    @abstractmethod
    def train(
        self, input: int, output: int, bucket: Bucket, alpha: float, words: UInt64Array, key: np.uint64
    ) -> tuple[int, float]:
        """Train the bucket of two partitions; return its number of pairs, without noise, and the sum of all losses.

        Threads may call it at the same time for different partitions.

        Parameters
        ----------
        input, output
            The numbers of the two partitions.
        bucket
            The pairs, and contexts that are trained with negatives only.
        alpha
            Learning rate.
        words
            The result of `Objective.partition_table` for the output partition's words.
        key
            Stream of the random draws.
        """

    def take(self, table: str, number: int) -> Float32Array:
        """Return the trained rows of the partition of this number of a table, and release it.

        They are in this machine's memory, shape (rows, padded(D)): zeros fill each row to complete cache lines.
        """
        rows: Float32Array = self.from_device(self._partitions[table].pop(number)).reshape(-1, self._width)
        return rows

    def leave(self, table: str, number: int, *, stays: bool) -> tuple[Any, bool]:
        """Return the trained rows of a partition as the result of a task, and whether they are finite.

        The partition is released. The rows are padded, as in `take`; with `stays`, they may be `DeviceRows`.
        """
        rows = self.take(table, number)
        return share(rows), is_finite(rows)

    def _adopted(self, rows: Any) -> Any:
        """Return a partition's rows, flat, padded and on the device: the rows themselves if they are, else a copy."""
        return self._copied(rows)

    def _copied(self, rows: Any) -> Any:
        """Return a flat, padded copy on the device of a partition's rows."""
        return self.to_device(padded_copy(np.asarray(rows), self._width))


class RowTrainer(DeviceTrainer):
    """Trains the rows of a part of the words on columns of the word-context matrix.

    Parameters
    ----------
    objective, params
        The objective, and the settings of the run.
    prepared
        The result of `objective.prepare`.
    trained
        By table, the rows of the part, followed by their moments if there are any, each of shape (n, D) float32. The
        arrays are copied.
    constant
        By table, the rows of all words in consecutive parts, each of shape (n, D) float32. The arrays are copied. Empty
        where both tables are trained: the part then has all words, and each table is fixed while the other is trained.
    threads
        Number of threads of the processor that train. They share no row: any number gives the same result.
    """

    def __init__(
        self,
        objective: Objective,
        params: Params,
        prepared: object,
        trained: Mapping[str, Sequence[Float32Array]],
        constant: Mapping[str, Sequence[Float32Array]],
        threads: int,
    ) -> None:
        self._kernel = self.find_kernel(objective)
        self._columns, self._width = params.vector_size, padded(params.vector_size)
        self._words = len(next(iter(trained.values()))[0])
        self._batches = -(-self._words // BATCH)
        self._threads = min(threads, max(1, self._batches))
        self._prepared = map_arrays(self.to_device, prepared)
        self._trained = {name: self.to_device(self._tables(tables)) for name, tables in trained.items()}
        self._constant = {name: self.to_device(self._table(rows)) for name, rows in constant.items()}
        self._make_ready()

    @classmethod
    def find_kernel(cls, objective: Objective) -> ColumnTrainer:
        """Return the kernel that trains columns by an objective, or raise a ParameterError."""
        return find_column_trainer(objective, cls.device)

    def train(self, table: str, columns: MatrixColumns, first_row: int = 0) -> Float32Array:
        """Train m rows of the part in place on columns; return the sum of each row's losses, shape (m,) float32.

        Parameters
        ----------
        table
            The table of the rows, "input" or "output".
        columns
            The columns of the rows' words.
        first_row
            The row of the first of these words in the part, a multiple of BATCH.
        """
        other_table = next(name for name in {**self._constant, **self._trained} if name != table)
        length = self._batches * BATCH * self._width
        is_fixed = other_table in self._constant
        fixed = self._constant[other_table] if is_fixed else self._trained[other_table][:length]
        memory = PartTables(self._trained[table][first_row * self._width :], fixed, self._width, length)
        losses = self.to_device(np.zeros(len(columns.contexts), np.float32))
        self._run(-(-len(losses) // BATCH), map_arrays(self.to_device, columns), memory, losses)
        sums: Float32Array = self.from_device(losses)
        return sums

    def take(self, table: str) -> list[Float32Array]:
        """Return a table's trained rows, in shared memory, and their moments, each of shape (n, D); release them."""
        shape = self._words, self._columns
        rows, *moments = self.from_device(self._trained.pop(table)).reshape(-1, self._batches * BATCH, self._width)
        taken = [allocate_shared(shape), *(buffers.pool.table(shape) for _ in moments)]
        for values, padded_rows in zip(taken, (rows, *moments), strict=True):
            values[:] = padded_rows[: self._words, : self._columns]
        return taken

    @abstractmethod
    def _run(self, n_batches: int, columns: MatrixColumns, memory: PartTables, losses: Any) -> None:
        """Train the first `n_batches` batches of rows in `memory`; add each row's losses to `losses`, shape (m,)."""

    def _tables(self, tables: Sequence[Float32Array]) -> Float32Array:
        """Return a flat copy of a table's padded rows, then its moments, each filled with zeros to complete batches."""
        length = self._batches * BATCH
        flat: Float32Array = buffers.pool.empty(len(tables) * length * self._width)
        for rows, part in zip(tables, flat.reshape(-1, length, self._width), strict=True):
            _copy_padded(rows, part[: self._words])
            part[self._words :] = 0.0
        return flat

    def _table(self, pieces: Sequence[Float32Array]) -> Float32Array:
        """Return a flat copy of a table, passed in consecutive parts of rows; zeros pad each row to the width."""
        flat: Float32Array = buffers.pool.empty(sum(map(len, pieces)) * self._width)
        rows, start = flat.reshape(-1, self._width), 0
        for piece in pieces:
            _copy_padded(piece, rows[start : start + len(piece)])
            start += len(piece)
        return flat


def padded_copy(rows: Float32Array, width: int) -> Float32Array:
    """Return a flat copy of rows, shape (n * width,), in which zeros fill each row to `width` floats."""
    table: Float32Array = buffers.pool.empty(len(rows) * width)
    _copy_padded(rows, table.reshape(-1, width))
    return table


def _copy_padded(rows: Float32Array, wide: Float32Array) -> None:
    """Copy rows, shape (n, D), to rows of at least D floats, the rest of which is filled with zeros."""
    wide[:, : rows.shape[1]] = rows
    wide[:, rows.shape[1] :] = 0.0
