"""Retries: calls of a store that may be slow, fail or be gone for a while, each with a timeout.

Stores are other people's machines. A failure that may pass is retried several times; one that does not pass (no
permission, no space) is raised at once; and no call waits for ever for an answer.
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
from daskw2v.store.checksums import METADATA, Places, verify_metadata, with_checksum
from daskw2v.store.durability import FULL, is_local
from daskw2v.store.folder import Folder
from daskw2v.store.zarr_schema import check_metadata

T = TypeVar("T")
TIMEOUT = 300.0  # seconds that an answer is waited for
PAUSES = (0.1, 0.5, 2.0, 5.0)  # seconds, about: between one try and the next
_Answers = queue.SimpleQueue[tuple[Any, BaseException | None]]
_callers = threading.local()  # to each thread its own
_FINAL = FULL | {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP}
_ANSWERS = FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, FileExistsError
_MISTAKES = ValueError, TypeError, LookupError, AttributeError, NotImplementedError, ImportError
_SAME = Daskw2vError, *_ANSWERS, *_MISTAKES  # another call would raise the same


def may_pass(error: BaseException) -> bool:
    """Return whether the same call may have another result."""
    if isinstance(error, OSError) and error.errno in _FINAL:
        return False
    return isinstance(error, Exception) and not isinstance(error, _SAME)


def give_up(error: Exception, place: str) -> NoReturn:
    """Raise a StoreError that explains the last error of a store at a place; the error itself where it is an answer."""
    explained = _explained(error, place)
    try:
        if explained is None:
            raise error
        raise explained from error
    finally:
        del error, explained  # or error and frame form a cycle, which keeps the callers' futures


def _explained(error: Exception, place: str) -> StoreError | None:
    code = error.errno if isinstance(error, OSError) else None
    said = f"{type(error).__name__}: {error}".removesuffix(": ")
    if code in FULL:
        return StoreError.no_space(place)
    if isinstance(error, PermissionError) or code in _FINAL:
        return StoreError(f"{place} cannot be read or written ({said}).", "Give the rights, or another URL.")
    if may_pass(error):
        tried = f"{place} cannot be read or written: {len(PAUSES) + 1} tries failed, the last by {said}."
        return StoreError(tried, "Look after the store; the same command goes on.")
    return None


def _pauses() -> Iterator[float | None]:
    """Yield the seconds to wait after each try that fails, and None after the last try."""
    for pause in PAUSES:
        yield pause * random.uniform(0.7, 1.3)  # many workers shall not ask at the same moment
    yield None


def with_retries(
    function: Callable[..., T],
    *args: Any,
    place: str,
    timeout: float = TIMEOUT,
    before: Callable[[], None] = lambda: None,
) -> T:
    """Call `function(*args)` until it answers.

    Parameters
    ----------
    function
        A function that may be called again.
    place
        URL or name of what it reads or writes, for messages.
    timeout
        Seconds to wait for each answer.
    before
        Called before each try, and after the last failure, in this thread; its errors end the tries.

    Raises
    ------
    StoreError
        If all tries failed or timed out, or the store refuses the call.
    Exception
        The function's own error where that is an answer, such as FileNotFoundError.
    """
    for pause in _pauses():
        before()
        try:
            return in_time(function, args, timeout)
        except Exception as error:
            if pause is None or not may_pass(error):
                before()  # a file that another process deleted meanwhile is missing
                give_up(error, place)
            time.sleep(pause)
    raise AssertionError


def in_time(function: Callable[..., T], args: tuple[Any, ...], timeout: float) -> T:
    """Call a function in another thread, in this one's context: a call that hangs in the system can only be abandoned.

    Raises
    ------
    TimeoutError
        If no answer came in `timeout` seconds.
    Exception
        The function's own error.
    """
    caller = getattr(_callers, "caller", None)
    if caller is None or caller.process != os.getpid():  # a fork copies no threads
        caller = _Caller()
    _callers.caller = None  # unless it answers: a thread that is left behind is not asked again
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
        del failure  # as in `give_up`


class _Caller:
    """A thread that makes calls for another one; starting a thread for each call would take ten times as long."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.calls = queue.SimpleQueue[tuple[_Answers, Callable[[], Any]] | None]()
        threading.Thread(target=_make_calls, args=(self.calls,), daemon=True).start()

    def __del__(self) -> None:
        self.calls.put(None)  # the thread ends with the one that it calls for


def _make_calls(calls: queue.SimpleQueue[tuple[_Answers, Callable[[], Any]] | None]) -> None:
    while (call := calls.get()) is not None:
        answers, function = call
        try:
            answers.put((function(), None))
        except BaseException as error:
            answers.put((None, error))
        del call, answers, function  # not kept while the thread waits


class RetryingStore(WrapperStore[ZarrStore]):
    """A Zarr store that retries each call, as `with_retries` does, and keeps a checksum in metadata.

    Parameters
    ----------
    store
        The store.
    url
        Where it lies, for messages.
    timeout
        As of `with_retries`.
    complete
        Whether all chunks have been written: a missing one is damage then, where Zarr would make one up.
    attempt
        As of `Places`.
    """

    def __init__(
        self, store: ZarrStore, url: str, timeout: float = TIMEOUT, *, complete: bool = False, attempt: str = ""
    ) -> None:
        super().__init__(store)
        self._url, self._timeout, self._complete = url, timeout, complete
        self.places = Places(url, attempt)
        self._held = dict[str, Buffer | None]()

    def _with_store(self, store: ZarrStore) -> "RetryingStore":
        other = RetryingStore(store, self._url, self._timeout, complete=self._complete)
        other.places = self.places
        return other

    def __str__(self) -> str:
        return self._url

    @property
    def is_local(self) -> bool:
        """Whether the store's files are on a disk of this machine, where they can be mapped."""
        return isinstance(self._store, Folder) and is_local(str(self._store.root))

    async def _with_retries(self, key: str, ask: Callable[[], Awaitable[T]]) -> T:
        for pause in _pauses():
            try:
                async with asyncio.timeout(self._timeout):
                    return await ask()
            except Exception as error:
                if pause is None or not may_pass(error):
                    give_up(error, self._place(key))
                await asyncio.sleep(pause)
        raise AssertionError

    def _place(self, key: str) -> str:
        return f"{self._url}/{key}"

    async def get(self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        """Return a value; None where there is none, and none was promised."""
        if not key.endswith(METADATA):  # chunks are asked for again where their checksums are verified
            return await self._get(key, prototype, byte_range)
        with suppress(DamageError):  # half an answer, or an old one, may come
            value = await self._get(key, prototype, byte_range)
            if value is not None or not self._complete:
                return value
        return await self._get(key, prototype, byte_range)

    async def _get(self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None) -> Buffer | None:
        value = await self._with_retries(key, lambda: self._store.get(key, prototype, byte_range))
        if self._complete and _is_chunk(key):
            if value is None:
                raise DamageError.of(self._place(key), "is missing")
            if len(value) < max(1, _least(byte_range)):  # Zarr would make up the rest
                raise DamageError.of(self._place(key), "is cut short")
        if value is not None and key.endswith(METADATA):
            values = verify_metadata(value.to_bytes(), self._place(key))  # first: damaged files can be made again
            check_metadata(values, self._place(key))
            self.places.read(key, values)
        elif value is not None and _is_chunk(key):
            self.places.check(key, value.as_numpy_array(), byte_range)
        return value

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Return several values."""
        return list(await asyncio.gather(*(self.get(key, prototype, part) for key, part in key_ranges)))

    async def get_ranges(
        self, key: str, byte_ranges: Sequence[ByteRequest | None], *, prototype: BufferPrototype, **_: Any
    ) -> AsyncIterator[Sequence[tuple[int, Buffer | None]]]:
        """Yield parts of a value, each asked for alone: a chunk's place is checked by its own bytes. For Zarr 3.2."""
        yield list(enumerate(await self.get_partial_values(prototype, [(key, part) for part in byte_ranges])))

    # Through `get` and `set`: WrapperStore would pass these calls on to the store below
    _get_many, _set_many, set_if_not_exists = ZarrStore._get_many, ZarrStore._set_many, ZarrStore.set_if_not_exists

    @property
    def _supports_sync_io(self) -> bool:
        return False  # Zarr 3.2 would read and write below this store, without its checks

    async def exists(self, key: str) -> bool:
        """Return whether there is a value."""
        return await self._with_retries(key, lambda: self._store.exists(key))

    async def set(self, key: str, value: Buffer) -> None:
        """Write a value."""
        if key in self._held:
            self._held[key] = value
        if key.endswith(METADATA):
            value = type(value).from_bytes(with_checksum(self.places.declare(key, value.to_bytes())))
        if key not in self._held:
            await self._with_retries(key, lambda: self._store.set(key, value))
        if _is_chunk(key):
            self.places.wrote(key, value.as_numpy_array())

    def hold(self, array: str) -> None:
        """Write the metadata of an array only when `finish` is called."""
        self._held[f"{array}/{METADATA}"] = None

    async def finish(self, array: str) -> None:
        """Write the metadata of an array with the checksums of its chunks, all of which are written.

        Raises
        ------
        DamageError
            If a chunk was not written.
        """
        key = f"{array}/{METADATA}"
        value = self._held.pop(key, None) or await self.get(key, default_buffer_prototype())
        if value is None:
            raise DamageError.of(self._place(key), "is missing")
        finished = type(value).from_bytes(with_checksum(self.places.finish(key, value.to_bytes())))
        await self._with_retries(key, lambda: self._store.set(key, finished))

    async def delete_dir(self, prefix: str) -> None:
        """Delete all values below a prefix."""
        await self._with_retries(prefix, lambda: self._store.delete_dir(prefix))

    async def delete(self, key: str) -> None:
        """Delete a value."""
        await self._with_retries(key, lambda: self._store.delete(key))


def _least(part: ByteRequest | None) -> int:
    """Return the number of bytes that a request needs at least."""
    if isinstance(part, RangeByteRequest):
        return part.end - part.start
    return part.suffix if isinstance(part, SuffixByteRequest) else 0


def _is_chunk(key: str) -> bool:
    """Return whether an array's content lies there: `name/c/0/1`."""
    return "/c/" in f"/{key}"


class RetryingFile(io.RawIOBase):
    """A file to read, with the retries of `with_retries`.

    Parameters
    ----------
    file
        A file that can be read and sought in.
    place, timeout
        As of `with_retries`.
    """

    def __init__(self, file: IO[bytes], place: str, timeout: float = TIMEOUT) -> None:
        self._file, self._place, self._timeout, self._position = file, place, timeout, 0
        self._reading = threading.Lock()  # a read that was left behind would move the file under the next one

    def readable(self) -> bool:
        """Return True: it can be read."""
        return True

    def seekable(self) -> bool:
        """Return True: it can be sought in."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position, and return it."""
        if whence == io.SEEK_CUR:
            offset += self._position
        elif whence == io.SEEK_END:
            offset += with_retries(self._file.seek, 0, io.SEEK_END, place=self._place, timeout=self._timeout)
        self._position = offset
        return offset

    def readinto(self, buffer: Any) -> int:
        """Read as many bytes as there are, and the buffer takes."""
        content = with_retries(self._read, self._position, len(buffer), place=self._place, timeout=self._timeout)
        buffer[: len(content)] = content
        self._position += len(content)
        return len(content)

    def _read(self, position: int, size: int) -> bytes:
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
