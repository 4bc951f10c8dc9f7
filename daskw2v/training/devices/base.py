"""The three trainers that a device has: of a replica, of partitions, of rows; what they share on any device."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.kernels import buffers
from daskw2v.kernels.simd import huge_zeros, padded, sparse_zeros
from daskw2v.objectives.base import BucketTrainer, Columns, ColumnTrainer, Objective, PartTables, Rate, Trainer
from daskw2v.objectives.noise import BATCH
from daskw2v.objectives.registry import find_bucket_trainer, find_column_trainer, find_trainer
from daskw2v.sampling.segments import SEGMENT, Segment
from daskw2v.sampling.skipgrams import Bucket
from daskw2v.types import Float32Array, Float64Array, Int32Array, Int64Array, UInt64Array

_T = TypeVar("_T")
_J = TypeVar("_J")


class TextPiece(NamedTuple):
    """The centers first..last-1 of a segment, in an epoch, at a learning rate."""

    segment: Segment
    first: int
    last: int
    rate: Rate
    epoch: int


class Threads(NamedTuple):
    """How many threads and rows a training task works with at a time.

    Parameters
    ----------
    n
        How many threads train a replica, or feed the GPU that does.
    hot_rows, flush_words, max_in_flight
        As in Resources.
    """

    n: int
    hot_rows: int | None = None
    flush_words: int = 512
    max_in_flight: int | None = None


def threads_of(n: int, resources: Resources) -> Threads:
    """Return the threads of a training task as Resources have them."""
    return Threads(n, resources.hot_rows, resources.flush_words, resources.max_in_flight)


def map_arrays(to_device: Callable[[Any], Any], values: Any) -> Any:
    """Return values with all arrays copied to a device: an array, or a NamedTuple of arrays and NamedTuples."""
    if isinstance(values, np.ndarray):
        return to_device(values)
    if hasattr(values, "_fields"):
        return type(values)(*(map_arrays(to_device, value) for value in values))
    return values


@dataclass(frozen=True)
class SomeRows:
    """Some rows of a block of a table; nothing reads the others.

    Parameters
    ----------
    length
        Rows of the block.
    rows
        Which are there, ascending, shape (n,) int32.
    values
        Shape (n, at least D) float32.
    """

    length: int
    rows: Int32Array
    values: Float32Array

    def __len__(self) -> int:
        return self.length


class DeviceTrainer(ABC):
    """What trains in the memory of a device: that whose kernels it runs, by its name."""

    device: ClassVar[str]

    @abstractmethod
    def to_device(self, values: Any) -> Any:
        """Return an array in the device's memory."""

    @abstractmethod
    def from_device(self, values: Any) -> Any:
        """Return an array of the device in this machine's memory."""

    def _make_ready(self) -> None:  # noqa: B027 (not all have more)
        """Make what else training needs, when all tables are on the device."""


class ReplicaTrainer(DeviceTrainer):
    """Trains one replica of the whole model on text.

    Parameters
    ----------
    objective, params
        What is trained.
    prepared
        `objective.prepare`'s result.
    touched
        Returns how likely a window touches each row, by table; called where many windows are trained at a time.
    blocks
        Consecutive row blocks of each table, each of shape (rows, at least D) float32, or some rows of it: columns from
        D on are not read. They are copied.
    threads
        As in `Threads`.
    """

    positions: ClassVar[int] = SEGMENT  # of the corpus that it is given at a time

    def __init__(
        self,
        objective: Objective,
        params: Params,
        prepared: object,
        touched: Callable[[], Mapping[str, Float64Array]],
        blocks: Mapping[str, Sequence[Float32Array | SomeRows]],
        threads: Threads,
    ) -> None:
        self._train = self.find_kernel(objective)
        self._threads, self._touched = threads, touched
        self._columns = params.vector_size
        self._width = padded(params.vector_size)  # whole cache lines; the padding stays zero
        self._bounds = {name: np.cumsum([0, *map(len, parts)]) for name, parts in blocks.items()}
        self._rows = {name: [getattr(part, "rows", None) for part in parts] for name, parts in blocks.items()}
        self._lengths = {name: int(bounds[-1]) for name, bounds in self._bounds.items()}
        self._prepared = map_arrays(self.to_device, prepared)
        padded_blocks = self._padded(blocks, self._rows_behind())
        self._tables = {name: self.to_device(table) for name, table in padded_blocks.items()}
        self._make_ready()

    @classmethod
    def find_kernel(cls, objective: Objective) -> Trainer:
        """Return what trains text by an objective, or raise a ParameterError."""
        return find_trainer(objective, cls.device)

    @classmethod
    def pieces_held(cls, threads: int) -> int:
        """Return how many pieces of text so many threads hold at a time: some read while the others train."""
        return 1 if threads == 1 else 3

    def _rows_behind(self) -> int:
        """Return the number of rows that a table has besides the model's, behind them."""
        return 0

    @abstractmethod
    def train(self, loads: Iterable[Callable[[], TextPiece]]) -> tuple[int, float]:
        """Train pieces of text one after the other; return the number of examples and their summed loss."""

    @property
    def nbytes(self) -> int:
        """Bytes of its tables."""
        return sum(int(table.nbytes) for table in self._tables.values())

    def take(self) -> dict[str, list[Float32Array]]:
        """Return the row blocks of all tables, cut as they came, and release the tables."""
        return self.take_by(lambda name, number, rows: np.ascontiguousarray(rows[:, : self._columns]))

    def take_by(self, block: Callable[[str, int, Float32Array], _T]) -> dict[str, list[_T]]:
        """Return what a function makes of each row block, and release the tables.

        It is called as `visit` says; rows that it keeps without a copy hold the memory of the whole table.
        """
        taken = {}
        for name in list(self._tables):
            taken[name] = self.visit([(name, number) for number in range(len(self._rows[name]))], block)
            del self._tables[name]
        return taken

    def visit(
        self, blocks: Sequence[tuple[str, int]], block: Callable[[str, int, Float32Array], _T], *, write: bool = False
    ) -> list[_T]:
        """Return what a function makes of some row blocks, named by their table and their number there.

        It is given that name and the rows, or those that there are, padded to whole cache lines. With `write`, the
        table takes what it writes there. Several threads may call it.
        """

        def one(of: tuple[str, int]) -> _T:
            name, number = of
            a, b = self._bounds[name][number : number + 2] * self._width
            there, some = self._tables[name][a:b], self._rows[name][number]
            whole = self.from_device(there).reshape(-1, self._width)
            rows = whole if some is None else whole[some]
            result = block(name, number, rows)
            if write:
                if some is not None:
                    whole[some] = rows
                self._overwrite(there, whole)
            return result

        return self._in_threads(one, blocks)

    @abstractmethod
    def _overwrite(self, there: Any, values: Float32Array) -> None:
        """Replace what lies on the device by what `from_device` returned of it, changed since."""

    def _padded(self, blocks: Mapping[str, Sequence[Float32Array | SomeRows]], behind: int) -> dict[str, Float32Array]:
        """Return flat copies of tables, rows padded, with room for some rows behind them."""

        def room(name: str) -> Float32Array:
            some = any(isinstance(part, SomeRows) for part in blocks[name])
            return (sparse_zeros if some else buffers.here.take)((self._lengths[name] + behind) * self._width)

        def copy(job: tuple[str, int, Float32Array | SomeRows]) -> None:
            name, start, part = job
            rows = tables[name].reshape(-1, self._width)
            if isinstance(part, SomeRows):
                rows[start + part.rows, : self._columns] = part.values[:, : self._columns]
            else:
                to = rows[start : start + len(part)]
                to[:, : self._columns] = part[:, : self._columns]
                to[:, self._columns :] = 0.0

        tables = {name: room(name) for name in blocks}
        starts = {name: zip(self._bounds[name], parts, strict=False) for name, parts in blocks.items()}
        self._in_threads(copy, [(name, int(start), part) for name in blocks for start, part in starts[name]])
        for name, table in tables.items():
            table[self._lengths[name] * self._width :] = 0.0
        return tables

    def _in_threads(self, function: Callable[[_J], _T], jobs: Sequence[_J]) -> list[_T]:
        """Do a job for each row block, on the threads there are."""
        if self._threads.n == 1:
            return [function(job) for job in jobs]
        with ThreadPoolExecutor(self._threads.n) as pool:
            return list(pool.map(function, jobs))


class PartitionTrainer(DeviceTrainer):
    """Trains buckets of input and output partitions.

    Parameters
    ----------
    objective, params
        What is trained.
    inputs, outputs
        The numbers of partitions, and their rows, shape (rows, D) float32, or as `take_input` returns them. They are
        copied, one after the other.
    counts, total
        Returns how often each word of a partition occurs, shape (rows,) int64; and how often all words do.
    max_in_flight
        As in Resources.
    """

    def __init__(
        self,
        objective: Objective,
        params: Params,
        inputs: Iterable[tuple[int, Float32Array]],
        outputs: Iterable[tuple[int, Float32Array]],
        counts: Callable[[int], Int64Array],
        total: int,
        max_in_flight: int | None,
    ) -> None:
        self._train = self.find_kernel(objective)
        self._params, self._counts, self._total = params, counts, total
        self._max_in_flight = max_in_flight
        self._width = padded(params.vector_size)
        self._inputs, self._outputs = (
            {number: self.to_device(_padded_copy(rows, self._width)) for number, rows in of} for of in (inputs, outputs)
        )
        self._make_ready()

    @classmethod
    def find_kernel(cls, objective: Objective) -> BucketTrainer:
        """Return what trains buckets by an objective, or raise a ParameterError."""
        return find_bucket_trainer(objective, cls.device)

    @abstractmethod
    def train(
        self, input: int, output: int, bucket: Bucket, alpha: float, words: UInt64Array, key: np.uint64
    ) -> tuple[int, float]:
        """Train the bucket of two partitions; return the number of pairs and the summed loss.

        Threads may call it at the same time for different partitions.

        Parameters
        ----------
        input, output
            The numbers of the two partitions.
        bucket
            The pairs, and the noise of other pairs.
        alpha
            Learning rate.
        words
            What `Objective.partition_table` made of the output partition's words.
        key
            Stream of the draws.
        """

    def take_input(self, number: int) -> Float32Array:
        """Return the rows of an input partition as they were trained, and release it.

        Their shape is (rows, padded(D)): they end with zeros, on whole cache lines.
        """
        return self._take(self._inputs, number)

    def take_output(self, number: int) -> Float32Array:
        """Return the rows of an output partition, as `take_input` does."""
        return self._take(self._outputs, number)

    def _take(self, tables: dict[int, Any], number: int) -> Float32Array:
        rows: Float32Array = self.from_device(tables.pop(number)).reshape(-1, self._width)
        return rows


def _padded_copy(rows: Float32Array, width: int) -> Float32Array:
    table: Float32Array = buffers.here.take(len(rows) * width)
    wide = table.reshape(-1, width)
    wide[:, : rows.shape[1]] = rows
    wide[:, rows.shape[1] :] = 0.0
    return table


class RowTrainer(DeviceTrainer):
    """Trains the rows of a part of the words on columns of the word-context matrix.

    Parameters
    ----------
    objective, params
        What is trained.
    prepared
        `objective.prepare`'s result.
    trained
        By table, the rows of the part, and behind them their moments if there are any, shapes (n, D) float32. They are
        copied.
    constant
        By table, the rows of all words in consecutive pieces, shapes (., D) float32. They are copied. Where both tables
        are trained there are none: the part has all words, and each table is constant while the other is trained.
    threads
        How many train, on the processor. They share no row: the result is the same for any number.
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
        """Return what trains columns by an objective, or raise a ParameterError."""
        return find_column_trainer(objective, cls.device)

    def train(self, table: str, columns: Columns, at: int = 0) -> Float32Array:
        """Train columns in place, of all rows or of some; return each one's summed loss, shape (m,) float32.

        Parameters
        ----------
        table
            Whose rows are trained.
        columns
            The columns of m words.
        at
            The first one's row in the part, where a batch begins.
        """
        other = next(name for name in {**self._constant, **self._trained} if name != table)
        length = self._batches * BATCH * self._width
        others = self._constant[other] if other in self._constant else self._trained[other][:length]
        memory = PartTables(self._trained[table][at * self._width :], others, self._width, length)
        losses = self.to_device(np.zeros(len(columns.contexts), np.float32))
        self._run(-(-len(losses) // BATCH), map_arrays(self.to_device, columns), memory, losses)
        summed: Float32Array = self.from_device(losses)
        return summed

    def take(self, table: str) -> list[Float32Array]:
        """Return a table's rows and moments, and release them."""
        tables = self.from_device(self._trained.pop(table)).reshape(-1, self._batches * BATCH, self._width)
        return [np.ascontiguousarray(rows[: self._words, : self._columns]) for rows in tables]

    @abstractmethod
    def _run(self, n_batches: int, columns: Columns, memory: PartTables, losses: Any) -> None:
        """Train batches."""

    def _tables(self, tables: Sequence[Float32Array]) -> Float32Array:
        """Return padded copies one behind the other, in whole batches."""
        length = self._batches * BATCH * self._width
        flat = huge_zeros(len(tables) * length)
        for number, rows in enumerate(tables):
            flat[number * length :][:length].reshape(-1, self._width)[: self._words, : self._columns] = rows
        return flat

    def _table(self, pieces: Sequence[Float32Array]) -> Float32Array:
        """Return a padded copy of consecutive pieces."""
        flat = huge_zeros(sum(map(len, pieces)) * self._width)
        rows, start = flat.reshape(-1, self._width), 0
        for piece in pieces:
            rows[start : start + len(piece), : self._columns] = piece
            start += len(piece)
        return flat
