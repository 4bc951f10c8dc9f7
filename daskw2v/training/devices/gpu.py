"""Trainers on an NVIDIA GPU, one of the GPUs that the worker declares, and the memory of GPUs.

A trainer has one GPU, but threads of many tasks call its methods: each method enters the GPU's context.

A replica's text is cut on the GPU (`sampling.cuda`), to which threads of the processor copy missing text (`gpu_text`).
Its tables stay there: the next task copies the rows that a task leaves from there (`gpu_rows`).
"""

import math
import platform
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property, partial, wraps
from itertools import islice
from threading import Lock
from typing import Any, Concatenate, ParamSpec, TypeVar, cast
from weakref import WeakSet

import numba
import numpy as np
from distributed import Worker

from daskw2v.cluster.gpus import RESOURCE, VARIABLE, gpus_declared, gpus_for
from daskw2v.errors import ClusterError
from daskw2v.kernels import buffers
from daskw2v.kernels.cuda import check_gpu, load
from daskw2v.objectives.base import DeviceTables, MatrixColumns, PartTables, Rate
from daskw2v.objectives.touched import contexts_in_partition
from daskw2v.sampling.reader import CHUNK, Span, open_text, subsampling_key
from daskw2v.sampling.run import Run
from daskw2v.sampling.skipgrams import Bucket
from daskw2v.training.devices.base import DeviceTrainer, PartitionTrainer, RowTrainer, Threads
from daskw2v.training.devices.device import Device
from daskw2v.training.devices.gpu_rows import GpuRows
from daskw2v.training.devices.gpu_text import DevicePiece, DeviceText, TextSums, release_waiting_text, text_on_gpu
from daskw2v.training.devices.replica_trainer import ReplicaTrainer, RowBlock, TextTotals
from daskw2v.training.devices.settings import Cuda, Replicated
from daskw2v.types import UInt64Array

TABLES = ("input", "output")
_CODE, _CUT = 4, 5 * (3 * 4 + 2 * 8) // 4  # bytes of a position: as it is stored; cut, with some room
_AHEAD = 2  # pieces that are read ahead, besides one for each thread
# In the errors of all of CUDA's libraries, and of PyTorch
_FULL = "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation", "CUDA out of memory", "CUBLAS_STATUS_ALLOC_FAILED"


_P = ParamSpec("_P")
_R = TypeVar("_R")
_Trainer = TypeVar("_Trainer", bound="CudaTrainer")


def free_memory(dask_worker: Worker | None = None) -> float:
    """Return the bytes that are free on that GPU of a worker which has fewest; infinity for simulated ones.

    Raises
    ------
    MissingExtraError, ClusterError
        As `cuda.check_gpu` does; or if the worker declares more GPUs than it sees.
    """
    declared, gpus = gpus_declared(dask_worker), load("numba.cuda").gpus
    if declared > len(gpus) and not numba.config.ENABLE_CUDASIM:
        raise ClusterError(
            f"A worker on {platform.node()} declares {RESOURCE}={declared}, but sees {len(gpus)}.",
            f"Start it with --resources {RESOURCE}={len(gpus)}, or let it see more ({VARIABLE}).",
        )
    return min(map(_free_on, gpus[:declared]))


def _free_on(gpu: Any) -> float:
    if numba.config.ENABLE_CUDASIM:
        return math.inf
    with gpu:
        context = load("numba.cuda").current_context()
        release_waiting_text(gpu)  # of earlier runs
        context.memory_manager.deallocations.clear()
        return float(context.get_memory_info().free)


def torch_device() -> str:
    """Return PyTorch's name of the first GPU of this process: the processor where Numba simulates one."""
    return "cpu" if numba.config.ENABLE_CUDASIM else "cuda"


@contextmanager
def gpu_memory_watched() -> Iterator[None]:
    """Turn the errors of CUDA's libraries when a GPU has no memory left into a ClusterError."""
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


def _on_its_gpu(method: Callable[Concatenate[_Trainer, _P], _R]) -> Callable[Concatenate[_Trainer, _P], _R]:
    """Let a trainer's method work on its GPU, whichever thread calls it."""

    @wraps(method)
    def entered(trainer: _Trainer, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        with trainer.gpu:
            return method(trainer, *args, **kwargs)

    return entered


class DevicePool:
    """The devices of this process's trainers, by number. Trainers share devices if they are more; none waits."""

    def __init__(self) -> None:
        self._holders: defaultdict[int, WeakSet[object]] = defaultdict(WeakSet)
        self._lock = Lock()

    def take(self, holder: object, n: int) -> int:
        """Return the number of the device that fewest holders have, of n; `holder` has it until it is deleted."""
        with self._lock:
            number = min(range(n), key=lambda device: len(self._holders[device]))
            self._holders[number].add(holder)
        return number


_POOL = DevicePool()


class CudaTrainer(DeviceTrainer):
    """The base of trainers on a GPU.

    Attributes
    ----------
    gpu
        The GPU, a context manager that makes it the calling thread's.

    Raises
    ------
    MissingExtraError, ClusterError
        As `cuda.check_gpu` does.
    """

    device = "cuda"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        n = gpus_declared()
        self.gpu = load("daskw2v.kernels.cuda.gpus").gpu_at(_POOL.take(self, n))
        super().__init__(*args, **kwargs)

    @cached_property
    def _cuda(self) -> Any:
        return load("numba.cuda")

    @cached_property
    def _pieces(self) -> Any:
        return load("daskw2v.objectives.cuda.pieces")

    @_on_its_gpu
    def to_device(self, values: Any) -> Any:
        """Return a copy of an array on the GPU."""
        return self._cuda.to_device(np.ascontiguousarray(values))

    @_on_its_gpu
    def from_device(self, values: Any) -> Any:
        """Return a copy of an array of the GPU, in memory that was used before if possible."""
        return values.copy_to_host(buffers.pool.empty(len(values), values.dtype))

    def _are_finite(self, tables: Iterable[Any]) -> bool:
        """Return whether tables on the GPU, which is current, are finite."""
        finite, squares = load("daskw2v.kernels.cuda.finite"), self.to_device(np.zeros(1))
        for table in tables:
            finite.add_squares(table, squares)
        return bool(np.isfinite(squares.copy_to_host()[0]))


class CudaReplicaTrainer(CudaTrainer, ReplicaTrainer):
    """Warps train without locks: the result depends on their order, which is not known."""

    positions = 1 << 22  # enough for two thousand warps: each has a long piece
    step = task = 1 << 27  # a fifth of a second: what Dask takes for a task has to be little of it

    @_on_its_gpu
    def _make_ready(self) -> None:
        touched = dict(self._touched())
        if len(self._frozen):
            # The likelier a row is touched, the shorter are its steps
            touched["input"] = np.where(self._frozen, np.inf, touched["input"])
        self._in_flight = self._pieces.room(cast(Cuda, self._threads.device).max_in_flight)
        self._likely = [self.to_device(self._pieces.damped_chances(touched[name], self._in_flight)) for name in TABLES]
        self._cutter, self._stream = self._cutting.Cutter(), self._cuda.stream()
        self._spare = deque[TextSums]()
        self._text: DeviceText | None = None
        self._lock = Lock()

    @cached_property
    def _cutting(self) -> Any:
        return load("daskw2v.sampling.cuda")

    @_on_its_gpu
    def _overwrite(self, on_device: Any, values: Any) -> None:
        on_device.copy_to_device(values.reshape(-1))

    @classmethod
    def text_bytes(cls, threads: int, words: int) -> int:
        """Return the bytes of chunks that threads read, each as it is stored and as it is decoded."""
        return threads * 2 * 4 * min(CHUNK, words)

    @classmethod
    def device_text_bytes(cls, threads: int, words: int) -> int:
        """Return the bytes of pieces that threads read ahead, and of one that is cut; kept text takes the rest."""
        read = min(cls.positions + 2 * CHUNK, words)  # whole chunks
        return (threads + _AHEAD) * _CODE * read + _CUT * min(cls.positions, words)

    @classmethod
    def trains_together(cls, threads: Threads) -> str | None:
        """Return the name of what trains the replica's rows in parallel: threads of the processor only read."""
        return None if cast(Cuda, threads.device).max_in_flight == 1 else "The warps of a GPU"

    @property
    def pieces_ahead(self) -> int:
        """Number of pieces of the next step that are read before it begins: as many as there are threads."""
        return self._threads.n

    @_on_its_gpu
    def _copies(self, blocks: Mapping[str, Sequence[RowBlock]]) -> dict[str, Any]:
        tables = {name: self._cuda.device_array(n * self._width, np.float32) for name, n in self._lengths.items()}

        def copy(job: tuple[str, int, RowBlock]) -> None:
            name, number, part = job
            rows = slice(*self._bounds[name][number : number + 2] * self._width)
            with self.gpu:
                tables[name][rows].copy_to_device(self._padded(part))

        self._in_threads(copy, [(name, number, part) for name in blocks for number, part in enumerate(blocks[name])])
        return tables

    def _padded(self, part: RowBlock) -> Any:
        """Return the rows to copy to a table: rows of a GPU as they lie there, other rows padded."""
        if isinstance(part, GpuRows):
            return part.values
        rows = np.zeros((len(part), self._width), np.float32)
        self._copy_into(rows, part)
        return rows.ravel()

    @_on_its_gpu
    def results(self) -> tuple[dict[str, list[Any]], bool]:
        """Return the rows as `ReplicaTrainer.results` does: they stay on the GPU."""
        good = self._are_finite(self._tables.values())
        taken = {name: [GpuRows(*of, self.gpu) for of in self._parts(name)] for name in self._tables}
        self._tables.clear()
        return taken, good

    def _parts(self, name: str) -> Iterator[tuple[Any, tuple[int, int]]]:
        for number, rows in enumerate(np.diff(self._bounds[name]).tolist()):
            yield self.block(name, number), (rows, self._columns)

    @_on_its_gpu
    def load(self, run: Run, epoch: int, start: int, stop: int, rate: Rate) -> DevicePiece:
        """Bring the positions start..stop-1 of a run's text to the GPU, unless they are there."""
        key = subsampling_key(run.params, epoch)
        spans = self._text_of(run).load(start, stop, run.params.window, key)
        return DevicePiece(spans, start, stop, rate, epoch, key)

    def _text_of(self, run: Run) -> DeviceText:
        with self._lock:
            if self._text is None:
                self._text = text_on_gpu(self._cuda, open_text(run), self, self._room_for_text)
            return self._text

    def _room_for_text(self) -> float:
        """Return the bytes that text may take: half of the memory that tables of all replicas and rounds leave."""
        tables = self.nbytes * (2 * -(-Replicated.of(self._params).n_replicas // gpus_declared()) - 1)
        return max(0.0, _free_on(self.gpu) - tables) / 2

    def train(self, loads: Iterable[Callable[[], DevicePiece]]) -> TextTotals:
        """Cut and train pieces of text, which threads of the processor load ahead."""
        return self.begin(loads)()

    @_on_its_gpu
    def begin(self, loads: Iterable[Callable[[], DevicePiece]]) -> Callable[[], TextTotals]:
        """Put the cutting and training of pieces into the stream, as `ReplicaTrainer.begin` says."""
        cuda, stream = self._cuda, self._stream
        sums = self._spare.popleft() if self._spare else TextSums.on_gpu(cuda)
        sums.clear(stream)
        source, output = (self._tables[name] for name in TABLES)
        hot_rows, (inputs, outputs), totals = cast(Cuda, self._threads.device).hot_rows or 0, self._likely, sums.totals
        memory = DeviceTables(source, output, self._width, hot_rows, self._in_flight, inputs, outputs, totals, stream)
        trained = list[Span]()
        try:
            for piece in self._loaded(loads):
                assert self._text is not None  # which the piece is of
                spans, keep = piece.on(stream), self._text.keep
                cut = self._cutter.cut(spans, piece.start, piece.stop, keep, piece.key, sums.counts, stream)
                segment, first, last = cut
                self._train(segment, first, last, memory, piece.rate, piece.epoch, self._prepared)
                del spans
                used = cuda.event()
                used.record(stream)
                piece.used(used)
                trained += [loaded.span for loaded in piece.spans]
        except BaseException:
            stream.synchronize()  # before the memory that it uses is released
            raise
        sums.copy(stream)
        return partial(self._ended, sums, trained)

    @_on_its_gpu
    def _ended(self, sums: TextSums, trained: Sequence[Span]) -> TextTotals:
        """Wait for pieces that were begun; return their totals."""
        sums.copied.synchronize()
        (examples, loss), (words, bad) = sums.totals_here.tolist(), sums.counts_here.tolist()
        self._spare.append(sums)
        if bad and self._text is not None:
            self._text.check(trained)
            raise ClusterError(
                f"A GPU on {platform.node()} found {bad} codes that no word has, in text that is as it was written.",
                "Look for errors of the GPU's memory (nvidia-smi -q -d ECC), and run the same command again.",
            )
        return TextTotals(int(examples), loss, words)

    def _loaded(self, loads: Iterable[Callable[[], DevicePiece]]) -> Iterator[DevicePiece]:
        """Yield the pieces that `loads` return, in their order; threads load some ahead."""
        loads = iter(loads)
        with ThreadPoolExecutor(self._threads.n) as pool:
            coming: deque[Future[DevicePiece]] = deque(
                pool.submit(of) for of in islice(loads, self._threads.n + _AHEAD)
            )
            while coming:
                piece = coming.popleft().result()
                coming.extend(pool.submit(of) for of in islice(loads, 1))
                yield piece


class CudaPartitionTrainer(CudaTrainer, PartitionTrainer):
    """Warps train two partitions without locks: the result depends on their order, which is not known."""

    @_on_its_gpu
    def _make_ready(self) -> None:
        self._in_flight = self._pieces.room(cast(Cuda, self._settings).max_in_flight)
        self._likely = dict[tuple[str, int], Any]()

    @_on_its_gpu
    def _copied(self, rows: Any) -> Any:
        if not isinstance(rows, GpuRows):
            return super()._copied(rows)
        table = self._cuda.device_array(len(rows.values), np.float32)
        table.copy_to_device(rows.values)
        return table

    @_on_its_gpu
    def _leave(self, tables: dict[int, Any], number: int, *, stays: bool) -> tuple[Any, bool]:
        if not stays or not self._has_room:
            return super()._leave(tables, number, stays=stays)
        table = tables.pop(number)
        rows = GpuRows(table, (len(table) // self._width, self._params.vector_size), self.gpu)
        return rows, self._are_finite([table])

    @cached_property
    def _has_room(self) -> bool:
        """Whether the next task has enough memory on the GPU if these partitions stay there."""
        own = sum(table.nbytes for tables in (self._inputs, self._outputs) for table in list(tables.values()))
        return bool(_free_on(self.gpu) >= 2 * own)

    def _likely_rows(self, table: str, number: int, touched_in: Callable[..., Any], *more: Any) -> Any:
        """Return how likely a batch touches each of the first rows of a partition, on the GPU."""
        if (table, number) not in self._likely:
            touched = touched_in(self._params, self._counts(number), self._total, *more)
            self._likely[table, number] = self.to_device(self._pieces.damped_chances(touched, self._in_flight))
        return self._likely[table, number]

    @_on_its_gpu
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
            stream.synchronize()  # before the memory that it uses is released
        return len(bucket.pairs), float(totals.copy_to_host()[1])


class CudaRowTrainer(CudaTrainer, RowTrainer):
    """A GPU trains rows: tables are in its memory from the first column of a task to its last."""

    @_on_its_gpu
    def _run(self, n_batches: int, columns: MatrixColumns, memory: PartTables, losses: Any) -> None:
        if n_batches:
            self._kernel(columns, 0, n_batches, memory, self._prepared, losses)


CUDA = Device(
    name="cuda",
    title="an NVIDIA GPU",
    settings=Cuda,
    replica_trainer=CudaReplicaTrainer,
    partition_trainer=CudaPartitionTrainer,
    row_trainer=CudaRowTrainer,
    check=check_gpu,
    resource=RESOURCE,
    free_memory=free_memory,
    local_cluster=gpus_for,
    torch_device=torch_device,
    explaining_errors=gpu_memory_watched,
    honours=("frozen_words",),
)
