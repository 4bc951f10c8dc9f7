"""Arrays in shared memory, so that workers of one host pass rows without copying them over sockets.

Dask sends results of tasks over TCP, even between workers of one host. An array that a task passes to `share` is
written to a sealed memfd when another worker first asks for it, and only the memfd's address (a `Region`) is sent. The
receiver opens `/proc/<pid>/fd/<file>` and maps it read-only. The kernel frees the memory when sender and receivers have
closed it, however they end. An array that stays on its worker is never copied.

A receiver gets an address only if it can open it. Workers announce a small memfd of their own in the handshake of a
connection, which Dask passes to the sender's serializer. If the sender can open that memfd, both are on the same host
and run as the same user. All others get bytes: the client, the scheduler, workers of other hosts, and Dask itself when
it spills to disk. If a receiver cannot open an address after all, it raises an OSError, which Dask treats as a broken
connection and retries; the receiver no longer announces its memfd, so it then gets bytes.
"""

import errno
import fcntl
import mmap
import os
import resource
import secrets
import weakref
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from distributed import Worker, get_worker
from distributed.protocol import deserialize, register_serialization, serialize
from distributed.protocol.numpy import deserialize_numpy_ndarray, serialize_numpy_ndarray

Array = npt.NDArray[Any]
Fields = TypeVar("Fields", bound=NamedTuple)

_LEAST = mmap.PAGESIZE  # bytes of the smallest array to share
_MARK = 16  # random bytes after the content: they prove that a file number still means the same file
_NAME = "daskw2v"  # of the memfd, as shown in /proc
_KEY = "daskw2v-memory"  # in the handshake


class Region(NamedTuple):
    """Address of shared memory: process, file descriptor, size of the content, and the mark after it."""

    pid: int
    file: int
    size: int
    mark: bytes


class SharedArray(np.ndarray[Any, np.dtype[Any]]):
    """A read-only array that is or will be in shared memory. Arrays computed from it are not."""

    place: Region | None = None
    shares: bool = False

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.view(np.ndarray).__reduce_ex__(protocol)  # as bytes: a pickle may outlive the memory


class _Handshake:
    """The announcement of this process in its workers' handshakes, and a count of the bytes it shared."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._own: Region | None = None
        self._refused = False
        self._said: list[dict[str, Any]] = []
        self.given = 0

    def join(self, worker: Worker) -> None:
        """Announce in all new connections of a worker that it can open shared memory."""
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
            self.given += size


_handshake, _writing = _Handshake(), Lock()


def share(array: Array) -> Array:
    """Return an array that other workers of this host read from shared memory, or the array itself if it cannot be.

    The array is the result of a task and must not be changed any more.
    """
    if isinstance(array, SharedArray) and (array.shares or array.place):
        return array
    if array.nbytes < _LEAST or not array.flags.c_contiguous or not hasattr(os, "memfd_create"):
        return array
    try:
        _handshake.join(get_worker())
    except (ValueError, OSError):  # outside of workers; out of file descriptors
        return array
    shared = array.view(SharedArray)
    shared.shares, shared.flags.writeable = True, False
    return shared


def given_bytes() -> int:
    """Return the bytes that this process shared instead of sending, which Dask counts as sent."""
    return _handshake.given


def by_fields(cls: type[Fields]) -> type[Fields]:
    """Let Dask serialize a NamedTuple field by field, arrays as arrays, instead of pickling the whole."""

    def dumps(value: Fields, context: Mapping[str, Any] | None = None) -> tuple[Any, list[Any]]:
        parts = [serialize(field, context=context, on_error="raise") for field in value]
        headers, frames = [header for header, _ in parts], [frames for _, frames in parts]
        return {"headers": headers, "lengths": [len(some) for some in frames]}, list(chain.from_iterable(frames))

    def loads(header: Mapping[str, Any], frames: Sequence[Any]) -> Fields:
        waiting = iter(frames)
        lengths = zip(header["headers"], header["lengths"], strict=True)
        return cls(*(deserialize(part, [next(waiting) for _ in range(n)]) for part, n in lengths))

    register_serialization(cls, dumps, loads)
    return cls


def _write(content: Any) -> tuple[int, Region]:
    """Write content to a new sealed memfd; return its file descriptor and address.

    Raises
    ------
    OSError
        If there is no memory, or half of the file descriptors of this process are in use: others need some, too.
    """
    file, mark = os.memfd_create(_NAME, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING), secrets.token_bytes(_MARK)
    try:
        _check_number(file)
        with os.fdopen(file, "wb", closefd=False) as stream:
            stream.write(content)
            stream.write(mark)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    except BaseException:
        os.close(file)
        raise
    return file, Region(os.getpid(), file, len(content), mark)


def _check_number(file: int) -> None:
    if 2 * file > resource.getrlimit(resource.RLIMIT_NOFILE)[0]:  # a new file gets the lowest free number
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def _open(place: Region) -> int:
    """Open the memory at an address; return its file descriptor. Raise an OSError if it is gone."""
    path = f"/proc/{place.pid}/fd/{place.file}"
    if not os.readlink(path).startswith(f"/memfd:{_NAME}"):  # opening a pipe would block, a device do anything
        raise FileNotFoundError(f"{place} is gone")
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check_number(file)
        found = os.pread(file, _MARK, place.size)
    except BaseException:
        os.close(file)
        raise
    if found != place.mark:
        os.close(file)
        raise FileNotFoundError(f"{place} is gone")
    return file


@lru_cache(maxsize=4096)
def _opens(place: Region) -> bool:
    try:
        os.close(_open(place))
    except OSError:
        return False
    return True


def _mapped(file: int, place: Region, shape: Sequence[int], dtype: Any) -> SharedArray:
    """Return the array in a file, with this process's address of it; the array keeps the file open."""
    try:
        memory = mmap.mmap(file, place.size, access=mmap.ACCESS_READ)
    except BaseException:
        os.close(file)
        raise
    array = SharedArray(tuple(shape), dtype, memory)
    array.place = place._replace(pid=os.getpid(), file=file)
    weakref.finalize(array, os.close, file)
    return array


def _give(array: SharedArray, context: Mapping[str, Any] | None = None) -> tuple[Any, list[Any]]:
    taker = (context or {}).get("recipient", {}).get(_KEY)
    place = None if taker is None or not _opens(Region(*taker)) else _place_of(array)
    if place is None:
        header, frames = serialize_numpy_ndarray(array.view(np.ndarray), context)
        return header, frames
    _handshake.count(array.nbytes)
    return {"place": tuple(place), "shape": array.shape, "dtype": array.dtype.str}, []


def _place_of(array: SharedArray) -> Region | None:
    """Return the address of an array, after writing it if needed; None without memory or file descriptors."""
    with _writing:  # several receivers may ask at the same time
        if array.place is None and array.shares:
            try:
                file, array.place = _write(np.asarray(array).data.cast("B"))
            except OSError:
                return None
            weakref.finalize(array, os.close, file)
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
