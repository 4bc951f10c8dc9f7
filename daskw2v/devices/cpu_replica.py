"""One replica in this machine's memory, trained by one or more threads without locks (Hogwild)."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue

from daskw2v.devices.base import Piece, Threads
from daskw2v.devices.replica import Replica
from daskw2v.objectives.base import FloatArray, HotRows, Memory

_CHUNK = 32768  # centers one of several threads takes at a time: some 20 ms of work
_HOT_ROWS = 254  # of all threads together, where their number is left open


def hot_rows_of(threads: Threads) -> int:
    """Return the number of rows that each thread copies.

    Where it is left open, the more threads there are, the fewer: what all of them know and the tables do not is a step
    that all take at once, and diverges where it is too long (16 threads with 255 rows each do).
    """
    if threads.n == 1:
        return 0
    return _HOT_ROWS // threads.n if threads.hot_rows is None else threads.hot_rows


class CpuReplica(Replica):
    """With one thread, the result depends on nothing but the input; with more, updates may overwrite each other."""

    device = "cpu"

    def _start(self, prepared: object, blocks: Mapping[str, Sequence[FloatArray]]) -> None:
        self._prepared = prepared
        n, hot = self._threads.n, min(hot_rows_of(self._threads), *self._lengths.values())
        self._tables = self._padded(blocks, hot * n)  # behind the rows: each thread's copies of the hottest
        self._memories: SimpleQueue[Memory] = SimpleQueue()  # one for each thread that trains
        for i in range(n):
            shift = (self._lengths["input"] + i * hot, self._lengths["output"] + i * hot)
            self._memories.put(
                Memory(
                    self._tables["input"],
                    self._tables["output"],
                    self._width,
                    HotRows(hot, *shift, self._threads.flush_words),
                )
            )

    def train(self, loads: Iterable[Callable[[], Piece]]) -> tuple[int, float]:
        """Train pieces of text; more than one thread trains a piece while one of them loads the next."""
        n = self._threads.n
        if n == 1:
            return _total(self._part(piece, piece.first, piece.last) for piece in (load() for load in loads))
        results: list[tuple[int, float]] = []
        with ThreadPoolExecutor(n) as pool:
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
            done: tuple[int, float] = self._train(
                piece.segment, first, last, memory, piece.rate, piece.epoch, self._prepared
            )
            return done
        finally:
            self._memories.put(memory)

    def _let_go(self) -> dict[str, FloatArray]:
        self._memories = SimpleQueue()
        tables, self._tables = self._tables, {}
        return tables


def _total(results: Iterable[tuple[int, float]]) -> tuple[int, float]:
    examples, loss = 0, 0.0
    for n, value in results:
        examples += n
        loss += value
    return examples, loss
