"""A GPU that computes nothing and takes the time that one would: for profiles of what the host does beside it.

It stands in for `numba.cuda` (`installed`), so all of daskw2v's own code runs, with the real cost of reading, decoding
and copying. What is put into a stream ends after what was put there before, once an engine was free for as long as the
operation takes: one engine computes, others copy to the GPU, from it and within it. Who waits sleeps until then.

Copies from and to pinned memory take the bus alone, which moves nothing. Others take the host's time, as they do on a
GPU: bytes pass through some memory of the driver's own. Arrays of more than KEPT bytes are never written; what comes
back from them is noise. Smaller ones keep their values, so that kernels can leave totals there. A launch occupies its
thread for LAUNCHING: what Numba does for one needs a GPU.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib import import_module
from threading import Lock
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from benchmarks.cuda.cards import Card

BUS = 25e9  # bytes a second from and to pinned memory: PCI Express 4.0, 16 lanes
MEMORY = 80e9  # bytes of the GPU
LAUNCHING = 50e-6  # seconds of the host for each launch, assumed
WARPS = 16  # that a multiprocessor has room for
KEPT = 1 << 20
DRIVERS = 4 << 20  # bytes of the driver's own memory
UP, DOWN, WITHIN, COMPUTE = "up", "down", "within", "compute"  # engines


class Kernel(NamedTuple):
    """What the host sees of a kernel, called with its arguments: the seconds that it takes, and what it leaves."""

    seconds: Callable[..., float]
    leave: Callable[..., None] = lambda *_: None


class Spent(NamedTuple):
    """Seconds: on the clock, of this process's cores, and of the GPU's engines."""

    seconds: float
    processor: float
    kernels: float
    up: float
    down: float

    def since(self, other: "Spent") -> "Spent":
        """Return what was spent since another moment."""
        return Spent(*(now - then for now, then in zip(self, other, strict=True)))


class Stream:
    """Operations in order: when the last one ends."""

    last = 0.0

    def synchronize(self) -> None:
        time.sleep(max(0.0, self.last - time.perf_counter()))


class Event:
    """When the operations end that a stream had when the event was recorded."""

    def __init__(self) -> None:
        self._recorded = Stream()

    def record(self, stream: Stream) -> None:
        self._recorded.last = stream.last

    def wait(self, stream: Stream) -> None:
        stream.last = max(stream.last, self._recorded.last)

    def synchronize(self) -> None:
        self._recorded.synchronize()

    def query(self) -> bool:
        return self._recorded.last <= time.perf_counter()


class Pinned(np.ndarray[Any, Any]):
    """Memory of the host that the GPU reads and writes by itself, and slices of it."""


class Array:
    """Memory of the GPU."""

    def __init__(self, gpu: "Gpu", values: Any, kept: bool) -> None:
        self._gpu, self.values, self._kept = gpu, values, kept
        self.dtype, self.shape, self.size, self.nbytes = values.dtype, values.shape, values.size, values.nbytes

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, key: Any) -> "Array":
        return Array(self._gpu, self.values[key], self._kept)

    def reshape(self, *shape: int) -> "Array":
        return Array(self._gpu, self.values.reshape(*shape), self._kept)

    def view(self, dtype: Any) -> "Array":
        return Array(self._gpu, self.values.view(dtype), self._kept)

    def copy_to_device(self, source: Any, stream: Stream | None = None) -> None:
        if self._kept:
            np.copyto(self.values, source.values if isinstance(source, Array) else source)
        self._gpu.copy(WITHIN if isinstance(source, Array) else UP, source, stream)

    def copy_to_host(self, to: Any = None, stream: Stream | None = None) -> Any:
        to = np.empty(self.shape, self.dtype) if to is None else to
        self._gpu.copy(DOWN, to, stream)
        if self._kept:
            np.copyto(to, self.values)
        return to


class Gpu:
    """A stand-in for one GPU.

    Parameters
    ----------
    card
        Which.
    kernels
        By the qualified names of the functions that `daskw2v.kernels.cuda.warp.kernel` compiles.
    """

    def __init__(self, card: Card, kernels: Mapping[str, Kernel]) -> None:
        self._card, self._kernels = card, kernels
        self.busy = dict.fromkeys((UP, DOWN, WITHIN, COMPUTE), 0.0)  # seconds of each engine
        self._free, self._lock = dict.fromkeys(self.busy, 0.0), Lock()
        self.launches = list[tuple[str, Spent]]()  # kernels, and what is spent when each of them ends
        self.began = self.spent()  # when the first operation was put into a stream
        self._default, self._last = Stream(), 0.0  # the default stream waits for all others, and they for it
        noise = np.random.default_rng(1).normal(0, 0.1, DRIVERS // 4).astype(np.float32)
        self._drivers = {UP: np.zeros(DRIVERS, np.uint8), DOWN: noise.view(np.uint8)}

    def spent(self) -> Spent:
        """Return what was spent until now."""
        engines = (self.busy[engine] for engine in (COMPUTE, UP, DOWN))
        return Spent(time.perf_counter(), time.process_time(), *engines)

    def put(self, engine: str, seconds: float, stream: Stream | None) -> Stream:
        """Put an operation into a stream, the default one for None; return it."""
        with self._lock:
            if not self._last:
                self.began = self.spent()
            of = stream or self._default
            before = of.last if stream else self._last
            of.last = max(time.perf_counter(), before, self._default.last, self._free[engine]) + seconds
            self._free[engine], self._last = of.last, max(self._last, of.last)
            self.busy[engine] += seconds
        return of

    def copy(self, way: str, host: Any, stream: Stream | None) -> None:
        """Copy from memory of the host, or to it; who has none that is pinned, or no stream, waits."""
        if isinstance(host, Pinned | Array):
            seconds = 2 * host.nbytes / self._card.dram if way == WITHIN else host.nbytes / BUS
            of = self.put(way, seconds, stream)
            if not stream:
                of.synchronize()
            return
        self.put(way, 0.0, stream).synchronize()
        began, drivers = time.perf_counter(), self._drivers[way]
        flat = host.reshape(-1).view(np.uint8)
        for start in range(0, len(flat), DRIVERS):
            part = flat[start : start + DRIVERS]
            there = drivers[: len(part)]
            np.copyto(*((there, part) if way == UP else (part, there)))
        self.busy[way] += time.perf_counter() - began

    def launch(self, function: Any, stream: Stream | None, arguments: tuple[Any, ...]) -> None:
        """Let a kernel take its time.

        Raises
        ------
        KeyError
            If it is none that this stand-in knows.
        """
        kernel, began = self._kernels[function.__qualname__], time.perf_counter()
        while time.perf_counter() < began + LAUNCHING:
            pass
        ends = self.put(COMPUTE, kernel.seconds(*arguments), stream).last
        kernel.leave(*arguments)
        self.launches.append((function.__qualname__, self.spent()._replace(seconds=ends)))

    def array(self, shape: Any, dtype: Any) -> Array:
        values = np.empty(shape, dtype)  # the system gives no memory to what is never written
        return Array(self, values, values.nbytes <= KEPT)

    def to_device(self, values: Any, stream: Stream | None = None) -> Array:
        there = self.array(values.shape, values.dtype)
        there.copy_to_device(values, stream)
        return there

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Stand in for the GPU of this process, whose kernels are launched here instead of compiled."""
        cuda, dispatcher = import_module("numba.cuda"), import_module("numba.cuda.dispatcher").CUDADispatcher
        launching = import_module("daskw2v.kernels.cuda.launching")
        device = _Device(self._card)
        released = SimpleNamespace(clear=lambda: None)
        context = SimpleNamespace(
            deallocations=released, memory_manager=SimpleNamespace(deallocations=released),
            get_memory_info=lambda: SimpleNamespace(free=MEMORY),
        )  # fmt: skip

        def configure(kernel: Any, grid: Any, block: Any, stream: Any = None, shared: int = 0) -> Any:
            return lambda *arguments: self.launch(kernel.py_func, stream, arguments)

        of_cuda: dict[str, Any] = {
            "is_available": lambda: True,
            "gpus": [device],
            "get_current_device": lambda: device,
            "current_context": lambda: context,
            "stream": Stream,
            "event": Event,
            "pinned_array": lambda shape, dtype: np.empty(shape, dtype).view(Pinned),
            "device_array": self.array,
            "to_device": self.to_device,
        }
        of_kernels: dict[str, Any] = {
            "typeof_pyval": lambda *_: None,
            "compile": lambda *_: None,
            "configure": configure,
        }
        room = patch.object(launching, "_room", lambda *_: WARPS * self._card.multiprocessors)
        with patch.multiple(cuda, **of_cuda), patch.multiple(dispatcher, **of_kernels), room:
            yield


class _Device(nullcontext[None]):
    """A GPU as Numba describes it."""

    id, name, MAX_BLOCKS_PER_MULTIPROCESSOR, RESERVED_SHARED_MEMORY_PER_BLOCK = 0, "stand-in", 32, 1 << 10

    def __init__(self, card: Card) -> None:
        super().__init__()
        self.compute_capability, self.MULTIPROCESSOR_COUNT = card.capability, card.multiprocessors
        self.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = card.shared
