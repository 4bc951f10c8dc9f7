"""One replica of the whole model in the memory of a device."""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from daskw2v.devices.base import Piece, Threads
from daskw2v.objectives import find_trainer
from daskw2v.objectives.base import FloatArray, Objective
from daskw2v.params import Params
from daskw2v.sampling.segments import SEGMENT
from daskw2v.simd import huge_zeros, padded

Result = TypeVar("Result")


class Replica(ABC):
    """The tables of one replica.

    Parameters
    ----------
    objective, params
        What is trained.
    prepared
        `objective.prepare`'s result.
    touched
        Returns how likely a window touches each row, by table; asked for where many windows are trained at a time.
    blocks
        Consecutive row blocks of each table, each of shape (rows, D) float32. They are copied.
    threads
        How wide it may work.
    """

    device: ClassVar[str]
    positions: ClassVar[int] = SEGMENT  # of the corpus that it is given at a time

    def __init__(
        self,
        objective: Objective,
        params: Params,
        prepared: object,
        touched: Callable[[], Mapping[str, npt.NDArray[np.float64]]],
        blocks: Mapping[str, Sequence[FloatArray]],
        threads: Threads,
    ) -> None:
        self._train = find_trainer(objective, self.device)
        self._threads, self._touched = threads, touched
        self._columns = params.vector_size
        self._width = padded(params.vector_size)  # whole cache lines; the padding stays zero
        self._bounds = {name: np.cumsum([0, *map(len, parts)]) for name, parts in blocks.items()}
        self._lengths = {name: int(bounds[-1]) for name, bounds in self._bounds.items()}
        self._start(prepared, blocks)

    @abstractmethod
    def _start(self, prepared: object, blocks: Mapping[str, Sequence[FloatArray]]) -> None:
        """Bring everything to the device."""

    @abstractmethod
    def train(self, loads: Iterable[Callable[[], Piece]]) -> tuple[int, float]:
        """Train pieces of text one after the other; return the number of examples and their summed loss."""

    @abstractmethod
    def _let_go(self) -> dict[str, FloatArray]:
        """Return the flat tables in this machine's memory, and let go of what lies on the device."""

    def take(self) -> dict[str, list[FloatArray]]:
        """Return the row blocks of all tables, cut as they came, and let go of the tables."""
        tables = self._let_go()

        def blocks(name: str) -> list[FloatArray]:
            rows = tables.pop(name).reshape(-1, self._width)[:, : self._columns]
            return [np.ascontiguousarray(rows[a:b]) for a, b in itertools.pairwise(self._bounds[name])]

        names = list(tables)
        return dict(zip(names, self._side_by_side(blocks, names), strict=True))

    def _padded(self, blocks: Mapping[str, Sequence[FloatArray]], behind: int = 0) -> dict[str, FloatArray]:
        """Return flat copies of tables, rows padded, with room for some rows behind them."""

        def copy(name: str) -> FloatArray:
            table = huge_zeros((self._lengths[name] + behind) * self._width)
            rows = table.reshape(-1, self._width)
            for start, part in zip(self._bounds[name], blocks[name], strict=False):
                rows[start : start + len(part), : self._columns] = part
            return table

        return dict(zip(blocks, self._side_by_side(copy, blocks), strict=True))

    def _side_by_side(self, function: Callable[[str], Result], names: Iterable[str]) -> list[Result]:
        """Call a function for each table, on the threads there are."""
        if self._threads.n == 1:
            return [function(name) for name in names]
        with ThreadPoolExecutor(self._threads.n) as pool:
            return list(pool.map(function, names))
