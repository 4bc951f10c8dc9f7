"""The trainer of a replica: what it shares on any device."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from daskw2v.config.params import Params
from daskw2v.kernels import buffers
from daskw2v.kernels.simd import padded, sparse_zeros
from daskw2v.objectives.base import Objective, Rate, Trainer
from daskw2v.objectives.registry import find_trainer
from daskw2v.sampling.segments import SEGMENT, Segment
from daskw2v.training.devices.base import DeviceTrainer, Threads, map_arrays
from daskw2v.types import Float32Array, Float64Array, Int32Array

_T = TypeVar("_T")
_J = TypeVar("_J")


class TextPiece(NamedTuple):
    """The centers first..last-1 of a segment, in an epoch, at a learning rate."""

    segment: Segment
    first: int
    last: int
    rate: Rate
    epoch: int


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
    step: ClassVar[int] = 1 << 21  # positions of a step, at least, where there are no other replicas

    def __init__(
        self,
        objective: Objective,
        params: Params,
        prepared: object,
        touched: Callable[[], Mapping[str, Float64Array]],
        blocks: Mapping[str, Sequence[Float32Array | SomeRows]],
        threads: Threads,
    ) -> None:
        self._train, self._objective = self.find_kernel(objective), objective
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

    @property
    def pieces_ahead(self) -> int:
        """Number of pieces of the next step that are read before it begins."""
        return 1

    @classmethod
    def trains_together(cls, threads: Threads) -> str | None:
        """Return what trains the replica's rows at the same time, without locks; None where nothing does."""
        return f"{threads.n} threads" if threads.n > 1 else None

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
