"""Trainers on the processor, in this machine's memory."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, TypeVar, cast

import numpy as np

from daskw2v.kernels import buffers
from daskw2v.kernels.simd import sparse_zeros
from daskw2v.objectives.base import HotRows, MatrixColumns, Objective, PartTables, Tables
from daskw2v.objectives.cpu.composed import ComposedRows, make_composer, train_composed
from daskw2v.sampling.skipgrams import Bucket
from daskw2v.training.devices import settings
from daskw2v.training.devices.base import DeviceTrainer, PartitionTrainer, RowTrainer, Threads
from daskw2v.training.devices.device import Device
from daskw2v.training.devices.replica_trainer import ReplicaTrainer, RowBlock, SomeRows, TextPiece, TextTotals
from daskw2v.types import Float32Array, UInt64Array

_T = TypeVar("_T")

CHUNK = 32768  # centers that one of several threads trains at a time: about 20 ms


def count_hot_rows(objective: Objective, threads: Threads) -> int:
    """Return the number of most used rows that each thread copies: 0 for one thread, by default a thread's share."""
    if threads.n == 1:
        return 0
    hot_rows = cast(settings.CPU, threads.device).hot_rows
    return objective.hot_rows // threads.n if hot_rows is None else hot_rows


def count_flush_words(objective: Objective, threads: Threads) -> int:
    """Return the number of centers that a thread trains between two flushes of its copied rows.

    All threads together train `Objective.flush_words` centers between two flushes.
    """
    return max(1, objective.flush_words // threads.n)


class CpuTrainer(DeviceTrainer):
    """The base of trainers on the processor."""

    device = "cpu"

    def to_device(self, values: Any) -> Any:
        """Return the array itself."""
        return values

    def from_device(self, values: Any) -> Any:
        """Return the array itself."""
        return values


class CpuReplicaTrainer(CpuTrainer, ReplicaTrainer):
    """Trains a replica by threads of the processor, without locks (Hogwild).

    With one thread, the result depends on the input alone; with more, updates may overwrite each other.
    """

    def _hot_rows(self) -> int:
        """Return the number of most used rows that each thread copies."""
        return min(count_hot_rows(self._objective, self._threads), *self._lengths.values())

    def _rows_behind(self) -> int:
        return self._hot_rows() * self._threads.n  # each thread's copies of the hottest rows

    def _make_ready(self) -> None:
        self._memories: SimpleQueue[tuple[Tables, ComposedRows | None]] = SimpleQueue()  # one for each thread
        hot = self._hot_rows()
        for i in range(self._threads.n):
            copies = (self._lengths["input"] + i * hot, self._lengths["output"] + i * hot)
            rows = HotRows(hot, *copies, count_flush_words(self._objective, self._threads))
            tables = Tables(self._tables["input"], self._tables["output"], self._width, rows, self._frozen)
            self._memories.put((tables, self._composed_rows()))

    def _composed_rows(self) -> ComposedRows | None:
        """Return the composed rows of one thread, with arrays for this thread alone; None if words have no features."""
        if self._features is None:
            return None
        window = self._params.window
        composer = make_composer(self._features, self._lengths["features"], window, self._width)
        return ComposedRows(self._features, self._tables["features"], composer, window)

    def _copies(self, blocks: Mapping[str, Sequence[RowBlock]]) -> dict[str, Any]:
        def allocate(name: str) -> Float32Array:
            is_partial = any(isinstance(part, SomeRows) for part in blocks[name])
            rows = self._lengths[name] + self._rows_behind()
            return (sparse_zeros if is_partial else buffers.pool.empty)(rows * self._width)

        def copy(job: tuple[str, int, RowBlock]) -> None:
            name, start, part = job
            self._copy_into(tables[name].reshape(-1, self._width)[start : start + len(part)], part)

        tables = {name: allocate(name) for name in blocks}
        starts = {name: zip(self._bounds[name], parts, strict=False) for name, parts in blocks.items()}
        self._in_threads(copy, [(name, int(start), part) for name in blocks for start, part in starts[name]])
        for name, table in tables.items():
            table[self._lengths[name] * self._width :] = 0.0
        return tables

    def train(self, loads: Iterable[Callable[[], TextPiece]]) -> TextTotals:
        """Train pieces of text; return their totals. Several threads train a piece while one loads the next."""
        n = self._threads.n
        if n == 1:
            pieces = (load() for load in loads)
            return _total(self._train_part(piece, piece.first, piece.last, piece.words) for piece in pieces)
        results: list[TextTotals] = []
        with ThreadPoolExecutor(n) as pool:
            coming = (pool.submit(load) for load in loads)
            next_piece = next(coming, None)
            parts: list[Future[TextTotals]] = []
            while next_piece is not None:
                piece, next_piece = next_piece.result(), next(coming, None)
                cuts = [*range(piece.first, piece.last, CHUNK), piece.last]
                results.append(TextTotals(0, 0.0, piece.words))
                earlier = parts
                parts = [pool.submit(self._train_part, piece, a, b) for a, b in itertools.pairwise(cuts)]
                results += [part.result() for part in earlier]  # of the piece before, so that no thread is idle
            results += [part.result() for part in parts]
        return _total(results)

    def _train_part(self, piece: TextPiece, first: int, last: int, words: int = 0) -> TextTotals:
        """Train the centers first..last-1 of a piece; return their totals, with `words` known tokens."""
        tables, composed = memory = self._memories.get()
        work = (piece.segment, first, last, tables, piece.rate, piece.epoch, self._prepared)
        try:
            examples, loss = self._train(*work) if composed is None else train_composed(self._train, *work, composed)
            return TextTotals(examples, loss, words)
        finally:
            self._memories.put(memory)

    def _overwrite(self, on_device: Any, values: Float32Array) -> None:
        pass  # `values` are the rows themselves

    def take_by(self, block: Callable[[str, int, Float32Array], _T]) -> dict[str, list[_T]]:
        """Return the results of a function for each row block, as `ReplicaTrainer.take_by` does."""
        self._memories = SimpleQueue()  # the memories hold the tables, too
        return super().take_by(block)


def _total(results: Iterable[TextTotals]) -> TextTotals:
    """Return the sums of totals."""
    examples, loss, words = 0, 0.0, 0
    for totals in results:
        examples += totals.examples
        loss += totals.loss
        words += totals.words
    return TextTotals(examples, loss, words)


class CpuPartitionTrainer(CpuTrainer, PartitionTrainer):
    """Trains each bucket by one thread. The result depends on the input alone."""

    def train(
        self, input: int, output: int, bucket: Bucket, alpha: float, words: UInt64Array, key: np.uint64
    ) -> tuple[int, float]:
        """Train the bucket of two partitions, as `PartitionTrainer.train` does."""
        memory = Tables(self._inputs[input], self._outputs[output], self._width, HotRows(0, 0, 0, 1))
        pairs, loss = self._train(bucket, memory, alpha, self._params, words, key)
        return pairs, loss

    def _adopted(self, rows: Any) -> Any:
        if rows.shape[1] != self._width:
            return self._copied(rows)
        rows = np.asarray(rows)
        rows.flags.writeable = True  # the result of a task, which `share` protected
        return rows.reshape(-1)


class CpuRowTrainer(CpuTrainer, RowTrainer):
    """Trains batches of rows by threads of the processor."""

    def _make_ready(self) -> None:
        self._pool = ThreadPoolExecutor(self._threads)

    def _run(self, n_batches: int, columns: MatrixColumns, memory: PartTables, losses: Float32Array) -> None:
        def train(number: int) -> None:
            first, last = (n_batches * n // self._threads for n in (number, number + 1))
            self._kernel(columns, first, last, memory, self._prepared, losses)

        list(self._pool.map(train, range(self._threads)))

    def take(self, table: str) -> list[Float32Array]:
        """Return a table's rows and moments, as `RowTrainer.take` does; `train` must not be called any more."""
        self._pool.shutdown()
        return super().take(table)


CPU = Device(
    name="cpu",
    title="threads of the processor",
    settings=settings.CPU,
    replica_trainer=CpuReplicaTrainer,
    partition_trainer=CpuPartitionTrainer,
    row_trainer=CpuRowTrainer,
    runs_cpu_kernels=True,
    honours=("frozen_words", "maxn", "features", "prefix_sizes"),
)
