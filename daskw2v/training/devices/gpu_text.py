"""Text in the memory of a GPU, where it is cut: chunks of codes, the words of their shards, and starts of sentences.

Threads of the processor read missing text and write it to pinned memory, from which the GPU copies it in a stream of
its own. Text stays on the GPU as long as there is memory: from the second epoch on, nothing is read. Text that does not
fit passes through: its memory is used again as soon as the GPU has trained it.
"""

import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from threading import Lock, Thread
from typing import Any, NamedTuple, Self
from weakref import WeakValueDictionary, finalize

import numpy as np
import numpy.typing as npt

from daskw2v.objectives.base import Rate
from daskw2v.sampling.reader import DeviceSpan, OpenText, SegmentReader, Span
from daskw2v.sampling.segments import append_threshold, cut_range

STAGE = 4 << 20  # bytes of pinned memory that are filled and copied at once
UNIT = 1 << 20  # the memory of text that passes through is a multiple of these bytes
_IDLE = 5.0  # seconds that text waits for another trainer


class _Loaded:
    """An array on the GPU, and the event of its copying."""

    def __init__(self, array: Any, copied: Any, uses: list[Any] | None) -> None:
        self.array, self._copied = array, copied
        self.uses = uses  # events after which the array may be overwritten; None if it stays

    def in_stream(self, stream: Any) -> Any:
        """Return the array, for later calls in a stream, which wait until the array is copied."""
        self._copied.wait(stream)
        return self.array


class _Pinned(NamedTuple):
    """Pinned memory, and the event after which it has been copied to the GPU."""

    values: Any
    copied: Any


class LoadedSpan(NamedTuple):
    """A span of text on the GPU: codes of its chunk, word ids of its shard's codes, starts of its shard's sentences.

    `sentences` selects the sentences that start in the span.
    """

    span: Span
    codes: _Loaded
    ids: _Loaded
    starts: _Loaded
    sentences: slice


class DevicePiece(NamedTuple):
    """A piece of text on the GPU: positions start..stop-1 with margins, in an epoch, at a learning rate.

    `key` is the stream of the draws of subsampling.
    """

    spans: list[LoadedSpan]
    start: int
    stop: int
    rate: Rate
    epoch: int
    key: np.uint64

    def in_stream(self, stream: Any) -> list[DeviceSpan]:
        """Return the spans of the piece, for later calls in a stream, which wait until the spans are copied."""
        return [
            DeviceSpan(
                codes.in_stream(stream)[span.first : span.first + span.n],
                ids.in_stream(stream),
                starts.in_stream(stream)[sentences] if sentences.start < sentences.stop else (),
                span.offset,
                span.position,
            )
            for span, codes, ids, starts, sentences in self.spans
        ]

    def release_at(self, event: Any) -> None:
        """Let the memory of the piece be overwritten after an event, unless the piece stays."""
        for loaded in self.spans:
            for array in (loaded.codes, loaded.ids, loaded.starts):
                if array.uses is not None:
                    array.uses.append(event)


class TextSums(NamedTuple):
    """Sums over trained text: examples and loss (`totals`), known tokens and bad codes (`counts`).

    They are on the GPU, and after the event `copied` in pinned memory, too.
    """

    totals: Any
    counts: Any
    pinned_totals: Any
    pinned_counts: Any
    copied: Any

    @classmethod
    def on_gpu(cls, cuda: Any) -> Self:
        """Return sums that are not yet set, on the current GPU and in pinned memory."""
        (totals, counts), (pinned_totals, pinned_counts) = (
            (allocate(2, np.float64), allocate(2, np.int64)) for allocate in (cuda.device_array, cuda.pinned_array)
        )
        return cls(totals, counts, pinned_totals, pinned_counts, cuda.event())

    def clear(self, stream: Any) -> None:
        """Set the sums to zero, by the stream."""
        for on_gpu, pinned in ((self.totals, self.pinned_totals), (self.counts, self.pinned_counts)):
            pinned[:] = 0
            on_gpu.copy_to_device(pinned, stream=stream)

    def copy(self, stream: Any) -> None:
        """Copy the sums to pinned memory, by the stream."""
        self.totals.copy_to_host(self.pinned_totals, stream=stream)
        self.counts.copy_to_host(self.pinned_counts, stream=stream)
        self.copied.record(stream)


class DeviceText:
    """The text of a run on one GPU. Several threads may load it.

    Parameters
    ----------
    cuda
        Numba's CUDA target.
    text
        The text of the run.
    max_bytes
        Bytes that may stay on the GPU.

    Attributes
    ----------
    keep
        Thresholds of subsampling on the GPU, as `append_threshold` returns them.
    """

    def __init__(self, cuda: Any, text: OpenText, max_bytes: float) -> None:
        self._cuda, self._text, self._free_bytes = cuda, text, max_bytes
        self._lock, self._copying = Lock(), cuda.stream()
        self._kept: dict[Hashable, _Loaded] = {}
        self._coming: dict[Hashable, Future[_Loaded]] = {}
        self._passing: WeakValueDictionary[Hashable, _Loaded] = WeakValueDictionary()
        self._pinned, self._free = deque[_Pinned](), deque[tuple[Any, list[Any]]]()
        self.keep = cuda.to_device(append_threshold(text.keep))

    def load(self, start: int, stop: int, window: int, key: np.uint64) -> list[LoadedSpan]:
        """Return the spans of positions start..stop-1, with margins that complete all windows; begin to copy them.

        `window` and `key` are as in `SegmentReader.read`.
        """
        reader = self._text.reader
        low, high = reader.margins(start, stop, window, self._text.keep, key)
        return [self._load_span(reader, span) for span in reader.spans(low, high)]

    def check(self, spans: Iterable[Span]) -> None:
        """Raise a DamageError if a code of these spans names no word, by reading the text once more."""
        for span in spans:
            self._text.reader.codes(span)

    def _load_span(self, reader: SegmentReader, span: Span) -> LoadedSpan:
        """Return a span on the GPU; begin to copy what is missing."""
        starts = reader.starts(span)
        return LoadedSpan(
            span,
            self._array(span.chunk, lambda: reader.unchecked_codes(span)),
            self._array(span.chunk.path, lambda: reader.ids(span)),
            self._array(span.shard, lambda: starts),
            slice(*map(int, np.searchsorted(starts, [span.offset, span.offset + span.n]))),
        )

    def _array(self, key: Hashable, read: Callable[[], npt.NDArray[Any]]) -> _Loaded:
        """Return the array of this key on the GPU; `read` returns the values if they have to be copied.

        The first thread begins to copy; other threads wait until then.
        """
        with self._lock:
            loaded = self._kept.get(key) or self._passing.get(key)
            if loaded is not None:
                return loaded
            coming, is_first = self._coming.get(key), key not in self._coming
            if coming is None:
                coming = self._coming[key] = Future()
        if not is_first:
            return coming.result()
        try:
            coming.set_result(self._upload(key, read()))
        except BaseException as error:
            coming.set_exception(error)
        finally:
            with self._lock:
                del self._coming[key]
        return coming.result()

    def _upload(self, key: Hashable, values: npt.NDArray[Any]) -> _Loaded:
        """Copy an array to the GPU, without waiting for the end; it stays there if there is memory."""
        content = np.ascontiguousarray(values).view(np.uint8)
        with self._lock:
            stays = len(content) <= self._free_bytes
            self._free_bytes -= len(content) * stays
        memory, uses = self._memory(len(content), stays=stays)
        for event in uses:
            event.wait(self._copying)
        self._copy(content, memory)
        copied = self._cuda.event()
        copied.record(self._copying)
        new_uses: list[Any] | None = None if stays else []
        loaded = _Loaded(memory[: len(content)].view(values.dtype), copied, new_uses)
        if new_uses is None:
            self._kept[key] = loaded
        else:
            self._passing[key] = loaded
            finalize(loaded, self._free.append, (memory, new_uses)).atexit = False
        return loaded

    def _memory(self, n: int, *, stays: bool) -> tuple[Any, list[Any]]:
        """Return `n` bytes or more on the GPU, and the events before which they must not be overwritten."""
        if not stays:
            for _ in range(len(self._free)):
                try:
                    memory, uses = self._free.popleft()
                except IndexError:  # another thread was faster
                    break
                if len(memory) >= n:
                    return memory, uses
                self._free.append((memory, uses))
        with self._lock:
            return self._cuda.device_array(n if stays else -(-n // UNIT) * UNIT, np.uint8), []

    def _copy(self, content: npt.NDArray[np.uint8], memory: Any) -> None:
        """Copy bytes to memory of the GPU by pinned memory, without waiting for the end."""
        for a, b in cut_range(0, len(content), STAGE):
            try:
                pinned = self._pinned.popleft()
            except IndexError:
                pinned = _Pinned(self._cuda.pinned_array(STAGE, np.uint8), self._cuda.event())
            pinned.copied.synchronize()  # its earlier content
            pinned.values[: b - a] = content[a:b]
            memory[a:b].copy_to_device(pinned.values[: b - a], stream=self._copying)
            pinned.copied.record(self._copying)
            self._pinned.append(pinned)


_texts: WeakValueDictionary[tuple[SegmentReader, Any], DeviceText] = WeakValueDictionary()  # by reader and GPU
_waiting: deque[tuple[float, Any, DeviceText]] = deque()  # since when, the GPU, the text; ordered by time
_trimming = Lock()  # held by the thread that frees text which waited long enough
_texts_lock = Lock()


def text_on_gpu(cuda: Any, text: OpenText, trainer: Any, max_bytes: Callable[[], float]) -> DeviceText:
    """Return a text on the GPU of a trainer; it stays there for some seconds after the trainer, for the next trainer.

    `max_bytes` returns the bytes that may stay on the GPU.
    """
    key = text.reader, trainer.gpu
    with _texts_lock:
        on_gpu = _texts.get(key)
        if on_gpu is None:
            on_gpu = _texts[key] = DeviceText(cuda, text, max_bytes())
    # No lock in the function, and no new thread: trainers may be freed in any thread
    finalize(trainer, lambda *waits: _waiting.append((time.monotonic(), *waits)), trainer.gpu, on_gpu).atexit = False
    if _trimming.acquire(blocking=False):
        Thread(target=_trim, name="daskw2v-text", daemon=True).start()
    return on_gpu


def release_waiting_text(gpu: Any) -> None:
    """Free the memory of text that waits on a GPU for its next trainer."""
    for entry in list(_waiting):
        if entry[1] is gpu:
            with suppress(ValueError):  # another thread was faster
                _waiting.remove(entry)


def _trim() -> None:
    """Free text that waited longer than _IDLE seconds, until no text is on a GPU; then release `_trimming`."""
    while len(_texts):
        time.sleep(_IDLE / 2)
        with suppress(IndexError):
            while _waiting[0][0] < time.monotonic() - _IDLE:
                _waiting.popleft()
    _trimming.release()
    if len(_texts) and _trimming.acquire(blocking=False):  # of a text that came before the release
        _trim()
