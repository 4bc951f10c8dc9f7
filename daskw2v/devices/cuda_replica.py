"""One replica in the memory of an NVIDIA GPU: that which CUDA gives this process first.

Threads of the processor read, decode and subsample text, some pieces ahead. Each piece goes by way of a buffer in
pinned memory, which the GPU copies from by itself, to one of its own; there are two of both, so that one piece is
copied while the one before is trained.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import cycle, islice
from typing import Any

import numpy as np

from daskw2v.cuda import load
from daskw2v.devices.base import Piece
from daskw2v.devices.lending import lent
from daskw2v.devices.replica import Replica
from daskw2v.objectives.base import FloatArray, Warps
from daskw2v.sampling.segments import Segment

TABLES = ("input", "output")
_BUFFERS = 2
_AHEAD = 2  # pieces that are read besides those that threads are reading


class CudaReplica(Replica):
    """Trained by warps without locks: the result depends on their order, which nobody knows.

    Raises
    ------
    MissingExtraError, ClusterError
        As `cuda.check_gpu` does.
    """

    device = "cuda"
    positions = 1 << 22  # enough for two thousand warps: each has a long piece

    def _start(self, prepared: object, blocks: Mapping[str, Sequence[FloatArray]]) -> None:
        self._cuda = cuda = load("numba.cuda")
        self._prepared = lent(cuda.to_device, prepared)
        pieces, touched = load("daskw2v.objectives.cuda.pieces"), self._touched()
        self._in_flight = pieces.room(self._threads.max_in_flight)
        self._likely = [cuda.to_device(pieces.crowded(touched[name], self._in_flight)) for name in TABLES]
        self._tables = {name: cuda.to_device(table) for name, table in self._padded(blocks).items()}

    def train(self, loads: Iterable[Callable[[], Piece]]) -> tuple[int, float]:
        """Train pieces of text, which threads of the processor load ahead."""
        cuda, stream = self._cuda, self._cuda.stream()
        totals = cuda.to_device(np.zeros(2))
        source, output = (self._tables[name] for name in TABLES)
        hot_rows, (inputs, outputs) = self._threads.hot_rows or 0, self._likely
        memory = Warps(source, output, self._width, hot_rows, self._in_flight, inputs, outputs, totals, stream)
        buffers = [_Buffer(cuda) for _ in range(_BUFFERS)]
        try:
            for piece, buffer in zip(self._loaded(loads), cycle(buffers), strict=False):
                segment = buffer.put(piece.segment, stream)
                self._train(segment, piece.first, piece.last, memory, piece.rate, piece.epoch, self._prepared)
                buffer.trained(stream)
        finally:
            stream.synchronize()  # before what it uses is let go
        examples, loss = totals.copy_to_host().tolist()
        return int(examples), loss

    def _loaded(self, loads: Iterable[Callable[[], Piece]]) -> Iterator[Piece]:
        """Yield what `loads` return, in their order; threads load some ahead."""
        loads = iter(loads)
        with ThreadPoolExecutor(self._threads.n) as pool:
            coming: deque[Future[Piece]] = deque(pool.submit(of) for of in islice(loads, self._threads.n + _AHEAD))
            while coming:
                piece = coming.popleft().result()
                coming.extend(pool.submit(of) for of in islice(loads, 1))
                yield piece

    def _let_go(self) -> dict[str, FloatArray]:
        tables, self._tables = self._tables, {}
        return {name: table.copy_to_host() for name, table in tables.items()}


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
