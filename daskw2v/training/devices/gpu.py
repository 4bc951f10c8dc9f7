"""Trainers on an NVIDIA GPU, one of the GPUs that the worker declares, and the memory of GPUs.

A trainer has one GPU, but threads of many tasks call its methods: each method enters the GPU's context.

A replica's text is cut on the GPU (`sampling.cuda`), to which threads of the processor copy missing text (`gpu_text`).
The replica's tables stay on the GPU: the next task copies the rows that a task leaves on the GPU (`GpuRows`).
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
import numpy.typing as npt
from dask.sizeof import sizeof
from distributed import Worker

from daskw2v.cluster.gpus import RESOURCE, VARIABLE, count_declared_gpus, gpu_cluster_options
from daskw2v.errors import ClusterError
from daskw2v.kernels import buffers
from daskw2v.kernels.cuda import check_gpu, load
from daskw2v.objectives.base import TABLES, DeviceTables, MatrixColumns, PartTables, Rate
from daskw2v.objectives.touched import contexts_in_partition
from daskw2v.sampling.reader import CHUNK, Span, open_text, subsampling_key
from daskw2v.sampling.run import Run
from daskw2v.sampling.skipgrams import Bucket
from daskw2v.training.devices.base import DeviceTrainer, PartitionTrainer, RowTrainer, Threads
from daskw2v.training.devices.device import Device
from daskw2v.training.devices.gpu_text import DevicePiece, DeviceText, TextSums, release_waiting_text, text_on_gpu
from daskw2v.training.devices.replica_trainer import ReplicaTrainer, RowBlock, TextTotals
from daskw2v.training.devices.settings import Cuda, Replicated
from daskw2v.types import Float32Array, UInt64Array

_CODE, _CUT = 4, 5 * (3 * 4 + 2 * 8) // 4  # bytes of a position: stored; and cut, with a quarter to spare
_N_AHEAD = 2  # pieces that are read ahead, besides one for each thread
# Texts in the errors of CUDA's libraries and of PyTorch
_FULL = "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation", "CUDA out of memory", "CUBLAS_STATUS_ALLOC_FAILED"


_P = ParamSpec("_P")
_R = TypeVar("_R")
_Trainer = TypeVar("_Trainer", bound="CudaTrainer")


def free_memory(dask_worker: Worker | None = None) -> float:
    """Return the smallest number of free bytes of the GPUs of a worker; infinity for simulated GPUs.

    Raises
    ------
    MissingExtraError, ClusterError
        As `cuda.check_gpu` does; or if the worker declares more GPUs than it sees.
    """
    declared, gpus = count_declared_gpus(dask_worker), load("numba.cuda").gpus
    if declared > len(gpus) and not numba.config.ENABLE_CUDASIM:
        raise ClusterError(
            f"A worker on {platform.node()} declares {RESOURCE}={declared}, but sees {len(gpus)}.",
            f"Start it with --resources {RESOURCE}={len(gpus)}, or let it see more ({VARIABLE}).",
        )
    return min(map(_free_bytes, gpus[:declared]))


def _free_bytes(gpu: Any) -> float:
    """Return the bytes that are free on a GPU, after text that waits there is released; infinity if simulated."""
    if numba.config.ENABLE_CUDASIM:
        return math.inf
    with gpu:
        context = load("numba.cuda").current_context()
        release_waiting_text(gpu)  # of earlier runs
        context.memory_manager.deallocations.clear()
        return float(context.get_memory_info().free)


def torch_device() -> str:
    """Return PyTorch's name of this process's GPU, "cuda"; "cpu" where Numba simulates one."""
    return "cpu" if numba.config.ENABLE_CUDASIM else "cuda"


@contextmanager
def gpu_memory_watched() -> Iterator[None]:
    """Replace errors of CUDA's libraries that say that a GPU's memory is full by a ClusterError."""
    try:
        yield
    except Exception as error:
        if not any(name in str(error) for name in _FULL):
            raise
        raise ClusterError(
            f"The memory of a GPU is full on {platform.node()} ({error}).",
            "End other programs on that GPU (nvidia-smi lists them), start one worker a GPU (--resources GPU=1), or "
            "train a smaller model: vector_size, max_final_vocab, or more n_partitions of strategy='rotation'.",
        ) from error


def _on_its_gpu(method: Callable[Concatenate[_Trainer, _P], _R]) -> Callable[Concatenate[_Trainer, _P], _R]:
    """Return a trainer's method, run with the trainer's GPU current, whichever thread calls it."""

    @wraps(method)
    def entered(trainer: _Trainer, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        with trainer.gpu:
            return method(trainer, *args, **kwargs)

    return entered


class GpuRows:
    """Rows of a table on a GPU, as the result of a task. They must not be changed.

    The rows become a NumPy array, shape (rows, D) float32, where they are sent, written or passed to `numpy.asarray`.

    Parameters
    ----------
    values
        The rows on the GPU, one after the other, padded to complete cache lines, float32.
    shape
        Number of rows, and their length D.
    gpu
        The GPU: a context manager that makes it the calling thread's current GPU.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, values: Any, shape: tuple[int, int], gpu: Any) -> None:
        self.values, self.shape, self._gpu = values, shape, gpu

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        with self._gpu:
            rows: Float32Array = self.values.copy_to_host(buffers.pool.empty(len(self.values)))
        unpadded = rows.reshape(len(self), -1)[:, : self.shape[1]] if len(self) else rows.reshape(self.shape)
        return np.ascontiguousarray(unpadded, dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return np.asarray, (np.asarray(self),)

    @property
    def nbytes(self) -> int:
        """Bytes on the GPU."""
        return int(self.values.nbytes)


@sizeof.register(GpuRows)  # type: ignore[untyped-decorator]
def _(rows: GpuRows) -> int:
    return rows.nbytes  # Dask runs a task where most of its arguments are


class DevicePool:
    """Assigns devices, by number, to the trainers of this process. More trainers than devices share; none waits."""

    def __init__(self) -> None:
        self._holders: defaultdict[int, WeakSet[object]] = defaultdict(WeakSet)
        self._lock = Lock()

    def assign(self, holder: object, n: int) -> int:
        """Return the number, 0..n-1, of the device with the fewest holders; `holder` has it until it is deleted."""
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
        The GPU: a context manager that makes it the calling thread's current GPU.

    Raises
    ------
    MissingExtraError, ClusterError
        As `cuda.check_gpu` does.
    """

    device = "cuda"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        n = count_declared_gpus()
        self.gpu = load("daskw2v.kernels.cuda.gpus").gpu_at(_POOL.assign(self, n))
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
        """Return a copy in this machine's memory of an array of the GPU, shape (n,); memory is reused if possible."""
        return values.copy_to_host(buffers.pool.empty(len(values), values.dtype))

    def _are_finite(self, tables: Iterable[Any]) -> bool:
        """Return whether all values of tables on the current GPU are finite."""
        finite, squares = load("daskw2v.kernels.cuda.finite"), self.to_device(np.zeros(1))
        for table in tables:
            finite.add_squares(table, squares)
        return bool(np.isfinite(squares.copy_to_host()[0]))


class CudaReplicaTrainer(CudaTrainer, ReplicaTrainer):
    """Trains a replica by warps, without locks: the result depends on the warps' order, which is not known."""

    positions = 1 << 22  # enough for two thousand warps with a long range each
    step = task = 1 << 27  # a fifth of a second: Dask's time for a task has to be a small part of it

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
        """Return the bytes of pieces that threads read ahead, and of a piece that is cut, beside text that stays."""
        read = min(cls.positions + 2 * CHUNK, words)  # complete chunks
        return (threads + _N_AHEAD) * _CODE * read + _CUT * min(cls.positions, words)

    @classmethod
    def trains_together(cls, threads: Threads) -> str | None:
        """Return a name, for users, of what trains a replica in parallel: warps; threads only read text."""
        return None if cast(Cuda, threads.device).max_in_flight == 1 else "The warps of a GPU"

    @property
    def pieces_ahead(self) -> int:
        """Number of pieces of the next step that are read before it begins: one for each thread."""
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
        """Return the padded rows to copy to a table, flat; rows of a GPU stay on the GPU."""
        if isinstance(part, GpuRows):
            return part.values
        rows = np.zeros((len(part), self._width), np.float32)
        self._copy_into(rows, part)
        return rows.ravel()

    @_on_its_gpu
    def results(self) -> tuple[dict[str, list[Any]], bool]:
        """Return the trained row blocks, which stay on the GPU, and whether they are finite; release the tables."""
        finite = self._are_finite(self._tables.values())
        results = {name: [GpuRows(*block, self.gpu) for block in self._shaped_blocks(name)] for name in self._tables}
        self._tables.clear()
        return results, finite

    def _shaped_blocks(self, name: str) -> Iterator[tuple[Any, tuple[int, int]]]:
        """Yield the row blocks of a table on the GPU, flat and padded, and their shapes without padding."""
        for number, rows in enumerate(np.diff(self._bounds[name]).tolist()):
            yield self.block(name, number), (rows, self._columns)

    @_on_its_gpu
    def load(self, run: Run, epoch: int, start: int, stop: int, rate: Rate) -> DevicePiece:
        """Return the piece at positions start..stop-1 of a run's text on the GPU; copy what is not there."""
        key = subsampling_key(run.params, epoch)
        spans = self._open_text(run).load(start, stop, run.params.window, key)
        return DevicePiece(spans, start, stop, rate, epoch, key)

    def _open_text(self, run: Run) -> DeviceText:
        """Return the text of a run on the GPU; the first call opens it."""
        with self._lock:
            if self._text is None:
                self._text = text_on_gpu(self._cuda, open_text(run), self, self._max_text_bytes)
            return self._text

    def _max_text_bytes(self) -> float:
        """Return the bytes that text may keep: half of the free memory that other replicas and rounds do not need."""
        tables = self.nbytes * (2 * -(-Replicated.of(self._params).replicas // count_declared_gpus()) - 1)
        return max(0.0, _free_bytes(self.gpu) - tables) / 2

    def train(self, loads: Iterable[Callable[[], DevicePiece]]) -> TextTotals:
        """Cut and train pieces of text, which threads of the processor load ahead."""
        return self.begin(loads)()

    @_on_its_gpu
    def begin(self, loads: Iterable[Callable[[], DevicePiece]]) -> Callable[[], TextTotals]:
        """Put the cutting and training of pieces into the trainer's stream, as `ReplicaTrainer.begin` does."""
        cuda, stream = self._cuda, self._stream
        sums = self._spare.popleft() if self._spare else TextSums.on_gpu(cuda)
        sums.clear(stream)
        source, output = (self._tables[name] for name in TABLES)
        hot_rows, (inputs, outputs), totals = cast(Cuda, self._threads.device).hot_rows or 0, self._likely, sums.totals
        memory = DeviceTables(source, output, self._width, hot_rows, self._in_flight, inputs, outputs, totals, stream)
        trained = list[Span]()
        try:
            for piece in self._loaded(loads):
                assert self._text is not None  # `load` opened it for the piece
                spans, keep = piece.in_stream(stream), self._text.keep
                cut = self._cutter.cut(spans, piece.start, piece.stop, keep, piece.key, sums.counts, stream)
                segment, first, last = cut
                self._train(segment, first, last, memory, piece.rate, piece.epoch, self._prepared)
                del spans
                released = cuda.event()
                released.record(stream)
                piece.release_at(released)
                trained += [loaded.span for loaded in piece.spans]
        except BaseException:
            stream.synchronize()  # before the memory that it uses is released
            raise
        sums.copy(stream)
        return partial(self._await_totals, sums, trained)

    @_on_its_gpu
    def _await_totals(self, sums: TextSums, trained: Sequence[Span]) -> TextTotals:
        """Wait for the training of spans of text; return their totals, or raise an error if a code names no word."""
        sums.copied.synchronize()
        (examples, loss), (words, n_bad) = sums.pinned_totals.tolist(), sums.pinned_counts.tolist()
        self._spare.append(sums)
        if n_bad and self._text is not None:
            self._text.check(trained)
            raise ClusterError(
                f"A GPU on {platform.node()} found {n_bad} codes that no word has, in text that is as it was written.",
                "Look for errors of the GPU's memory (nvidia-smi -q -d ECC), and run the same command again.",
            )
        return TextTotals(int(examples), loss, words)

    def _loaded(self, loads: Iterable[Callable[[], DevicePiece]]) -> Iterator[DevicePiece]:
        """Yield the pieces that the functions of `loads` return, in order; threads load the next pieces meanwhile."""
        loads = iter(loads)
        with ThreadPoolExecutor(self._threads.n) as pool:
            coming: deque[Future[DevicePiece]] = deque(map(pool.submit, islice(loads, self._threads.n + _N_AHEAD)))
            while coming:
                piece = coming.popleft().result()
                coming.extend(map(pool.submit, islice(loads, 1)))
                yield piece


class CudaPartitionTrainer(CudaTrainer, PartitionTrainer):
    """Trains buckets by warps, without locks: the result depends on the warps' order, which is not known."""

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
    def leave(self, table: str, number: int, *, stays: bool) -> tuple[Any, bool]:
        """Return the trained rows of a partition, which may stay on the GPU, as `PartitionTrainer.leave` does."""
        if not stays or not self._has_room:
            return super().leave(table, number, stays=stays)
        rows = self._partitions[table].pop(number)
        shape = len(rows) // self._width, self._params.vector_size
        return GpuRows(rows, shape, self.gpu), self._are_finite([rows])

    @cached_property
    def _has_room(self) -> bool:
        """Whether the next task has enough memory on the GPU if these partitions stay there."""
        size = sum(table.nbytes for tables in self._partitions.values() for table in list(tables.values()))
        return bool(_free_bytes(self.gpu) >= 2 * size)

    def _likely_rows(self, table: str, number: int, touched_in: Callable[..., Any], *more: Any) -> Any:
        """Return how many items of a batch touch each of a partition's first rows, on average, on the GPU; cached.

        `touched_in` is a function of Params, the counts of the partition's words, the count of all words, and `more`,
        that returns the numbers for all rows.
        """
        if (table, number) not in self._likely:
            touched = touched_in(self._params, self._counts(number), self._total, *more)
            self._likely[table, number] = self.to_device(self._pieces.damped_chances(touched, self._in_flight))
        return self._likely[table, number]

    @_on_its_gpu
    def train(
        self, input: int, output: int, bucket: Bucket, alpha: float, words: UInt64Array, key: np.uint64
    ) -> tuple[int, float]:
        """Train the bucket of two partitions, as `PartitionTrainer.train` does, in a stream of its own."""
        stream, tables = self._cuda.stream(), (self._inputs[input], self._outputs[output])
        totals = self._cuda.to_device(np.zeros(2))
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
    """Trains rows on a GPU, which has the tables in its memory from the first column of a task to the last."""

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
    local_cluster=gpu_cluster_options,
    torch_device=torch_device,
    explaining_errors=gpu_memory_watched,
    honours=("frozen_words",),
)
