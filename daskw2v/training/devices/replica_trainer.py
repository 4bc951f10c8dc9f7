"""The trainer of a replica, a copy of the model, on any device; and pieces of text, each of which is read at once."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypeVar

import numpy as np

from daskw2v.cluster.shared_memory import share
from daskw2v.config.params import Params
from daskw2v.features.words import WordFeatures
from daskw2v.kernels import buffers
from daskw2v.kernels.simd import padded
from daskw2v.objectives.base import NOT_FROZEN, Objective, Rate, Trainer, is_finite
from daskw2v.objectives.registry import find_trainer
from daskw2v.sampling.reader import read_text
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import POSITION, SEGMENT, Segment
from daskw2v.training.devices.base import DeviceRows, DeviceTrainer, Threads, map_arrays
from daskw2v.types import Float32Array, Float64Array, Int32Array, UInt8Array

_T = TypeVar("_T")
_J = TypeVar("_J")


class TextPiece(NamedTuple):
    """The centers first..last-1, indices of a segment's tokens, in an epoch, at a learning rate.

    `words` is the number of known tokens at the piece's positions before subsampling.
    """

    segment: Segment
    first: int
    last: int
    rate: Rate
    epoch: int
    words: int = 0


class TextTotals(NamedTuple):
    """The totals of trained text: examples, the sum of their losses, and known tokens before subsampling."""

    examples: int
    loss: float
    words: int


def read_piece(run: Run, epoch: int, start: int, stop: int, rate: Rate) -> TextPiece:
    """Return the piece of a run's text at positions start..stop-1, to be trained in an epoch at a learning rate."""
    segment, words, _ = read_text(run, epoch, start, stop)
    return TextPiece(segment, *segment.centers(start, stop), rate, epoch, words)


@dataclass(frozen=True)
class SomeRows:
    """The rows of a block of a table that training may read.

    Parameters
    ----------
    length
        Number of rows of the block.
    rows
        Indices of the rows in the block, ascending, shape (n,) int32.
    values
        The rows, shape (n, at least D) float32.
    """

    length: int
    rows: Int32Array
    values: Float32Array

    def __len__(self) -> int:
        return self.length


RowBlock: TypeAlias = Float32Array | SomeRows | DeviceRows


class ReplicaTrainer(DeviceTrainer):
    """Trains one replica of the model on text.

    Parameters
    ----------
    objective, params
        The objective, and the settings of the run.
    prepared
        The result of `objective.prepare`.
    touched
        Function that returns the probability that a window touches each row, by table; called by devices that train
        many windows at a time.
    blocks
        By table, its consecutive row blocks: arrays of shape (rows, at least D) float32, of which columns from D on are
        not read; or `SomeRows` of a block; or rows that a task left on a device. The rows are copied.
    threads
        The threads of the task.
    frozen
        Whether each row of the input table is frozen, 1 or 0, shape (V,) uint8; of length 0 where no row is.
    features
        The features of the words, whose rows are the table "features"; None where words have none.
    """

    positions: ClassVar[int] = SEGMENT  # corpus positions of a piece of text
    step: ClassVar[int] = 1 << 21  # minimum positions of a step, where there is one replica
    task: ClassVar[int] = 1  # positions of a task of several rounds, at most, where there is one replica

    def __init__(
        self,
        objective: Objective,
        params: Params,
        prepared: object,
        touched: Callable[[], Mapping[str, Float64Array]],
        blocks: Mapping[str, Sequence[RowBlock]],
        threads: Threads,
        frozen: UInt8Array = NOT_FROZEN,
        features: WordFeatures | None = None,
    ) -> None:
        self._frozen, self._features = frozen, features
        self._train, self._objective, self._params = self.find_kernel(objective), objective, params
        self._threads, self._touched = threads, touched
        self._columns = params.vector_size
        self._width = padded(params.vector_size)  # complete cache lines; the padding stays zero
        self._bounds = {name: np.cumsum([0, *map(len, parts)]) for name, parts in blocks.items()}
        self._rows = {name: [getattr(part, "rows", None) for part in parts] for name, parts in blocks.items()}
        self._lengths = {name: int(bounds[-1]) for name, bounds in self._bounds.items()}
        self._prepared = map_arrays(self.to_device, prepared)
        self._tables = self._copies(blocks)
        self._make_ready()

    @classmethod
    def find_kernel(cls, objective: Objective) -> Trainer:
        """Return the kernel that trains text by an objective, or raise a ParameterError."""
        return find_trainer(objective, cls.device)

    @classmethod
    def text_bytes(cls, threads: int, words: int) -> int:
        """Return the bytes that threads hold of a text of `words` words: one piece for a thread, three for several."""
        return (1 if threads == 1 else 3) * POSITION * min(cls.positions, words)

    @classmethod
    def device_text_bytes(cls, threads: int, words: int) -> int:
        """Return the bytes of text in the memory of the device; 0 where the device has no memory of its own."""
        return 0

    @property
    def pieces_ahead(self) -> int:
        """Number of pieces of the next step that are read before it begins."""
        return 1

    @classmethod
    def trains_together(cls, threads: Threads) -> str | None:
        """Return a name, for users, of what trains a replica in parallel without locks; None where nothing does."""
        return f"{threads.n} threads" if threads.n > 1 else None

    def _rows_behind(self) -> int:
        """Return the number of rows that a table has after the model's rows."""
        return 0

    def load(self, run: Run, epoch: int, start: int, stop: int, rate: Rate) -> Any:
        """Return the piece of text at positions start..stop-1, for `train`. Several threads may call this."""
        return read_piece(run, epoch, start, stop, rate)

    @abstractmethod
    def train(self, loads: Iterable[Callable[[], Any]]) -> TextTotals:
        """Train pieces of text one after the other, which the functions of `loads` return; return their totals."""

    def begin(self, loads: Iterable[Callable[[], Any]]) -> Callable[[], TextTotals]:
        """Begin to train pieces as `train` does; return a function that waits for the end and returns the totals.

        The function may be called once. Pieces of later calls are trained later.
        """
        totals = self.train(loads)
        return lambda: totals

    @property
    def nbytes(self) -> int:
        """Bytes of the tables."""
        return sum(int(table.nbytes) for table in self._tables.values())

    def take(self) -> dict[str, list[Float32Array]]:
        """Return the trained row blocks of each table, without padding, shapes (rows, D), and release the tables."""
        return self.take_by(lambda name, number, rows: np.ascontiguousarray(rows[:, : self._columns]))

    def results(self) -> tuple[dict[str, list[Any]], bool]:
        """Return the trained row blocks of each table as results of a task, and whether all rows are finite.

        The tables are released. The results may be `DeviceRows`.
        """

        def result(name: str, number: int, rows: Float32Array) -> tuple[Float32Array, bool]:
            part = buffers.pool.table((len(rows), self._columns))
            part[:] = rows[:, : self._columns]
            return share(part), is_finite(part)

        results = self.take_by(result)
        finite = all(is_part_finite for parts in results.values() for _, is_part_finite in parts)
        return {name: [part for part, _ in parts] for name, parts in results.items()}, finite

    def take_by(self, block: Callable[[str, int, Float32Array], _T]) -> dict[str, list[_T]]:
        """Return, by table, the results of a function for each row block, and release the tables.

        The function is called as by `visit`; rows that it returns without a copy hold the memory of their table.
        """
        results = {}
        for name in list(self._tables):
            results[name] = self.visit([(name, number) for number in range(len(self._rows[name]))], block)
            del self._tables[name]
        return results

    def visit(
        self, blocks: Sequence[tuple[str, int]], block: Callable[[str, int, Float32Array], _T], *, write: bool = False
    ) -> list[_T]:
        """Return the result of a function for each row block.

        Parameters
        ----------
        blocks
            The table of each block, and the block's index among the table's blocks.
        block
            Function of a table, a block's index, and the block's rows, shape (rows, padded(D)); of a partial block, the
            rows that it has. Several threads may call it.
        write
            Whether the function changes rows, which are written to the table.
        """

        def visit_block(job: tuple[str, int]) -> _T:
            name, number = job
            on_device, indices = self.block(name, number), self._rows[name][number]
            all_rows = self.from_device(on_device).reshape(-1, self._width)
            rows = all_rows if indices is None else all_rows[indices]
            result = block(name, number, rows)
            if write:
                if indices is not None:
                    all_rows[indices] = rows
                self._overwrite(on_device, all_rows)
            return result

        return self._in_threads(visit_block, blocks)

    def block(self, name: str, number: int) -> Any:
        """Return a row block on the device, by table and index among its blocks: flat, rows padded to cache lines."""
        return self._tables[name][slice(*self._bounds[name][number : number + 2] * self._width)]

    @abstractmethod
    def _overwrite(self, on_device: Any, values: Float32Array) -> None:
        """Replace rows on the device by `values`: the result of `from_device` for these rows, with changes."""

    @abstractmethod
    def _copies(self, blocks: Mapping[str, Sequence[RowBlock]]) -> dict[str, Any]:
        """Return flat copies of tables on the device, by name: padded rows, and then `_rows_behind` rows of zeros."""

    def _copy_into(self, rows: Float32Array, part: RowBlock) -> None:
        """Copy a block to padded rows of this machine's memory; rows that a partial block lacks are not written."""
        if isinstance(part, SomeRows):
            rows[part.rows, : self._columns] = part.values[:, : self._columns]
        else:
            rows[:, : self._columns] = np.asarray(part)[:, : self._columns]
            rows[:, self._columns :] = 0.0

    def _in_threads(self, function: Callable[[_J], _T], jobs: Sequence[_J]) -> list[_T]:
        """Call a function with each job, on the threads of the trainer; return the results in order."""
        if self._threads.n == 1:
            return [function(job) for job in jobs]
        with ThreadPoolExecutor(self._threads.n) as pool:
            return list(pool.map(function, jobs))
