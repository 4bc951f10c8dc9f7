"""Stores that fail, stall or answer late: asked again, given up in time, and told apart from those that say no."""

import errno
import gc
import io
import os
import threading
import time
import weakref
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import ClassVar

import numpy as np
import pytest
import zarr
from zarr.storage import MemoryStore, WrapperStore

from daskw2v.errors import DamageError, StoreError
from daskw2v.stages import Store
from daskw2v.store import folder
from daskw2v.store.arrays import open_array, read_array, write_array
from daskw2v.store.retries import RetryingFile, RetryingStore, with_retries

pytestmark = pytest.mark.usefixtures("no_pauses")


class Flaky:
    """Raises what it is given, call by call, and then answers."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.calls = 0

    def __call__(self, value):
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return value


PASSING = [OSError("broken pipe"), ConnectionResetError(), TimeoutError(), OSError(errno.EIO, "bad sector"), EOFError()]


@pytest.mark.parametrize("error", PASSING, ids=repr)
def test_steadily__asks_again_what_may_pass(error):
    flaky = Flaky(error, error, error, error)
    assert with_retries(flaky, 42, location="x") == 42
    assert flaky.calls == 5


@pytest.mark.parametrize("error", PASSING, ids=repr)
def test_steadily__gives_up_after_five_tries(error):
    flaky = Flaky(*[error] * 9)
    with pytest.raises(StoreError, match=r"s3://b/x cannot be read or written: 5 tries failed, .*the same command"):
        with_retries(flaky, 42, location="s3://b/x")
    assert flaky.calls == 5


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (FileNotFoundError("x"), FileNotFoundError, "x"),
        (ValueError("x"), ValueError, "x"),
        (PermissionError(errno.EACCES, "denied"), StoreError, r"cannot be read or written \(PermissionError.*rights"),
        (OSError(errno.ENOSPC, "full"), StoreError, r"No space is left .*Make room"),
        (OSError(errno.EDQUOT, "quota"), StoreError, r"No space is left"),
        (OSError(errno.EROFS, "read-only"), StoreError, r"cannot be read or written"),
        (DamageError.of("x", "is damaged"), DamageError, r"x is damaged"),
    ],
)
def test_steadily__asks_once_where_the_answer_is_clear(error, kind, message):
    flaky = Flaky(error)
    with pytest.raises(kind, match=message):
        with_retries(flaky, 42, location="x")
    assert flaky.calls == 1


class Held:
    """What a caller's frame refers to."""


@pytest.mark.parametrize("error", [FileNotFoundError("gone"), OSError(errno.ENOSPC, "full")])
def test_steadily__leaves_nothing_of_the_caller_in_a_cycle(error):
    def call():
        held = Held()
        with suppress(FileNotFoundError, StoreError):
            with_retries(Flaky(type(error)(*error.args)), held, location="x")
        return weakref.ref(held)

    gc.disable()
    try:
        assert call()() is None
    finally:
        gc.enable()


def test_steadily__leaves_behind_what_hangs():
    never = threading.Event()
    with pytest.raises(StoreError, match=r"TimeoutError: no answer for 0\.01 s"):
        with_retries(never.wait, location="x", timeout=0.01)
    never.set()


class FlakyStore(MemoryStore):
    """Fails the first two times that a key is read, and that it is written."""

    asked: ClassVar = Counter()

    def fail(self, call, error):
        self.asked[call] += 1
        if self.asked[call] <= 2:
            raise error

    async def get(self, key, prototype, byte_range=None):
        self.fail(("get", key), ConnectionResetError("try again"))
        return await super().get(key, prototype, byte_range)

    async def set(self, key, value, byte_range=None):
        self.fail(("set", key), TimeoutError())
        await super().set(key, value, byte_range)


def test_zarr__goes_through_a_store_that_fails_now_and_then(monkeypatch):
    monkeypatch.setattr(FlakyStore, "asked", Counter())
    flaky = FlakyStore()
    write_array(zarr.create_group(RetryingStore(flaky, "x"), zarr_format=3), "values", np.arange(1000), 100)
    group = zarr.open_group(RetryingStore(flaky, "x", complete=True), mode="r", zarr_format=3)
    np.testing.assert_array_equal(open_array(group, "values")[:], np.arange(1000))
    assert {("get", "values/c/9"), ("set", "values/c/0")} <= set(flaky.asked)
    assert min(flaky.asked.values()) >= 3


class GoneStore(MemoryStore):
    async def delete_dir(self, prefix):
        raise ConnectionRefusedError("no server")

    async def get(self, key, prototype, byte_range=None):
        raise ConnectionRefusedError("no server")


@pytest.mark.parametrize("ask", [zarr.open_group, zarr.create_group])
def test_zarr__tells_of_a_store_that_is_gone(ask):
    with pytest.raises(StoreError, match=r"s3://b/x/zarr\.json cannot be read or written: 5 tries .*no server"):
        ask(RetryingStore(GoneStore(), "s3://b/x"), zarr_format=3)


class HalfFile(io.BytesIO):
    """Breaks off now and then."""

    def __init__(self, content):
        super().__init__(content)
        self.reads = 0

    def read(self, size=-1):
        self.reads += 1
        if self.reads % 3 == 0:
            super().read(size // 2)
            raise ConnectionResetError
        return super().read(size)


def test_file__is_read_on_where_it_broke_off():
    content = np.random.default_rng(0).bytes(100_000)
    file = io.BufferedReader(RetryingFile(HalfFile(content), "x"), 1000)
    assert file.read(10) == content[:10]
    file.seek(-70_000, io.SEEK_END)
    assert file.read() == content[-70_000:]
    file.seek(5)
    file.seek(7, io.SEEK_CUR)
    assert (file.tell(), file.read(30_000)) == (12, content[12:30_012])


class SlowFile(io.BytesIO):
    """Answers its first question late."""

    asked = 0

    def read(self, size=-1):
        SlowFile.asked += 1
        if SlowFile.asked == 1:
            time.sleep(0.15)
        return super().read(size)


def test_file__is_not_moved_by_a_read_that_was_left_behind():
    content = np.random.default_rng(0).bytes(10_000)
    file = io.BufferedReader(RetryingFile(SlowFile(content), "x", 0.1), 1000)
    assert file.read() == content


class HangingFile(io.BytesIO):
    def __init__(self, until):
        super().__init__()
        self.until = until

    def read(self, size=-1):
        self.until.wait()
        return b""


def test_file__that_hangs_is_not_waited_for_when_it_is_closed():
    until = threading.Event()
    with (
        pytest.raises(StoreError, match="no answer"),
        io.BufferedReader(RetryingFile(HangingFile(until), "x", 0.01)) as f,
    ):
        f.read(1)
    until.set()


def test_folder__that_hangs_in_one_file_lets_others_be_read(tmp_path, monkeypatch):
    store, over = Store(str(tmp_path)), threading.Event()
    group = store.create_group()
    for name in ("hanging", "well"):
        write_array(group, name, np.arange(3))
    hanging, well = (open_array(store.open_group(), name) for name in ("hanging", "well"))
    check, asked = folder.check_file, threading.Event()

    def hang(folder, name, most=None):
        if name.startswith("hanging/c/"):
            asked.set()
            over.wait()
        check(folder, name, most)

    monkeypatch.setattr(folder, "check_file", hang)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(hanging.__getitem__, ...)
        asked.wait()
        second = pool.submit(well.__getitem__, ...)
        try:
            assert second.result(20).tolist() == [0, 1, 2]
            assert not first.done()
        finally:
            over.set()
        assert first.result().tolist() == [0, 1, 2]


def test_folder__is_asked_in_threads_only(tmp_path, monkeypatch):
    """Zarr's loop must not wait for a disk that hangs."""
    asked = []

    def note(function):
        def noted(*args, **options):
            asked.append(threading.current_thread().name)
            return function(*args, **options)

        return noted

    for module, names in ((os, ("stat", "lstat", "mkdir", "unlink", "rmdir", "replace")), (io, ("open",))):
        for name in names:
            monkeypatch.setattr(module, name, note(getattr(module, name)))
    for _ in range(2):  # the second replaces the first
        write_array(Store(str(tmp_path / "a" / "b")).create_group(), "values", np.arange(9), 3)
    assert read_array(Store(str(tmp_path / "a" / "b")).open_group(), "values").tolist() == list(range(9))
    assert len(asked) > 20
    assert "zarr_io" not in asked


def test_store__checks_whatever_zarr_reads_and_writes():
    """Zarr's own class passes calls on to the store below; newer ones have more of them."""
    calls = {name for name in vars(WrapperStore) if name.startswith(("get", "set", "delete", "_get", "_set"))}
    assert calls - vars(RetryingStore).keys() <= {"get_sync", "set_sync", "delete_sync"}
    assert not RetryingStore(MemoryStore(), "memory://")._supports_sync_io
