"""Arrays in the pieces of their files: mapped where that can be done, and never what is damaged."""

import ctypes
import errno
import itertools
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import zarr
from zarr.codecs import Crc32cCodec

from daskw2v.errors import DamageError, StoreError
from daskw2v.store import folder
from daskw2v.store.arrays import StoredArray, create_array, open_array
from daskw2v.store.storage import Store

VALUES = np.random.default_rng(0).standard_normal((10, 3)).astype(np.float32)


def write(store):
    """Write an array whose last file goes beyond its end; return it, opened."""
    group: zarr.Group = store.create_group()
    array = group.create_array("v", shape=(10, 3), chunks=(4, 3), dtype=np.float32, compressors=[Crc32cCodec()])
    stored = StoredArray(array, f"{store.url}/v")
    stored[...] = VALUES
    stored.finish()
    return open_array(store.open_group(), "v")


def is_mapped(path):
    return f"{path}/v/c/0/0" in Path("/proc/self/maps").read_text()


def same(pieces, shape=(4, 3)):
    assert [piece.shape for piece in pieces] == [shape] * 3
    np.testing.assert_array_equal(np.concatenate(pieces)[:10], VALUES)


@pytest.mark.parametrize("local", [True, False])
def test_pieces__are_mapped_from_local_disks_alone(tmp_path, monkeypatch, local):
    monkeypatch.setattr(folder, "is_local", lambda folder: local)
    array = write(Store(str(tmp_path)))
    files = len(os.listdir("/proc/self/fd"))
    pieces = array.pieces()
    assert is_mapped(tmp_path) == local
    assert len(os.listdir("/proc/self/fd")) == files, "no file stays open"
    same(pieces)
    with pytest.raises(ValueError, match="read-only"):
        pieces[0][0] = 0
    shutil.rmtree(tmp_path)
    same(pieces)
    del pieces
    assert not is_mapped(tmp_path)


def test_pieces__of_other_stores_and_codecs_are_read(tmp_path):
    same(write(Store("memory://test_pieces")).pieces())
    array = create_array(Store(str(tmp_path)).create_group(), "v", (10, 3), np.float32, 4)
    array[...] = VALUES
    same(array.pieces())
    array = create_array(Store(str(tmp_path)).create_group(), "v", (10, 3), np.float32, 2, shard_rows=4)
    array[...] = VALUES
    same(array.pieces())


def spoil(file, how):
    content = bytearray(file.read_bytes())
    file.unlink()  # written anew, as what is mapped must not change
    if how != "missing":
        content[9] ^= how == "flipped"
        file.write_bytes(content[: {"flipped": None, "short": -7, "empty": 0}[how]])


@pytest.mark.parametrize("how", ["flipped", "short", "empty", "missing", "swapped"])
def test_pieces__tell_damage_as_reading_does(tmp_path, how):
    array, file = write(Store(str(tmp_path))), tmp_path / "v/c/1/0"
    if how == "swapped":
        file.write_bytes((tmp_path / "v/c/0/0").read_bytes())
    else:
        spoil(file, how)
    with pytest.raises(DamageError) as read:
        array[...]
    with pytest.raises(DamageError) as mapped:
        array.pieces()
    assert str(mapped.value) == str(read.value)
    assert mapped.value.url == str(file)


def test_pieces__are_read_once_more_before_they_are_called_damaged(tmp_path, monkeypatch):
    array, asked, numbers = write(Store(str(tmp_path))), [], itertools.count()
    mapped = folder.map_file

    def half(path):  # several threads may call it at once
        asked.append(path)
        content = mapped(path)
        return content[:20] if next(numbers) == 0 else content

    monkeypatch.setattr(folder, "map_file", half)
    same(array.pieces())
    assert len(asked) == 6


@pytest.mark.parametrize("code", [errno.EFAULT, errno.EINVAL])
def test_pieces__tell_that_the_disk_fails_where_touching_them_would_end_the_process(
    tmp_path, no_pauses, monkeypatch, code
):
    def fail(*_):
        ctypes.set_errno(code)
        return -1

    array = write(Store(str(tmp_path)))
    monkeypatch.setattr(folder._libc, "madvise", fail)
    if code == errno.EINVAL:  # older systems do not know the advice
        same(array.pieces())
    else:
        with pytest.raises(StoreError, match="tries failed, the last by OSError"):
            array.pieces()
