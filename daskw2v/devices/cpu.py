"""One replica in this machine's memory, trained by one or more threads without locks (Hogwild)."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import TypeVar

import numpy as np

from daskw2v.devices.base import Piece, Threads
from daskw2v.objectives import find_trainer
from daskw2v.objectives.base import FloatArray, HotRows, Memory, Objective
from daskw2v.params import Params
from daskw2v.simd import huge_zeros, padded

Result = TypeVar("Result")

_CHUNK = 32768  # centers one of several threads takes at a time: some 20 ms of work


class CpuReplica:
    """The tables of one replica.

    Parameters
    ----------
    objective, params
        What is trained.
    prepared
        `objective.prepare`'s result.
    blocks
        Consecutive row blocks of each table, each of shape (rows, D) float32. They are copied.
    threads
        With one thread, the result depends on nothing but the input; with more, updates may overwrite each other.
    """

    def __init__(
        self,
        objective: Objective,
        params: Params,
        prepared: object,
        blocks: Mapping[str, Sequence[FloatArray]],
        threads: Threads,
    ) -> None:
        self._train = find_trainer(objective, "cpu")
        self._prepared = prepared
        self._columns = params.vector_size
        self._width = padded(params.vector_size)  # whole cache lines; the padding stays zero
        self._bounds = {name: np.cumsum([0, *map(len, parts)]) for name, parts in blocks.items()}
        lengths = {name: int(bounds[-1]) for name, bounds in self._bounds.items()}
        hot = min(threads.hot_rows, *lengths.values()) if threads.n > 1 else 0
        self._n_threads = threads.n

        def copy(name: str) -> FloatArray:
            # Behind the rows: each thread's copies of the hottest
            table = huge_zeros((lengths[name] + hot * threads.n) * self._width)
            rows = table.reshape(-1, self._width)
            for start, part in zip(self._bounds[name], blocks[name], strict=False):
                rows[start : start + len(part), : self._columns] = part
            return table

        self._tables = dict(zip(blocks, self._side_by_side(copy, blocks), strict=True))
        self._memories: SimpleQueue[Memory] = SimpleQueue()  # one for each thread that trains
        for i in range(threads.n):
            shift = (lengths["input"] + i * hot, lengths["output"] + i * hot)
            self._memories.put(
                Memory(
                    self._tables["input"],
                    self._tables["output"],
                    self._width,
                    HotRows(hot, *shift, threads.flush_words),
                )
            )

    def train(self, loads: Iterable[Callable[[], Piece]]) -> tuple[int, float]:
        """Train pieces of text one after the other; return the number of examples and their summed loss.

        More than one thread trains a piece while one of them loads the next.
        """
        if self._n_threads == 1:
            return _total(self._part(piece, piece.first, piece.last) for piece in (load() for load in loads))
        results: list[tuple[int, float]] = []
        with ThreadPoolExecutor(self._n_threads) as pool:
            coming = (pool.submit(load) for load in loads)
            piece = next(coming, None)
            parts: list[Future[tuple[int, float]]] = []
            while piece is not None:
                now, piece = piece.result(), next(coming, None)
                cuts = [*range(now.first, now.last, _CHUNK), now.last]
                before, parts = parts, [pool.submit(self._part, now, a, b) for a, b in itertools.pairwise(cuts)]
                results += [part.result() for part in before]  # not those of now: no thread waits for the next piece
            results += [part.result() for part in parts]
        return _total(results)

    def _part(self, piece: Piece, first: int, last: int) -> tuple[int, float]:
        memory = self._memories.get()
        try:
            return self._train(piece.segment, first, last, memory, piece.rate, piece.epoch, self._prepared)
        finally:
            self._memories.put(memory)

    def take(self) -> dict[str, list[FloatArray]]:
        """Return the row blocks of all tables, cut as they came, and let go of the tables."""
        self._memories = SimpleQueue()
        tables = {name: self._tables.pop(name) for name in list(self._tables)}

        def blocks(name: str) -> list[FloatArray]:
            rows = tables.pop(name).reshape(-1, self._width)[:, : self._columns]
            return [np.ascontiguousarray(rows[a:b]) for a, b in itertools.pairwise(self._bounds[name])]

        names = list(tables)
        return dict(zip(names, self._side_by_side(blocks, names), strict=True))

    def _side_by_side(self, function: Callable[[str], Result], names: Iterable[str]) -> list[Result]:
        """Call a function for each table, on the threads there are."""
        if self._n_threads == 1:
            return [function(name) for name in names]
        with ThreadPoolExecutor(self._n_threads) as pool:
            return list(pool.map(function, names))


def _total(results: Iterable[tuple[int, float]]) -> tuple[int, float]:
    examples, loss = 0, 0.0
    for n, value in results:
        examples += n
        loss += value
    return examples, loss
