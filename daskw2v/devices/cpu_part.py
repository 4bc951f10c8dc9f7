"""A part of the words in this machine's memory: rows that move along columns of the word-context matrix."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from daskw2v.objectives import find_column_trainer
from daskw2v.objectives.base import Columns, FloatArray, Objective, PartMemory
from daskw2v.objectives.hidden import BATCH
from daskw2v.params import Params
from daskw2v.simd import huge_zeros, padded


class CpuPart:
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
        How many train. They share no row: the result is the same for any number.
    """

    def __init__(
        self,
        objective: Objective,
        params: Params,
        prepared: object,
        moving: Mapping[str, Sequence[FloatArray]],
        standing: Mapping[str, Sequence[FloatArray]],
        threads: int,
    ) -> None:
        self._train = find_column_trainer(objective, "cpu")
        self._prepared = prepared
        self._columns, self._width = params.vector_size, padded(params.vector_size)
        self._words = len(next(iter(moving.values()))[0])
        self._batches = -(-self._words // BATCH)
        self._moving = {name: self._tables(tables) for name, tables in moving.items()}
        self._standing = {name: self._table(rows) for name, rows in standing.items()}
        self._threads = min(threads, max(1, self._batches))
        self._pool = ThreadPoolExecutor(self._threads)

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
        losses = np.zeros(len(columns.contexts), np.float32)
        n_batches = -(-len(losses) // BATCH)

        def train(number: int) -> None:
            first, last = (n_batches * n // self._threads for n in (number, number + 1))
            self._train(columns, first, last, memory, self._prepared, losses)

        list(self._pool.map(train, range(self._threads)))
        return losses

    def take(self, table: str) -> list[FloatArray]:
        """Return a table's rows and moments, and let go of them."""
        self._pool.shutdown()
        tables = self._moving.pop(table).reshape(-1, self._batches * BATCH, self._width)
        return [np.ascontiguousarray(rows[: self._words, : self._columns]) for rows in tables]

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
