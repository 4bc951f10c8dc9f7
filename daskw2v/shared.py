"""Arrays that processes of one host have in common, so that rows travel between its workers without a copy.

Dask sends over TCP what tasks return, from one worker to the next even on one host. What a task hands to `share` is
written, when another worker first asks for it, into sealed memory without a name (memfd), and only its place is sent:
the taker opens `/proc/<pid>/fd/<file>` and maps it, to read. The kernel frees it when giver and takers have let go of
it, however they end. What stays where it is costs nothing.

Who is given a place, and who bytes? A serializer is told by Dask whom it works for, in the words of that process when
it opened the connection, the handshake. A worker that shares names memory of its own there; a giver that can open this
is on the same host, and may. All others say nothing and get bytes: clients, the scheduler, workers of other hosts, and
Dask itself when it spills to disk. Should a taker not be able to do what the giver was, it fails as by a broken
connection, after which Dask asks again, and says nothing from then on.
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

_LEAST = mmap.PAGESIZE  # bytes that are worth a file
_MARK = 16  # bytes behind the content, random: they tell a file from another one of the same number
_NAME = "daskw2v"  # of the memory, for those who look at /proc
_KEY = "daskw2v-memory"  # of the handshake


class Place(NamedTuple):
    """Where memory lies: a process, the number of its file, the size of the content, and the mark behind it."""

    pid: int
    file: int
    size: int
    mark: bytes


class SharedArray(np.ndarray[Any, np.dtype[Any]]):
    """An array, read-only, that lies in memory which others can open, or will. What is made of it has no place."""

    place: Place | None = None
    shares: bool = False

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.view(np.ndarray).__reduce_ex__(protocol)  # bytes: a pickle may lie anywhere, for any time


class _Handshake:
    """What this process says of itself when its workers connect, and how much it gave away by place."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._own: Place | None = None
        self._refused = False
        self._said: list[dict[str, Any]] = []
        self.given = 0

    def join(self, worker: Worker) -> None:
        """Let a worker say in all of its new connections that it can open others' memory."""
        with self._lock:
            overrides = worker.rpc.connection_args.setdefault("handshake_overrides", {})
            if self._refused or _KEY in overrides:
                return
            if self._own is None:
                self._own = _write(b"")[1]
            overrides[_KEY] = self._own
            self._said.append(overrides)
        worker.loop.add_callback(worker.rpc.collect)  # old connections, on which it said nothing

    def leave(self) -> None:
        """Say nothing from now on."""
        with self._lock:
            self._refused = True
            for overrides in self._said:
                overrides.pop(_KEY, None)

    def count(self, size: int) -> None:
        """Note what was given away by place."""
        with self._lock:
            self.given += size


_handshake, _writing = _Handshake(), Lock()


def share(array: Array) -> Array:
    """Return an array that travels to other workers of this host as its place; itself where none can be.

    It is what a task is about to return: nobody may change it any more.
    """
    if isinstance(array, SharedArray) and (array.shares or array.place):
        return array
    if array.nbytes < _LEAST or not array.flags.c_contiguous or not hasattr(os, "memfd_create"):
        return array
    try:
        _handshake.join(get_worker())
    except (ValueError, OSError):  # outside of workers; where there are no more files
        return array
    shared = array.view(SharedArray)
    shared.shares, shared.flags.writeable = True, False
    return shared


def given_bytes() -> int:
    """Return the bytes that this process gave to others by their place, though Dask counts them as sent."""
    return _handshake.given


def by_fields(cls: type[Fields]) -> type[Fields]:
    """Let Dask serialize a NamedTuple field by field, arrays as arrays; it would pickle the whole."""

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


def _write(content: Any) -> tuple[int, Place]:
    """Write new memory that nobody can change any more; return its file and its place.

    Raises
    ------
    OSError
        If there is no room, or half of the files that this process may open are open: others need some too.
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
    return file, Place(os.getpid(), file, len(content), mark)


def _check_number(file: int) -> None:
    if 2 * file > resource.getrlimit(resource.RLIMIT_NOFILE)[0]:  # a new file has the lowest number that is free
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def _open(place: Place) -> int:
    """Return a file of memory that lies somewhere; raise an OSError where it cannot be opened, or is another one."""
    path = f"/proc/{place.pid}/fd/{place.file}"
    if not os.readlink(path).startswith(f"/memfd:{_NAME}"):  # to open a pipe would wait, to open a device do anything
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
def _opens(place: Place) -> bool:
    try:
        os.close(_open(place))
    except OSError:
        return False
    return True


def _mapped(file: int, place: Place, shape: Sequence[int], dtype: Any) -> SharedArray:
    """Return the array that a file holds, and this process's place of it; it keeps the file open."""
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
    place = None if taker is None or not _opens(Place(*taker)) else _place_of(array)
    if place is None:
        header, frames = serialize_numpy_ndarray(array.view(np.ndarray), context)
        return header, frames
    _handshake.count(array.nbytes)
    return {"place": tuple(place), "shape": array.shape, "dtype": array.dtype.str}, []


def _place_of(array: SharedArray) -> Place | None:
    """Return where an array lies, which is written there first; None where there is no room, or no more files."""
    with _writing:  # several takers may ask at the same time
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
    place = Place(*header["place"])
    try:
        return _mapped(_open(place), place, header["shape"], header["dtype"])
    except OSError:
        _handshake.leave()
        raise


register_serialization(SharedArray, _give, _take)
