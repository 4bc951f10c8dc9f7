"""Manifests and arrays: whole or not there, and never two writers in one chunk."""

import os
import pickle
import pwd

import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from daskw2v.errors import ParameterError, StoreError
from daskw2v.models.versions.state import read_state
from daskw2v.store import durability
from daskw2v.store.arrays import create_array, open_array, read_array, write_array, write_rows
from daskw2v.store.storage import Store
from daskw2v.store.urls import make_absolute
from tests.support.one_shard import write_shard


@pytest.fixture(params=["local", "memory"])
def store(request, tmp_path):
    return Store(str(tmp_path / "store")) if request.param == "local" else Store(f"memory://{tmp_path.name}")


def test_store__makes_local_paths_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Store("work").url == str(tmp_path / "work")
    assert (Store("s3://bucket/vectors") / "models").url == "s3://bucket/vectors/models"
    assert Store("store/").name == "store"


def test_store__keeps_secrets_out_of_sight():
    store = Store("s3://bucket/work", {"key": "secret"})
    assert "secret" not in repr(store)
    assert (pickle.loads(pickle.dumps(store)) / "x").options == {"key": "secret"}


def test_manifest__is_read_as_written(store):
    assert store.read_manifest() is None
    store.write_manifest({"a": [1, None]})
    assert store.read_manifest() == {"format_version": 1, "a": [1, None]}
    assert store.children() == ["manifest.json"]


def test_manifest__stays_the_old_one_when_a_write_fails(tmp_path, monkeypatch):
    store = Store(str(tmp_path))
    store.write_manifest({"a": 1})

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr(durability, "syncfs", None)
    with pytest.raises(StoreError, match=r"No space is left .* Make room"):
        store.write_manifest({"a": 2})
    assert store.read_manifest() == {"format_version": 1, "a": 1}
    assert store.children() == ["manifest.json"]


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"{", "is not JSON"), (b"[1]", "format_version=None"), (b'{"format_version": 99}', "format_version=99")],
)
def test_manifest__refuses_what_it_cannot_read(tmp_path, content, message):
    store = Store(str(tmp_path))
    store.write_bytes("manifest.json", content)
    with pytest.raises(StoreError, match=message):
        store.read_manifest()


def test_store__removes_and_lists(store):
    (store / "b").write_bytes("x", b"1")
    (store / "a").write_bytes("x", b"1")
    assert store.children() == ["a", "b"]
    (store / "a").remove()
    (store / "absent").remove()
    assert store.children() == ["b"]
    assert (store / "absent").children() == []


@pytest.mark.parametrize("n", [0, 1, 10, 25])
def test_array__is_read_as_written(store, n):
    values = np.arange(n, dtype=np.int32)
    write_array(store.create_group(), "x", values, chunk_rows=10)
    group = store.open_group()
    np.testing.assert_array_equal(read_array(group, "x"), values)
    np.testing.assert_array_equal(read_array(group, "x", 3, 17), values[3:17])


def test_array__refuses_what_is_not_there(store):
    with pytest.raises(StoreError, match="holds no Zarr group"):
        store.open_group()
    store.create_group()
    with pytest.raises(StoreError, match="y is missing"):
        read_array(store.open_group(), "y")


def test_write_rows__only_along_chunks(store):
    array = create_array(store.create_group(), "x", (25, 2), np.float32, chunk_rows=10)
    write_rows(array, 10, np.ones((10, 2), np.float32))
    write_rows(array, 20, np.full((5, 2), 2, np.float32))
    assert np.asarray(array[:])[:, 0].tolist() == [0] * 10 + [1] * 10 + [2] * 5
    for start, rows in ((5, 10), (0, 15), (20, 3)):
        with pytest.raises(StoreError, match="do not lie along its chunks of 10 rows"):
            write_rows(array, start, np.ones((rows, 2), np.float32))


def test_raw__arrays_come_back_by_ranges(store):
    numbers, entries = np.arange(5), np.arange(12, dtype=np.int32).reshape(-1, 2)
    store.write_raw("file", numbers, entries, np.empty((0, 2), np.int32), named=False)
    assert np.frombuffer(store.read_range("file", 8, 24), np.int64).tolist() == [1, 2]
    np.testing.assert_array_equal(np.frombuffer(store.read_range("file", 40, 88), np.int32).reshape(-1, 2), entries)
    assert store.read_range("file", 40, 40) == b""
    for name, start, stop in (("file", 80, 96), ("none", 0, 8)):
        with pytest.raises(StoreError, match=rf"/{name} lacks its bytes {start}\.\.{stop - 1}"):
            store.read_range(name, start, stop)


def test_one_shard__is_one_file_that_can_be_read_in_slices(tmp_path):
    values = np.arange(1000, dtype=np.int32).reshape(-1, 2)
    group = Store(str(tmp_path)).create_group()
    write_shard(group, "values", values, 64, {"edges": [0, 500]})
    array = open_array(Store(str(tmp_path)).open_group(), "values")
    assert len([path for path in (tmp_path / "values" / "c").rglob("*") if path.is_file()]) == 1
    assert array.chunks == (64, 2)
    assert array.attrs["edges"] == [0, 500]
    np.testing.assert_array_equal(array[70:333], values[70:333])


def test_shards__hold_chunks_of_some_columns(tmp_path):
    values = np.arange(70, dtype=np.int32).reshape(10, 7)
    group = Store(str(tmp_path)).create_group()
    array = create_array(group, "values", (10, 7), np.int32, 2, chunk_columns=3, shard_rows=4, fill_value=-2)
    assert (array.chunks, array.shards) == ((2, 3), (4, 9))
    assert (np.asarray(array[:]) == -2).all()
    for start in (8, 0, 4):
        write_rows(array, start, values[start : start + 4])
    np.testing.assert_array_equal(np.asarray(array[:]), values)
    assert len([path for path in (tmp_path / "values" / "c").rglob("*") if path.is_file()]) == 3
    for start, rows in ((2, 4), (0, 2), (4, 5)):
        with pytest.raises(StoreError, match="do not lie along its shards of 4 rows"):
            write_rows(array, start, np.ones((rows, 7), np.int32))


def test_create_manifest__leaves_what_is_there(store):
    store.create_manifest({"a": 1}, "one.json")
    store.create_manifest({"a": 2}, "one.json")
    assert store.read_manifest("one.json")["a"] == 1
    assert store.children() == ["one.json"]


def test_finish_manifest__replaces_what_is_there(store):
    for n in range(2):
        store.finish_manifest({"n": n})
    assert store.read_manifest()["n"] == 1
    assert store.children() == ["manifest.json"]


def test_finish_manifest__gives_up_where_others_write_all_the_time(tmp_path, monkeypatch):
    store, link = Store(str(tmp_path)), os.link

    def crossed(source, target):
        store.write_manifest({"by": "others"})
        link(source, target)

    monkeypatch.setattr(os, "link", crossed)
    with pytest.raises(StoreError, match="written by others"):
        store.finish_manifest({})
    assert store.read_manifest()["by"] == "others"


def test_url__has_no_slash_at_its_end():
    assert Store("memory://a/b/").url == "memory://a/b"
    assert Store("/").url == "/"


def test_remove__does_not_mind_who_else_removes(store, monkeypatch):
    store.write_bytes("a", b"content")
    fs, _ = store._filesystem()
    rm = type(fs).rm

    def twice(self, path, recursive=False):
        rm(self, path, recursive)
        raise FileNotFoundError(path)  # as the second of two is told

    monkeypatch.setattr(type(fs), "rm", twice)
    store.remove()
    assert not store.exists()


def test_read_bytes__reads_no_more_than_the_most(store):
    store.write_bytes("large", bytes(1 << 12))
    store.write_bytes("empty", b"")
    assert store.read_bytes("large", 1 << 12) == bytes(1 << 12)
    assert store.read_bytes("empty") == b""
    assert store.read_bytes("none") is None
    with pytest.raises(StoreError, match=r"large has (more than 4,095|4,096) bytes"):
        store.read_bytes("large", (1 << 12) - 1)


def test_read_bytes__asks_an_object_store_for_no_more_than_the_most(tmp_path, monkeypatch):
    store, asked, read = Store(f"memory://{tmp_path.name}"), [], MemoryFileSystem.cat_file

    def cat_file(fs, path, start=None, end=None):
        asked.append(end)
        return read(fs, path, start, end)

    monkeypatch.setattr(MemoryFileSystem, "cat_file", cat_file)
    store.write_bytes("LATEST", b"v0001-x")
    assert read_state(store).name == "v0001-x"
    assert (1 << 20) + 1 in asked
    asked.clear()
    store.write_manifest({})
    assert store.read_manifest() is not None
    assert asked == [(1 << 28) + 1]


@pytest.mark.parametrize("path", ["~nobody-has-this-name/work", "~nobody-has-this-name"])
def test_make_absolute__refuses_unknown_home_directories(path):
    with pytest.raises(ParameterError, match=r"No home directory is known for '~nobody.*; \./~nobody.* names what is"):
        make_absolute(path)
    assert make_absolute(f"./{path}") == os.path.join(os.getcwd(), path)


def test_make_absolute__refuses_a_missing_home_directory(monkeypatch):
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)  # as in a container, whose user has no entry
    with pytest.raises(ParameterError, match="No home directory is known for '~/work'"):
        make_absolute("~/work")
