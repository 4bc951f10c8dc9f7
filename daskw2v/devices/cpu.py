"""One replica in this machine's memory, trained by one or more threads without locks (Hogwild)."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from daskw2v.objectives import find_trainer
from daskw2v.objectives.base import FloatArray, Objective, Rate
from daskw2v.params import Params
from daskw2v.sampling.segments import Segment
from daskw2v.simd import aligned_zeros, padded

_CHUNK = 8192  # centers a thread takes at a time: some 5 ms of work


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
        With one, the result depends on nothing but the input; with more, updates may overwrite each other.
    """

    def __init__(
        self,
        objective: Objective,
        params: Params,
        prepared: object,
        blocks: Mapping[str, Sequence[FloatArray]],
        threads: int,
    ) -> None:
        self._train = find_trainer(objective, "cpu")
        self._prepared = prepared
        self._columns = params.vector_size
        self._width = padded(params.vector_size)  # whole cache lines; the padding stays zero
        self._threads = threads
        self._tables: dict[str, FloatArray] = {}
        self._bounds = {name: np.cumsum([0, *map(len, parts)]) for name, parts in blocks.items()}
        for name, parts in blocks.items():
            bounds = self._bounds[name]
            table = aligned_zeros(int(bounds[-1]) * self._width)
            rows = table.reshape(-1, self._width)
            for start, part in zip(bounds, parts, strict=False):
                rows[start : start + len(part), : self._columns] = part
            self._tables[name] = table

    def train(self, segment: Segment, first: int, last: int, rate: Rate, epoch: int) -> tuple[int, float]:
        """Train the centers first..last-1; return the number of pairs and their summed loss."""

        def chunk(start: int) -> tuple[int, float]:
            stop = min(last, start + _CHUNK)
            return self._train(segment, start, stop, self._tables, self._width, rate, epoch, self._prepared)

        starts = range(first, last, _CHUNK)
        if self._threads == 1:
            results: Iterable[tuple[int, float]] = map(chunk, starts)
        else:
            with ThreadPoolExecutor(self._threads) as pool:
                results = list(pool.map(chunk, starts))
        pairs, loss = 0, 0.0
        for n, value in results:
            pairs += n
            loss += value
        return pairs, loss

    def take(self) -> dict[str, list[FloatArray]]:
        """Return the row blocks of all tables, cut as they came, and let go of the tables."""
        result = {}
        for name in list(self._tables):
            rows = self._tables.pop(name).reshape(-1, self._width)[:, : self._columns]
            bounds = self._bounds[name]
            result[name] = [np.ascontiguousarray(rows[a:b]) for a, b in itertools.pairwise(bounds)]
        return result
