"""Arrays in shared memory, so that workers of one host pass rows without copying them over sockets.

Dask sends results of tasks over TCP, even between workers of one host. An array that a task passes to `share` is
written to a memfd when another worker first requests it, and only the memfd's address (a `Region`) is sent. An array
that was made by `allocate_shared` lies in a memfd from the start. The receiver opens `/proc/<pid>/fd/<file>` and maps
it read-only. The kernel frees the memory when sender and receivers have closed it, however they end. An array that
stays on its worker is never copied.

The sender uses the memory again for its next arrays. Receivers hold a shared lock of the file as long as they have it
open or mapped. Hence the sender gets the exclusive lock when no receiver has the file any more. Memory that is used
again has a new mark, by which late receivers see that the former content is gone.

A receiver gets an address only if it can open it. Each worker announces a small memfd in the handshake of a connection,
which Dask passes to the sender's serializer. If the sender can open the memfd, both workers are on one host and run as
one user. Otherwise bytes are sent: to the client, the scheduler and workers of other hosts, and to disk when Dask
spills. If a receiver cannot open an address after all, it raises an OSError, which Dask treats as a broken connection
and retries; as the receiver has stopped announcing its memfd, it then gets bytes.

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

_MIN_BYTES = mmap.PAGESIZE  # of an array to share
_MARK = 16  # random bytes after the content: they prove that a file descriptor still means the same content
_NAME = "daskw2v"  # of memfds, as shown in /proc
_KEY = "daskw2v-memory"  # of the announcement in a handshake


class Region(NamedTuple):
    """The address of shared memory.

    Parameters
    ----------
    pid, file
        Id of the process that has the memfd open, and the file descriptor in that process.
    size
        Bytes of the content.
    mark
        The bytes after the content.
    """

    pid: int
    file: int
    size: int
    mark: bytes


class SharedArray(np.ndarray[Any, np.dtype[Any]]):
    """A read-only array that is in shared memory, or is copied to it when it is first sent.

    Arrays that are computed from such an array are not shared.

    Attributes
    ----------
    region
        Address of the memory; None if the array is not in shared memory.
    is_shareable
        Whether the array may be copied to shared memory.
    """

    region: Region | None = None
    is_shareable: bool = False
    _copied: Any = None  # the copy in shared memory, which is used again when array and copy are gone

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.view(np.ndarray).__reduce_ex__(protocol)  # as bytes: a pickle may outlive the memory


class _Handshake:
    """The announcement of this process in its workers' handshakes, and a count of shared bytes.

    Attributes
    ----------
    n_bytes
        Bytes of arrays that this process shared instead of sending them.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._region: Region | None = None  # of the announced memfd
        self._has_stopped = False
        self._announced: list[dict[str, Any]] = []  # `handshake_overrides` of workers
        self.n_bytes = 0

    def announce(self, worker: Worker) -> None:
        """Announce in new connections of a worker that this process can open shared memory."""
        with self._lock:
            overrides = worker.rpc.connection_args.setdefault("handshake_overrides", {})
            if self._has_stopped or _KEY in overrides:
                return
            if self._region is None:
                self._region = _write(b"")[1]
            overrides[_KEY] = self._region
            self._announced.append(overrides)
        worker.loop.add_callback(worker.rpc.collect)  # closes old connections, which lack the announcement

    def stop(self) -> None:
        """Announce nothing any more, in connections of all workers of this process."""
        with self._lock:
            self._has_stopped = True
            for overrides in self._announced:
                overrides.pop(_KEY, None)

    def add_shared(self, size: int) -> None:
        """Add `size` to `n_bytes`, the bytes that this process shared instead of sending them."""
        with self._lock:
            self.n_bytes += size


_handshake, _writing = _Handshake(), Lock()


def share(array: Array) -> Array:
    """Return a read-only view of an array that other workers of this host will read from shared memory.

    The array is the result of a task, and must not be changed after the call. It is returned unchanged if it is smaller
    than a page or not contiguous, or if this process is no worker that can share memory.
    """
    if isinstance(array, SharedArray) and (array.is_shareable or array.region):
        array.flags.writeable = False
        return array
    if array.nbytes < _MIN_BYTES or not array.flags.c_contiguous or not _can_share():
        return array
    shared = array.view(SharedArray)
    shared.is_shareable, shared.flags.writeable = True, False
    return shared


def allocate_shared(shape: tuple[int, ...], dtype: npt.DTypeLike = np.float32) -> Array:
    """Return an uninitialized array that other workers of this host will read; `share` and sending do not copy it.

    The array lies in shared memory; or in memory of `kernels.buffers`, if it is small or memory cannot be shared.
    """
    if math.prod(shape) * np.dtype(dtype).itemsize >= buffers.MIN_BYTES and _can_share():
        with suppress(OSError):
            shared = _segments.table(shape, dtype).view(SharedArray)
            shared.region = _region_of_buffer(shared)
            return shared
    return buffers.pool.table(shape, dtype)


def _can_share() -> bool:
    """Return whether this process is a worker that can share memory; if so, announce it in the worker's handshakes."""
    try:
        worker = get_worker()
        if sys.platform != "linux" or not hasattr(os, "memfd_create"):
            return False
        _handshake.announce(worker)
    except (ValueError, OSError):  # outside of workers; out of file descriptors
        return False
    return True


def shared_bytes() -> int:
    """Return how many bytes of arrays this process shared instead of sending them; Dask counts these bytes as sent."""
    return _handshake.n_bytes


def by_fields(cls: type[Fields]) -> type[Fields]:
    """Let Dask serialize values of a NamedTuple class field by field, arrays as arrays; return the class."""

    def dumps(value: Fields, context: Mapping[str, Any] | None = None) -> tuple[Any, list[Any]]:
        """Return Dask's header and frames of a value: those of its fields."""
        headers, frames = zip(*(serialize(field, context=context, on_error="raise") for field in value), strict=True)
        return {"headers": list(headers), "lengths": list(map(len, frames))}, list(chain.from_iterable(frames))

    def loads(header: Mapping[str, Any], frames: Sequence[Any]) -> Fields:
        """Return the value of a header and frames that `dumps` returned."""
        remaining = iter(frames)
        lengths = zip(header["headers"], header["lengths"], strict=True)
        return cls(*(deserialize(part, [next(remaining) for _ in range(n)]) for part, n in lengths))

    register_serialization(cls, dumps, loads)
    return cls


def _create(size: int) -> tuple[int, Region]:
    """Create a memfd for `size` bytes and a mark after them; return its file descriptor and its address.

    Raises
    ------
    OSError
        If there is no memory, or half of the file descriptors of this process are in use; the rest stays free for
        further uses.
    """
    file, mark = os.memfd_create(_NAME, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING), secrets.token_bytes(_MARK)
    with _closing_on_error(file):
        _check_descriptor(file)
        os.posix_fallocate(file, 0, size + _MARK)  # or the kernel would end the process that writes
        os.pwrite(file, mark, size)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return file, Region(os.getpid(), file, size, mark)


@contextmanager
def _closing_on_error(file: int) -> Iterator[None]:
    """Close a file descriptor if the block raises an error."""
    try:
        yield
    except BaseException:
        os.close(file)
        raise


def _write(content: Any) -> tuple[int, Region]:
    """Write bytes, or a view of bytes, into a new memfd, which cannot be written afterwards.

    Return its file descriptor, which the caller closes, and its address. Raises as `_create` does.
    """
    file, region = _create(len(content))
    with _closing_on_error(file):
        with os.fdopen(file, "wb", closefd=False) as stream:
            stream.write(content)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    return file, region


class _MappedRegion(mmap.mmap):
    """The memory of a memfd, mapped to be written; the memfd is closed with the last reference to the memory.

    Attributes
    ----------
    region
        Address of the memory.
    """

    region: Region


def _create_segment(size: int) -> _MappedRegion:
    """Return new shared memory of `size` bytes; raises as `_create` does."""
    file, region = _create(size)
    with _closing_on_error(file):
        segment = _MappedRegion(file, size)
    segment.region = region
    weakref.finalize(segment, os.close, file)
    return segment


def _reclaim(segment: _MappedRegion) -> bool:
    """Return whether no receiver has a segment open or mapped any more; if so, write a new mark into the segment."""
    file = segment.region.file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    segment.region = segment.region._replace(mark=secrets.token_bytes(_MARK))
    os.pwrite(file, segment.region.mark, segment.region.size)
    fcntl.flock(file, fcntl.LOCK_UN)
    return True


_segments = buffers.Buffers(create=_create_segment, is_free=_reclaim)


def _region_of_buffer(array: Array) -> Region:
    """Return the address of the memory of an array that `_segments` returned, or of a view of such an array."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    segment: _MappedRegion = array.base.obj  # type: ignore[attr-defined]  # of a memoryview
    return segment.region


def _check_descriptor(file: int) -> None:
    """Raise an OSError if a new file descriptor shows that half of the descriptors of this process are in use."""
    if 2 * file > resource.getrlimit(resource.RLIMIT_NOFILE)[0]:  # a new file gets the lowest free number
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def _open(region: Region) -> int:
    """Open the memory at an address, and lock it; return its file descriptor in this process.

    Raises
    ------
    OSError
        If the memory is gone or cannot be opened, or half of the file descriptors are in use.
    """
    path = f"/proc/{region.pid}/fd/{region.file}"
    if not os.readlink(path).startswith(f"/memfd:{_NAME}"):  # opening a pipe would block, a device do anything
        raise FileNotFoundError(f"{region} is gone")
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    with _closing_on_error(file):
        _check_descriptor(file)
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        if os.pread(file, _MARK, region.size) != region.mark:
            raise FileNotFoundError(f"{region} is gone")
    return file


@lru_cache(maxsize=4096)
def _can_open(region: Region) -> bool:
    """Return whether this process can open the memory at an address; the first answer is cached."""
    with suppress(OSError):
        os.close(_open(region))
        return True
    return False


def _map_array(file: int, region: Region, shape: Sequence[int], dtype: npt.DTypeLike) -> SharedArray:
    """Return the array in an open memfd, with its address in this process; the array keeps the memfd open.

    Parameters
    ----------
    file, region
        File descriptor in this process, and the address that was opened.
    shape, dtype
        Shape and dtype of the array.
    """
    with _closing_on_error(file):
        memory = mmap.mmap(file, region.size, access=mmap.ACCESS_READ)
    array = SharedArray(tuple(shape), dtype, memory)
    array.region = region._replace(pid=os.getpid(), file=file)
    weakref.finalize(array, os.close, file)
    return array


def _serialize(array: SharedArray, context: Mapping[str, Any] | None = None) -> tuple[Any, list[Any]]:
    """Return Dask's header and frames of an array: its address, if the recipient can open it, or else its bytes.

    `context` is Dask's description of the connection, in which `recipient` has the recipient's handshake.
    """
    announced = (context or {}).get("recipient", {}).get(_KEY)
    region = None if announced is None or not _can_open(Region(*announced)) else _copy_to_shared(array)
    if region is None:
        serialized: tuple[Any, list[Any]] = serialize_numpy_ndarray(array.view(np.ndarray), context)
        return serialized
    _handshake.add_shared(array.nbytes)
    return {"region": tuple(region), "shape": array.shape, "dtype": array.dtype.str}, []


def _copy_to_shared(array: SharedArray) -> Region | None:
    """Return the address of an array, which is copied to shared memory unless it is there already.

    None if there is no memory or file descriptor left, or the array may not be copied.
    """
    with _writing, suppress(OSError):  # several receivers may request an array at the same time
        if array.region is None and array.is_shareable:
            content = np.asarray(array).data.cast("B")
            if len(content) < buffers.MIN_BYTES:
                file, array.region = _write(content)
                weakref.finalize(array, os.close, file)
            else:
                array._copied = _segments.empty(len(content), np.uint8)
                array._copied[:] = content
                array.region = _region_of_buffer(array._copied)
    return array.region


def _deserialize(header: dict[str, Any], frames: list[Any]) -> Array:
    """Return the array of a header and frames of `_serialize`; raise an OSError if its memory cannot be opened."""
    if "region" not in header:
        array: Array = deserialize_numpy_ndarray(header, frames)
        return array
    region = Region(*header["region"])
    try:
        return _map_array(_open(region), region, header["shape"], header["dtype"])
    except OSError:
        _handshake.stop()
        raise


register_serialization(SharedArray, _serialize, _deserialize)
