"""Arrays in shared memory, so that workers of one host pass rows without copying them over sockets.

Dask sends results of tasks over TCP, even between workers of one host. An array that a task passes to `share` is
written to a memfd when another worker first asks for it, and only the memfd's address (a `Region`) is sent. One that
was made by `room` lies there from the start. The receiver opens `/proc/<pid>/fd/<file>` and maps it read-only. The
kernel frees the memory when sender and receivers have closed it, however they end. An array that stays on its worker is
never copied.

The sender uses the memory again for its next arrays. Receivers hold a shared lock of the file as long as they have it
open or mapped, so the sender gets the exclusive lock when all of them are done. Memory that is used again has another
mark, by which late receivers see that the former content is gone.

A receiver gets an address only if it can open it. Workers announce a small memfd of their own in the handshake of a
connection, which Dask passes to the sender's serializer. If the sender can open that memfd, both are on the same host
and run as the same user. All others get bytes: the client, the scheduler, workers of other hosts, and Dask itself when
it spills to disk. If a receiver cannot open an address after all, it raises an OSError, which Dask treats as a broken
connection and retries; the receiver no longer announces its memfd, so it then gets bytes.

Only Linux has memfds: elsewhere all arrays are sent as bytes.
"""

import errno
import math
import mmap
import os
import secrets
import sys
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import chain
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from distributed import Worker, get_worker
from distributed.protocol import deserialize, register_serialization, serialize
from distributed.protocol.numpy import deserialize_numpy_ndarray, serialize_numpy_ndarray

from daskw2v.kernels import buffers

if sys.platform == "linux":
    import fcntl
    import resource

Array = npt.NDArray[Any]
Fields = TypeVar("Fields", bound=NamedTuple)

_LEAST = mmap.PAGESIZE  # bytes of the smallest array to share
_MARK = 16  # random bytes after the content: they prove that a file number still means the same content
_NAME = "daskw2v"  # of the memfd, as shown in /proc
_KEY = "daskw2v-memory"  # in the handshake


class Region(NamedTuple):
    """Address of shared memory: process, file descriptor, its size, and the mark after it."""

    pid: int
    file: int
    size: int
    mark: bytes


class SharedArray(np.ndarray[Any, np.dtype[Any]]):
    """A read-only array that is or will be in shared memory. Arrays computed from it are not."""

    place: Region | None = None
    shares: bool = False
    _copied: Any = None  # in shared memory, which is used again when both are gone

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.view(np.ndarray).__reduce_ex__(protocol)  # as bytes: a pickle may outlive the memory


class _Handshake:
    """The announcement of this process in its workers' handshakes, and the number of bytes that it shared."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._own: Region | None = None
        self._refused = False
        self._said: list[dict[str, Any]] = []
        self.shared = 0

    def join(self, worker: Worker) -> None:
        """Announce in new connections of a worker that this process can open shared memory."""
        with self._lock:
            overrides = worker.rpc.connection_args.setdefault("handshake_overrides", {})
            if self._refused or _KEY in overrides:
                return
            if self._own is None:
                self._own = _write(b"")[1]
            overrides[_KEY] = self._own
            self._said.append(overrides)
        worker.loop.add_callback(worker.rpc.collect)  # closes old connections, which lack the announcement

    def leave(self) -> None:
        """Stop announcing."""
        with self._lock:
            self._refused = True
            for overrides in self._said:
                overrides.pop(_KEY, None)

    def count(self, size: int) -> None:
        """Count bytes that were shared instead of sent."""
        with self._lock:
            self.shared += size


_handshake, _writing = _Handshake(), Lock()


def share(array: Array) -> Array:
    """Return an array that other workers of this host read from shared memory, or the array itself if it cannot be.

    The array is the result of a task and must not be changed any more.
    """
    if isinstance(array, SharedArray) and (array.shares or array.place):
        array.flags.writeable = False
        return array
    if array.nbytes < _LEAST or not array.flags.c_contiguous or not _joined():
        return array
    shared = array.view(SharedArray)
    shared.shares, shared.flags.writeable = True, False
    return shared


def room(shape: tuple[int, ...], dtype: npt.DTypeLike = np.float32) -> Array:
    """Return room for an array that other workers will take: `share` and sending then copy nothing.

    It is shared memory, or where that cannot be, memory of `kernels.buffers`.
    """
    if math.prod(shape) * np.dtype(dtype).itemsize >= buffers.MIN_BYTES and _joined():
        with suppress(OSError):
            shared = _segments.table(shape, dtype).view(SharedArray)
            shared.place = _place_of_room(shared)
            return shared
    return buffers.pool.table(shape, dtype)


def _joined() -> bool:
    """Return whether this is a worker that can share memory; it then announces that."""
    try:
        worker = get_worker()
        if sys.platform != "linux" or not hasattr(os, "memfd_create"):
            return False
        _handshake.join(worker)
    except (ValueError, OSError):  # outside of workers; out of file descriptors
        return False
    return True


def given_bytes() -> int:
    """Return the bytes that this process shared instead of sending, which Dask counts as sent."""
    return _handshake.shared


def by_fields(cls: type[Fields]) -> type[Fields]:
    """Let Dask serialize a NamedTuple field by field, arrays as arrays, instead of pickling the whole."""

    def dumps(value: Fields, context: Mapping[str, Any] | None = None) -> tuple[Any, list[Any]]:
        headers, frames = zip(*(serialize(field, context=context, on_error="raise") for field in value), strict=True)
        return {"headers": list(headers), "lengths": list(map(len, frames))}, list(chain.from_iterable(frames))

    def loads(header: Mapping[str, Any], frames: Sequence[Any]) -> Fields:
        waiting = iter(frames)
        lengths = zip(header["headers"], header["lengths"], strict=True)
        return cls(*(deserialize(part, [next(waiting) for _ in range(n)]) for part, n in lengths))

    register_serialization(cls, dumps, loads)
    return cls


def _create(size: int) -> tuple[int, Region]:
    """Create a memfd for so many bytes, with a mark after them; return its file descriptor and address.

    Raises
    ------
    OSError
        If there is no memory, or half of the file descriptors of this process are in use: the rest is for others.
    """
    file, mark = os.memfd_create(_NAME, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING), secrets.token_bytes(_MARK)
    with _closed_on_error(file):
        _check_number(file)
        os.posix_fallocate(file, 0, size + _MARK)  # or the kernel would end the process that writes
        os.pwrite(file, mark, size)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return file, Region(os.getpid(), file, size, mark)


@contextmanager
def _closed_on_error(file: int) -> Iterator[None]:
    """Close a file descriptor if the block raises an error."""
    try:
        yield
    except BaseException:
        os.close(file)
        raise


def _write(content: Any) -> tuple[int, Region]:
    """Write content to a new memfd, sealed; return its file descriptor and address; raises as `_create` does."""
    file, place = _create(len(content))
    with _closed_on_error(file):
        with os.fdopen(file, "wb", closefd=False) as stream:
            stream.write(content)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    return file, place


class _Segment(mmap.mmap):
    """A memfd that is mapped here to be written; it is closed with its last reference."""

    place: Region


def _segment(size: int) -> _Segment:
    file, place = _create(size)
    with _closed_on_error(file):
        segment = _Segment(file, size)
    segment.place = place
    weakref.finalize(segment, os.close, file)
    return segment


def _take_back(segment: _Segment) -> bool:
    """Give a segment another mark, if no receiver has it any more; else return False."""
    file = segment.place.file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    segment.place = segment.place._replace(mark=secrets.token_bytes(_MARK))
    os.pwrite(file, segment.place.mark, segment.place.size)
    fcntl.flock(file, fcntl.LOCK_UN)
    return True


_segments = buffers.Buffers(create=_segment, is_free=_take_back)


def _place_of_room(rows: Array) -> Region:
    """Return the address of an array that `_segments` returned."""
    while isinstance(rows.base, np.ndarray):
        rows = rows.base
    segment: _Segment = rows.base.obj  # type: ignore[attr-defined]  # of a memoryview
    return segment.place


def _check_number(file: int) -> None:
    if 2 * file > resource.getrlimit(resource.RLIMIT_NOFILE)[0]:  # a new file gets the lowest free number
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def _open(place: Region) -> int:
    """Open the memory at an address; return its file descriptor. Raise an OSError if it is gone."""
    path = f"/proc/{place.pid}/fd/{place.file}"
    if not os.readlink(path).startswith(f"/memfd:{_NAME}"):  # opening a pipe would block, a device do anything
        raise FileNotFoundError(f"{place} is gone")
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    with _closed_on_error(file):
        _check_number(file)
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        if os.pread(file, _MARK, place.size) != place.mark:
            raise FileNotFoundError(f"{place} is gone")
    return file


@lru_cache(maxsize=4096)
def _opens(place: Region) -> bool:
    with suppress(OSError):
        os.close(_open(place))
        return True
    return False


def _mapped(file: int, place: Region, shape: Sequence[int], dtype: npt.DTypeLike) -> SharedArray:
    """Return the array in a file, with this process's address of it; the array keeps the file open."""
    with _closed_on_error(file):
        memory = mmap.mmap(file, place.size, access=mmap.ACCESS_READ)
    array = SharedArray(tuple(shape), dtype, memory)
    array.place = place._replace(pid=os.getpid(), file=file)
    weakref.finalize(array, os.close, file)
    return array


def _give(array: SharedArray, context: Mapping[str, Any] | None = None) -> tuple[Any, list[Any]]:
    taker = (context or {}).get("recipient", {}).get(_KEY)
    place = None if taker is None or not _opens(Region(*taker)) else _place_of(array)
    if place is None:
        plain: tuple[Any, list[Any]] = serialize_numpy_ndarray(array.view(np.ndarray), context)
        return plain
    _handshake.count(array.nbytes)
    return {"place": tuple(place), "shape": array.shape, "dtype": array.dtype.str}, []


def _place_of(array: SharedArray) -> Region | None:
    """Return the address of an array, after writing it if needed; None without memory or file descriptors."""
    with _writing, suppress(OSError):  # several receivers may ask at the same time
        if array.place is None and array.shares:
            content = np.asarray(array).data.cast("B")
            if len(content) < buffers.MIN_BYTES:
                file, array.place = _write(content)
                weakref.finalize(array, os.close, file)
            else:
                array._copied = _segments.empty(len(content), np.uint8)
                array._copied[:] = content
                array.place = _place_of_room(array._copied)
    return array.place


def _take(header: dict[str, Any], frames: list[Any]) -> Array:
    if "place" not in header:
        array: Array = deserialize_numpy_ndarray(header, frames)
        return array
    place = Region(*header["place"])
    try:
        return _mapped(_open(place), place, header["shape"], header["dtype"])
    except OSError:
        _handshake.leave()
        raise


register_serialization(SharedArray, _give, _take)
