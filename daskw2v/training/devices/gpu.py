"""Trainers on an NVIDIA GPU: the one that CUDA gives this process first. And its memory.

For a replica, threads of the processor read, decode and subsample text, some pieces ahead. Each piece is copied to a
buffer in pinned memory, and from there by the GPU itself to a buffer of its own. There are two of both: one piece is
copied while the piece before is trained.
"""

import math
import platform
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from itertools import cycle, islice
from typing import Any

import numba
import numpy as np

from daskw2v.cluster.gpus import RESOURCE, a_gpu_each
from daskw2v.errors import ClusterError
from daskw2v.kernels import buffers
from daskw2v.kernels.cuda import check_gpu, load
from daskw2v.objectives.base import Columns, DeviceTables, PartTables
from daskw2v.objectives.touched import contexts_in_partition
from daskw2v.sampling.segments import Segment
from daskw2v.sampling.skipgrams import Bucket
from daskw2v.training.devices.base import DeviceTrainer, PartitionTrainer, RowTrainer, Threads
from daskw2v.training.devices.device import Device
from daskw2v.training.devices.replica_trainer import ReplicaTrainer, TextPiece
from daskw2v.types import UInt64Array

TABLES = ("input", "output")
_BUFFERS = 2
_AHEAD = 2  # pieces that are read besides those that threads are reading
_FULL = "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation"  # in the errors of all of CUDA's libraries


def free_memory() -> float:
    """Return the bytes that are free on the GPU of this process; infinity for a simulated one.

    Raises
    ------
    MissingExtraError, ClusterError
        As `cuda.check_gpu` does.
    """
    context = load("numba.cuda").current_context()
    if numba.config.ENABLE_CUDASIM:
        return math.inf
    context.memory_manager.deallocations.clear()  # of earlier runs
    return float(context.get_memory_info().free)


@contextmanager
def gpu_memory_watched() -> Iterator[None]:
    """Turn what CUDA's libraries raise when a GPU has no memory left into a ClusterError."""
    try:
        yield
    except Exception as error:
        if not any(name in str(error) for name in _FULL):
            raise
        raise ClusterError(
            f"The memory of a GPU is full on {platform.node()} ({error}).",
            "End what else uses that GPU (nvidia-smi lists it), start one worker a GPU (with --resources GPU=1), or "
            "train a smaller model: vector_size, max_final_vocab, or more n_partitions of strategy='rotation'.",
        ) from error


class CudaTrainer(DeviceTrainer):
    """What trains on a GPU.

    Raises
    ------
    MissingExtraError, ClusterError
        As `cuda.check_gpu` does.
    """

    device = "cuda"

    @cached_property
    def _cuda(self) -> Any:
        return load("numba.cuda")

    @cached_property
    def _pieces(self) -> Any:
        return load("daskw2v.objectives.cuda.pieces")

    def to_device(self, values: Any) -> Any:
        """Return a copy of an array on the GPU."""
        return self._cuda.to_device(np.ascontiguousarray(values))

    def from_device(self, values: Any) -> Any:
        """Return a copy of an array of the GPU, in memory that was used before where there is some."""
        return values.copy_to_host(buffers.here.take(len(values), values.dtype))


class CudaReplicaTrainer(CudaTrainer, ReplicaTrainer):
    """Warps train without locks: the result depends on their order, which is not known."""

    positions = 1 << 22  # enough for two thousand warps: each has a long piece
    step = 1 << 24

    def _make_ready(self) -> None:
        touched = self._touched()
        self._in_flight = self._pieces.room(self._threads.max_in_flight)
        self._likely = [self.to_device(self._pieces.crowded(touched[name], self._in_flight)) for name in TABLES]
        self._buffers = [_Buffer(self._cuda) for _ in range(_BUFFERS)]

    @classmethod
    def pieces_held(cls, threads: int) -> int:
        """Return how many pieces of text so many threads hold at a time: some are read ahead."""
        return threads + _AHEAD

    @classmethod
    def trains_together(cls, threads: Threads) -> str | None:
        """Return what trains the replica's rows at the same time: threads of the processor only read."""
        return None if threads.max_in_flight == 1 else "The warps of a GPU"

    @property
    def pieces_ahead(self) -> int:
        """Number of pieces of the next step that are read before it begins: as many as there are threads."""
        return self._threads.n

    def _overwrite(self, there: Any, values: Any) -> None:
        there.copy_to_device(values.reshape(-1))

    def train(self, loads: Iterable[Callable[[], TextPiece]]) -> tuple[int, float]:
        """Train pieces of text, which threads of the processor load ahead."""
        cuda, stream = self._cuda, self._cuda.stream()
        totals = cuda.to_device(np.zeros(2))
        source, output = (self._tables[name] for name in TABLES)
        hot_rows, (inputs, outputs) = self._threads.hot_rows or 0, self._likely
        memory = DeviceTables(source, output, self._width, hot_rows, self._in_flight, inputs, outputs, totals, stream)
        try:
            for piece, buffer in zip(self._loaded(loads), cycle(self._buffers), strict=False):
                segment = buffer.put(piece.segment, stream)
                self._train(segment, piece.first, piece.last, memory, piece.rate, piece.epoch, self._prepared)
                buffer.trained(stream)
        finally:
            stream.synchronize()  # before what it uses is released
        examples, loss = totals.copy_to_host().tolist()
        return int(examples), loss

    def _loaded(self, loads: Iterable[Callable[[], TextPiece]]) -> Iterator[TextPiece]:
        """Yield what `loads` return, in their order; threads load some ahead."""
        loads = iter(loads)
        with ThreadPoolExecutor(self._threads.n) as pool:
            coming: deque[Future[TextPiece]] = deque(pool.submit(of) for of in islice(loads, self._threads.n + _AHEAD))
            while coming:
                piece = coming.popleft().result()
                coming.extend(pool.submit(of) for of in islice(loads, 1))
                yield piece


class _Buffer:
    """A segment in pinned memory and on the GPU, and a stream that copies it there."""

    def __init__(self, cuda: Any) -> None:
        self._cuda, self._stream = cuda, cuda.stream()
        self._copied, self._trained = cuda.event(), cuda.event()
        self._pinned: dict[str, Any] = {}
        self._there: dict[str, Any] = {}

    def put(self, segment: Segment, stream: Any) -> Segment:
        """Return the segment as it will lie on the GPU when `stream` comes to it."""
        self._trained.synchronize()  # the segment before is not needed any more
        there = Segment(*(self._array(name, values) for name, values in segment._asdict().items()))
        self._copied.record(self._stream)
        self._copied.wait(stream)
        return there

    def _array(self, name: str, values: Any) -> Any:
        n = len(values)
        if name not in self._pinned or len(self._pinned[name]) < n:
            room = n + n // 4 + 1
            self._pinned[name] = self._cuda.pinned_array(room, values.dtype)
            self._there[name] = self._cuda.device_array(room, values.dtype)
        self._pinned[name][:n] = values
        there = self._there[name][:n]
        there.copy_to_device(self._pinned[name][:n], stream=self._stream)
        return there

    def trained(self, stream: Any) -> None:
        """Note that what `stream` has been given by now uses the segment."""
        self._trained.record(stream)


class CudaPartitionTrainer(CudaTrainer, PartitionTrainer):
    """Warps train two partitions without locks: the result depends on their order, which is not known."""

    def _make_ready(self) -> None:
        self._in_flight = self._pieces.room(self._max_in_flight)
        self._likely = dict[tuple[str, int], Any]()

    def _likely_rows(self, table: str, number: int, touched_in: Callable[..., Any], *more: Any) -> Any:
        """Return how likely a batch touches each of the first rows of a partition, on the GPU."""
        if (table, number) not in self._likely:
            touched = touched_in(self._params, self._counts(number), self._total, *more)
            self._likely[table, number] = self.to_device(self._pieces.crowded(touched, self._in_flight))
        return self._likely[table, number]

    def train(
        self, input: int, output: int, bucket: Bucket, alpha: float, words: UInt64Array, key: np.uint64
    ) -> tuple[int, float]:
        """Train the bucket of two partitions, as `PartitionTrainer.train` says; each thread has a stream."""
        stream, put = self._cuda.stream(), self._cuda.to_device
        tables, totals = (self._inputs[input], self._outputs[output]), put(np.zeros(2))
        targets_in_partition = self._objective.targets_in_partition
        assert targets_in_partition is not None  # all objectives have it whose buckets a GPU trains
        likely = (
            self._likely_rows("input", input, contexts_in_partition),
            self._likely_rows("output", output, targets_in_partition, words),
        )
        memory = DeviceTables(*tables, self._width, 0, self._in_flight, *likely, totals, stream)
        try:
            self._train(bucket, memory, alpha, self._params, words, key)
        finally:
            stream.synchronize()  # before what it uses is released
        return len(bucket.pairs), float(totals.copy_to_host()[1])


class CudaRowTrainer(CudaTrainer, RowTrainer):
    """A GPU trains rows: tables are in its memory from the first column of a task to its last."""

    def _run(self, n_batches: int, columns: Columns, memory: PartTables, losses: Any) -> None:
        if n_batches:
            self._kernel(columns, 0, n_batches, memory, self._prepared, losses)


CUDA = Device(
    name="cuda",
    title="an NVIDIA GPU",
    replica_trainer=CudaReplicaTrainer,
    partition_trainer=CudaPartitionTrainer,
    row_trainer=CudaRowTrainer,
    check=check_gpu,
    resource=RESOURCE,
    free_memory=free_memory,
    local_cluster=a_gpu_each,
)
