"""What is forced to the disk, and when; a power loss itself is simulated elsewhere."""

import errno
import os
import threading

import numpy as np
import pytest

from daskw2v.errors import StoreError
from daskw2v.models.stored.files import open_for_writing
from daskw2v.store import durability
from daskw2v.store.arrays import write_array
from daskw2v.store.lease import hold
from daskw2v.store.partfile import write_parts
from daskw2v.store.storage import Store


@pytest.fixture
def forced(monkeypatch):
    """Paths in the order in which they are forced to the disk; a whole filesystem as the path of a folder and `*`."""
    paths = []
    fsync, syncfs = os.fsync, durability.syncfs

    def noted_fsync(file):
        paths.append(os.readlink(f"/proc/self/fd/{file}"))
        fsync(file)

    def noted_syncfs(file):
        paths.append(f"{os.readlink(f'/proc/self/fd/{file}')}/*")
        return syncfs(file)

    durability.force_files()  # what other tests have written
    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(durability, "syncfs", noted_syncfs)
    return paths


@pytest.fixture
def broken(monkeypatch):
    """A disk on which every sync fails while `broken` is set."""
    broken, fsync = threading.Event(), os.fsync
    durability.force_files()  # what other tests have written
    monkeypatch.setattr(durability, "syncfs", None)

    def failing(file):
        if broken.is_set():
            raise OSError(errno.EIO, "Input/output error")
        fsync(file)

    monkeypatch.setattr(os, "fsync", failing)
    broken.set()
    return broken


def test_manifest__comes_after_arrays_and_folders(tmp_path, forced):
    work = Store(f"{tmp_path}/work")
    write_array((work / "a").create_group(), "x", np.arange(5))
    work.write_manifest({"data": "a"})
    whole, folder = forced
    assert whole.endswith("/*")
    assert folder == f"{tmp_path}/work"  # the manifest's name


def test_manifest__comes_after_each_file_where_the_filesystem_is_not_local(tmp_path, forced, monkeypatch):
    monkeypatch.setattr(durability, "is_local", lambda folder: False)
    work = Store(f"{tmp_path}/runs")
    write_array((work / "a").create_group(), "x", np.arange(50), 1)
    work.write_manifest({"data": "a"})
    files = [f"{tmp_path}/runs/a/{name}" for name in ("zarr.json", "x/zarr.json", *(f"x/c/{n}" for n in range(50)))]
    folders = [f"{tmp_path}/{folder}".rstrip("/") for folder in ("runs/a/x/c", "runs/a/x", "runs/a", "runs", "")]
    assert max(map(forced.index, files)) < min(map(forced.index, folders))
    assert forced[-1] == f"{tmp_path}/runs"


def test_force__knows_the_kind_of_this_filesystem(tmp_path):
    assert durability.is_local(str(tmp_path))
    (tmp_path / "link").symlink_to("/proc")
    for folder in ("/proc", "/proc/sys", f"{tmp_path}/link/sys", f"{tmp_path}/missing"):
        assert not durability.is_local(folder)


def test_durable__forces_what_a_function_wrote(tmp_path, forced):
    @durability.durable()
    def task(name, *, named):
        write_parts(Store(str(tmp_path)), name, [0, 3], np.arange(3), named=named)

    task("temporary", named=False)
    assert not forced
    task("kept", named=True)
    assert forced == [f"{tmp_path}/*"]


def test_lease__does_not_wait_for_data(tmp_path, forced):
    work = Store(str(tmp_path))
    write_array((work / "a").create_group(), "x", np.arange(5))
    with hold(work, "name", "it"):
        assert not any(path.endswith("/*") for path in forced)
    durability.force_files()
    assert forced[-1].endswith("/*")


def test_export__forces_the_file_and_its_name(tmp_path, forced):
    with open_for_writing(f"{tmp_path}/new/vectors.txt") as file:
        file.write(b"0 1\n")
    assert {f"{tmp_path}/new", str(tmp_path)} <= set(forced)
    assert os.path.basename(forced[0]).startswith(".vectors.txt")


def test_force__skips_what_was_deleted_meanwhile(tmp_path, forced):
    work = Store(str(tmp_path))
    for n in (3, 50):
        write_array((work / "a").create_group(), "x", np.arange(n), 1)
        (work / "a").remove()
        durability.force_files()
    assert not [path for path in forced if path.startswith(f"{tmp_path}/a/")]


def test_force__fails_for_all_that_were_at_work_and_for_nobody_later(tmp_path, broken):
    work, begun, failed = Store(str(tmp_path)), threading.Barrier(2), threading.Barrier(2)
    raised = []

    def other_task():
        try:
            with durability.durable():
                write_array((work / "b").create_group(), "x", np.arange(5))
                begun.wait()
                failed.wait()
        except StoreError as error:
            raised.append(error)

    other = threading.Thread(target=other_task)
    other.start()
    begun.wait()
    with pytest.raises(StoreError, match=r"could not be forced to the disk .*Input/output"), durability.durable():
        write_array((work / "a").create_group(), "x", np.arange(5))
    broken.clear()  # a second sync would succeed, though nothing was written
    failed.wait()
    other.join()
    assert len(raised) == 1
    with durability.durable():
        write_array((work / "c").create_group(), "x", np.arange(5))
    with hold(work, "name", "it"):
        work.write_manifest({})


def test_manifest__is_not_written_after_a_failed_sync(tmp_path, broken):
    work = Store(str(tmp_path))
    write_array((work / "a").create_group(), "x", np.arange(5))
    with durability.failure_scope():
        for _ in range(2):
            with pytest.raises(StoreError, match="forced to the disk"):
                work.write_manifest({"data": "a"})
            broken.clear()
            assert work.read_manifest() is None
    assert sorted(work.children()) == ["a"]
