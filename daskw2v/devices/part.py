"""A part of the words in the memory of a device: rows that move along columns of the word-context matrix."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from daskw2v.devices.lending import lent
from daskw2v.objectives import find_column_trainer
from daskw2v.objectives.base import Columns, FloatArray, Objective, PartMemory
from daskw2v.objectives.hidden import BATCH
from daskw2v.params import Params
from daskw2v.simd import huge_zeros, padded


class Part(ABC):
    """Tables of which a part's rows move, and tables that stay.

    Parameters
    ----------
    objective, params
        What is trained.
    prepared
        `objective.prepare`'s result.
    moving
        By table, the rows of the part, and behind them their moments if there are any, shapes (n, D) float32. They are
        copied.
    standing
        By table, the rows of all words in consecutive pieces, shapes (., D) float32. They are copied. Where both tables
        move there are none: the part has all words, and each table stays while the other one moves.
    threads
        How many train, where that is the processor's work. They share no row: the result is the same for any number.
    """

    device: ClassVar[str]

    def __init__(
        self,
        objective: Objective,
        params: Params,
        prepared: object,
        moving: Mapping[str, Sequence[FloatArray]],
        standing: Mapping[str, Sequence[FloatArray]],
        threads: int,
    ) -> None:
        self._kernel = find_column_trainer(objective, self.device)
        self._columns, self._width = params.vector_size, padded(params.vector_size)
        self._words = len(next(iter(moving.values()))[0])
        self._batches = -(-self._words // BATCH)
        self._threads = min(threads, max(1, self._batches))
        self._start()
        self._prepared = lent(self._put, prepared)
        self._moving = {name: self._put(self._tables(tables)) for name, tables in moving.items()}
        self._standing = {name: self._put(self._table(rows)) for name, rows in standing.items()}

    def train(self, table: str, columns: Columns, at: int = 0) -> FloatArray:
        """Train columns in place, of all rows or of some; return each one's summed loss, shape (m,) float32.

        Parameters
        ----------
        table
            Whose rows move.
        columns
            The columns of m words.
        at
            The first one's row in the part, at the begin of a batch.
        """
        other = next(name for name in {**self._standing, **self._moving} if name != table)
        length = self._batches * BATCH * self._width
        others = self._standing[other] if other in self._standing else self._moving[other][:length]
        memory = PartMemory(self._moving[table][at * self._width :], others, self._width, length)
        losses = self._put(np.zeros(len(columns.contexts), np.float32))
        self._run(-(-len(losses) // BATCH), lent(self._put, columns), memory, losses)
        summed: FloatArray = self._back(losses)
        return summed

    def take(self, table: str) -> list[FloatArray]:
        """Return a table's rows and moments, and let go of them."""
        tables = self._back(self._moving.pop(table)).reshape(-1, self._batches * BATCH, self._width)
        return [np.ascontiguousarray(rows[: self._words, : self._columns]) for rows in tables]

    @abstractmethod
    def _start(self) -> None:
        """Make ready what trains."""

    @abstractmethod
    def _put(self, values: Any) -> Any:
        """Return an array in the device's memory, with these values."""

    @abstractmethod
    def _back(self, values: Any) -> Any:
        """Return an array of the device in this machine's memory."""

    @abstractmethod
    def _run(self, n_batches: int, columns: Columns, memory: PartMemory, losses: Any) -> None:
        """Train batches."""

    def _tables(self, tables: Sequence[FloatArray]) -> FloatArray:
        """Return padded copies one behind the other, in whole batches."""
        length = self._batches * BATCH * self._width
        flat = huge_zeros(len(tables) * length)
        for number, rows in enumerate(tables):
            flat[number * length :][:length].reshape(-1, self._width)[: self._words, : self._columns] = rows
        return flat

    def _table(self, pieces: Sequence[FloatArray]) -> FloatArray:
        """Return a padded copy of consecutive pieces."""
        flat = huge_zeros(sum(map(len, pieces)) * self._width)
        rows, start = flat.reshape(-1, self._width), 0
        for piece in pieces:
            rows[start : start + len(piece), : self._columns] = piece
            start += len(piece)
        return flat
