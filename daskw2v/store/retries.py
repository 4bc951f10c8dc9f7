"""Retries: calls of a store that may be slow, fail or be unavailable for a while, each with a timeout.

A transient failure is retried several times; a permanent one (no permission, no space) is raised at once; and no call
waits longer than its timeout.
"""

import asyncio
import errno
import io
import os
import queue
import random
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import IO, Any, NoReturn, TypeVar, cast

from zarr.abc.store import ByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.abc.store import Store as ZarrStore
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype
from zarr.storage import WrapperStore

from daskw2v.errors import DamageError, Daskw2vError, StoreError
from daskw2v.store.checksums import METADATA, NodeLocations, add_checksum, verify_metadata
from daskw2v.store.durability import DISK_FULL, is_local
from daskw2v.store.folder import Folder
from daskw2v.store.zarr_schema import check_metadata

T = TypeVar("T")
TIMEOUT = 300.0  # seconds to wait for an answer
PAUSES = (0.1, 0.5, 2.0, 5.0)  # seconds between two tries, about
_Answers = queue.SimpleQueue[tuple[Any, BaseException | None]]
_callers = threading.local()  # `caller`: the `_Caller` of each thread
_FINAL = DISK_FULL | {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP}
_ANSWERS = FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, FileExistsError
_MISTAKES = ValueError, TypeError, LookupError, AttributeError, NotImplementedError, ImportError
_SAME = Daskw2vError, *_ANSWERS, *_MISTAKES  # another call would raise the same


def is_transient(error: BaseException) -> bool:
    """Return whether an error may be transient, so that the same call may succeed later."""
    if isinstance(error, OSError) and error.errno in _FINAL:
        return False
    return isinstance(error, Exception) and not isinstance(error, _SAME)


def raise_explained(error: Exception, location: str) -> NoReturn:
    """Raise a StoreError that explains the last error of a store, or the error itself where it is the answer.

    `location` is the URL of what was read or written, for the message.
    """
    explained = _explain(error, location)
    try:
        if explained is None:
            raise error
        raise explained from error
    finally:
        del error, explained  # or error and frame form a cycle, which keeps the callers' futures


def _explain(error: Exception, location: str) -> StoreError | None:
    """Return a StoreError that explains an error of a store; None for an error that is an answer of the call."""
    code = error.errno if isinstance(error, OSError) else None
    cause = f"{type(error).__name__}: {error}".removesuffix(": ")
    if code in DISK_FULL:
        return StoreError.no_space(location)
    if isinstance(error, PermissionError) or code in _FINAL:
        return StoreError(f"{location} cannot be read or written ({cause}).", "Give the rights, or another URL.")
    if is_transient(error):
        problem = f"{location} cannot be read or written: {len(PAUSES) + 1} tries failed, the last by {cause}."
        return StoreError(problem, "Look after the store; the same command goes on.")
    return None


def _draw_pauses() -> Iterator[float | None]:
    """Yield the seconds to wait after each failed try, and None after the last try."""
    for pause in PAUSES:
        yield pause * random.uniform(0.7, 1.3)  # so that many workers do not retry at the same moment
    yield None


def with_retries(
    function: Callable[..., T],
    *args: Any,
    location: str,
    timeout: float = TIMEOUT,
    before: Callable[[], None] = lambda: None,
) -> T:
    """Return the result of `function(*args)`, which is called again after transient failures.

    Parameters
    ----------
    function
        A function that may be called again.
    location
        URL or name of what the function reads or writes, for messages.
    timeout
        Seconds that each call may take.
    before
        Called before each try, and after the last failure, in this thread; its errors end the tries.

    Raises
    ------
    StoreError
        If all tries failed or timed out, or the store refuses the call.
    Exception
        The function's own error where it is an answer, such as FileNotFoundError.
    """
    for pause in _draw_pauses():
        before()
        try:
            return call_in_time(function, args, timeout)
        except Exception as error:
            if pause is None or not is_transient(error):
                before()  # its error explains more: a guard is lost, whose next holder deletes files
                raise_explained(error, location)
            time.sleep(pause)
    raise AssertionError


def call_in_time(function: Callable[..., T], args: tuple[Any, ...], timeout: float) -> T:
    """Return the result of `function(*args)`, called in another thread with a copy of this thread's context.

    A call that hangs in the system cannot be interrupted: after the timeout its thread is abandoned.

    Raises
    ------
    TimeoutError
        If the call takes more than `timeout` seconds.
    Exception
        The function's own error.
    """
    caller = getattr(_callers, "caller", None)
    if caller is None or caller.process != os.getpid():  # a fork copies no threads
        caller = _Caller()
    _callers.caller = None  # set again once it answers: an abandoned thread is not used again
    answers = _Answers()
    caller.calls.put((answers, partial(copy_context().run, function, *args)))
    try:
        answer, failure = answers.get(timeout=timeout)
    except queue.Empty:
        raise TimeoutError(f"no answer for {timeout:g} s") from None
    _callers.caller = caller
    try:
        if failure is not None:
            raise failure
        return cast(T, answer)
    finally:
        del failure  # as in `raise_explained`


class _Caller:
    """A thread that makes calls for another thread; starting a thread for each call would take ten times as long."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.calls = queue.SimpleQueue[tuple[_Answers, Callable[[], Any]] | None]()
        threading.Thread(target=_make_calls, args=(self.calls,), daemon=True).start()

    def __del__(self) -> None:
        self.calls.put(None)  # ends the thread


def _make_calls(calls: queue.SimpleQueue[tuple[_Answers, Callable[[], Any]] | None]) -> None:
    """Make calls from a queue, and put each result, or error, into the call's own queue; end at None."""
    while (call := calls.get()) is not None:
        answers, function = call
        try:
            answers.put((function(), None))
        except BaseException as error:
            answers.put((None, error))
        del call, answers, function  # not kept while the thread waits


class RetryingStore(WrapperStore[ZarrStore]):
    """A Zarr store that retries each call, as `with_retries` does, and adds and verifies checksums.

    Parameters
    ----------
    store
        The store.
    url
        URL of the store, for messages.
    timeout
        Seconds that each call may take.
    complete
        Whether all chunks have been written: then a missing chunk is damage, where Zarr would return the fill value.
    attempt
        As in `NodeLocations`.
    """

    def __init__(
        self, store: ZarrStore, url: str, timeout: float = TIMEOUT, *, complete: bool = False, attempt: str = ""
    ) -> None:
        super().__init__(store)
        self._url, self._timeout, self._complete = url, timeout, complete
        self.locations = NodeLocations(url, attempt)
        self._delayed = dict[str, Buffer | None]()

    def _with_store(self, store: ZarrStore) -> "RetryingStore":
        """Return a store that wraps another Zarr store of the same URL, for Zarr."""
        other = RetryingStore(store, self._url, self._timeout, complete=self._complete)
        other.locations = self.locations
        return other

    def __str__(self) -> str:
        return self._url

    @property
    def is_local(self) -> bool:
        """Whether the store's files are on a disk of this machine, where they can be mapped."""
        return isinstance(self._store, Folder) and is_local(str(self._store.root))

    async def _with_retries(self, key: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `ask`, which is called again after transient failures; `key` is for messages."""
        for pause in _draw_pauses():
            try:
                async with asyncio.timeout(self._timeout):
                    return await ask()
            except Exception as error:
                if pause is None or not is_transient(error):
                    raise_explained(error, self._locate(key))
                await asyncio.sleep(pause)
        raise AssertionError

    def _locate(self, key: str) -> str:
        """Return the URL of a key, for messages."""
        return f"{self._url}/{key}"

    async def get(self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        """Return the value of a key, or a range of its bytes; None if the store has no such key.

        Raises
        ------
        DamageError
            If the value is damaged, or is a missing chunk of a `complete` store.
        StoreError
            As `with_retries`, or for metadata that daskw2v would not write.
        """
        if not key.endswith(METADATA):  # damaged chunks are read again by `StoredArray`
            return await self._get(key, prototype, byte_range)
        with suppress(DamageError):  # the store may answer once with half of a file, or with an old one
            value = await self._get(key, prototype, byte_range)
            if value is not None or not self._complete:
                return value
        return await self._get(key, prototype, byte_range)

    async def _get(self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None) -> Buffer | None:
        """Read a value once, as `get` describes, and check it."""
        value = await self._with_retries(key, lambda: self._store.get(key, prototype, byte_range))
        if self._complete and _is_chunk(key):
            if value is None:
                raise DamageError.of(self._locate(key), "is missing")
            if len(value) < max(1, _min_bytes(byte_range)):  # Zarr would fill the rest
                raise DamageError.of(self._locate(key), "is cut short")
        if value is not None and key.endswith(METADATA):
            values = verify_metadata(value.to_bytes(), self._locate(key))  # first: a damaged file can be made again
            check_metadata(values, self._locate(key))
            self.locations.check_node(key, values)
        elif value is not None and _is_chunk(key):
            self.locations.check_file(key, value.as_numpy_array(), byte_range)
        return value

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Return the values of several keys, or ranges of their bytes."""
        return list(await asyncio.gather(*(self.get(key, prototype, part) for key, part in key_ranges)))

    async def get_ranges(
        self, key: str, byte_ranges: Sequence[ByteRequest | None], *, prototype: BufferPrototype, **_: Any
    ) -> AsyncIterator[Sequence[tuple[int, Buffer | None]]]:
        """Yield ranges of a value's bytes, for Zarr 3.2; each is read alone, as a chunk is checked by its own bytes."""
        yield list(enumerate(await self.get_partial_values(prototype, [(key, part) for part in byte_ranges])))

    # By `get` and `set`: WrapperStore would call the wrapped store directly
    _get_many, _set_many, set_if_not_exists = ZarrStore._get_many, ZarrStore._set_many, ZarrStore.set_if_not_exists

    @property
    def _supports_sync_io(self) -> bool:
        """Whether Zarr may access the wrapped store directly."""
        return False  # Zarr 3.2 would read and write below this store, without its checks

    async def exists(self, key: str) -> bool:
        """Return whether the store has a key."""
        return await self._with_retries(key, lambda: self._store.exists(key))

    async def set(self, key: str, value: Buffer) -> None:
        """Write a value; add checksum and location to metadata. Metadata of an array under `hold` wait for `finish`.

        Raises
        ------
        StoreError
            As `with_retries`.
        """
        if key in self._delayed:
            self._delayed[key] = value
        if key.endswith(METADATA):
            value = type(value).from_bytes(add_checksum(self.locations.declare(key, value.to_bytes())))
        if key not in self._delayed:
            await self._with_retries(key, lambda: self._store.set(key, value))
        if _is_chunk(key):
            self.locations.note_file(key, value.as_numpy_array())

    def hold(self, array: str) -> None:
        """Delay writing the metadata of an array until `finish` is called; `array` is its path."""
        self._delayed[f"{array}/{METADATA}"] = None

    async def finish(self, array: str) -> None:
        """Write the metadata of an array with the checksums of its chunks, after all chunks were written.

        Raises
        ------
        DamageError
            If a chunk was not written.
        """
        key = f"{array}/{METADATA}"
        value = self._delayed.pop(key, None) or await self.get(key, default_buffer_prototype())
        if value is None:
            raise DamageError.of(self._locate(key), "is missing")
        finished = type(value).from_bytes(add_checksum(self.locations.finish(key, value.to_bytes())))
        await self._with_retries(key, lambda: self._store.set(key, finished))

    async def delete_dir(self, prefix: str) -> None:
        """Delete all values below a prefix."""
        await self._with_retries(prefix, lambda: self._store.delete_dir(prefix))

    async def delete(self, key: str) -> None:
        """Delete a value."""
        await self._with_retries(key, lambda: self._store.delete(key))


def _min_bytes(part: ByteRequest | None) -> int:
    """Return the least number of bytes of the answer to a request."""
    if isinstance(part, RangeByteRequest):
        return part.end - part.start
    return part.suffix if isinstance(part, SuffixByteRequest) else 0


def _is_chunk(key: str) -> bool:
    """Return whether a key is that of a file of an array's chunks, such as `name/c/0/1`."""
    return "/c/" in f"/{key}"


class RetryingFile(io.RawIOBase):
    """A file to read, each call of which is retried as by `with_retries`.

    Parameters
    ----------
    file
        A file that can be read, and whose position can be set.
    location, timeout
        As in `with_retries`.
    """

    def __init__(self, file: IO[bytes], location: str, timeout: float = TIMEOUT) -> None:
        self._file, self._location, self._timeout, self._position = file, location, timeout, 0
        self._reading = threading.Lock()  # an abandoned read would move the position of the next one

    def readable(self) -> bool:
        """Return True, as the file can be read."""
        return True

    def seekable(self) -> bool:
        """Return True, as the position can be set."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position in bytes, relative to `whence`, and return it from the begin of the file."""
        if whence == io.SEEK_CUR:
            offset += self._position
        elif whence == io.SEEK_END:
            offset += with_retries(self._file.seek, 0, io.SEEK_END, location=self._location, timeout=self._timeout)
        self._position = offset
        return offset

    def readinto(self, buffer: Any) -> int:
        """Read bytes from the position on into a buffer; return their number, 0 at the end of the file."""
        content = with_retries(self._read, self._position, len(buffer), location=self._location, timeout=self._timeout)
        buffer[: len(content)] = content
        self._position += len(content)
        return len(content)

    def _read(self, position: int, size: int) -> bytes:
        """Return up to `size` bytes of the file from a position on."""
        with self._reading:
            if self._file.tell() != position:
                self._file.seek(position)
            return self._file.read(size)

    def close(self) -> None:
        """Close the file, unless a read hangs in it: closing would wait for the read."""
        if not self.closed and self._reading.acquire(blocking=False):
            with suppress(OSError):
                self._file.close()
            self._reading.release()
        super().close()
