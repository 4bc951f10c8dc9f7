"""Folders of this machine as Zarr stores: from them no link leads out, and files of a local disk are mapped.

Pages of a mapped file are the system's, and all processes share them. Such a file may be deleted, or replaced by
another one. It must not be cut short, and its disk must not fail: the system ends a process that touches missing pages.
Files are read once when they are mapped, so failures of the disk are errors then. Files of a network are not mapped, as
another machine may delete them. Only Linux maps: elsewhere files are read, as `durability.is_local` knows no local disk
there.
"""

import asyncio
import ctypes
import errno
import mmap
import os
import shutil
import sys
import weakref
from pathlib import Path

from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype, cpu, default_buffer_prototype
from zarr.storage import LocalStore

from daskw2v.store.durability import is_local, wrote
from daskw2v.store.limits import MOST_METADATA, check_file, check_way

_POPULATE_READ = 22  # MADV_POPULATE_READ of Linux 5.14, which Python does not name
_FAILED = ctypes.c_void_p(-1).value
if sys.platform == "linux":
    _libc = ctypes.CDLL(None, use_errno=True)
    _libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    _libc.mmap.restype = ctypes.c_void_p
    _libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    _libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class MappedBuffer(cpu.Buffer):
    """A buffer that asks a Zarr store to map files, if it can."""


MAPPED = BufferPrototype(MappedBuffer, cpu.NDBuffer)


class Folder(LocalStore):
    """A Zarr store in a folder of this machine, from which no link leads out, and whose metadata are small.

    The disk is asked in threads only: one that hangs would stop the loop that all stores share.

    Parameters
    ----------
    root, read_only
        As of `LocalStore`.
    depth
        As of `Store`.
    """

    def __init__(self, root: Path | str, *, read_only: bool = False, depth: int = 0) -> None:
        super().__init__(root, read_only=read_only)
        self._depth = depth

    def with_read_only(self, read_only: bool = False) -> "Folder":
        """Return a store in this folder, to read only or not."""
        return Folder(self.root, read_only=read_only, depth=self._depth)

    async def _open(self, *, mode: object = None) -> None:
        self._is_open = True  # where something is written, folders are made

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Return a file's content, or None where there is none; raises as `check_file` does.

        A whole file is mapped for a `MappedBuffer`, if it is on a local disk.
        """
        buffer = (prototype or default_buffer_prototype()).buffer
        maps = byte_range is None and issubclass(buffer, MappedBuffer)
        # Checked and read at once: a thread for each would cost more than the check
        content = await asyncio.to_thread(_read, str(self.root), key, byte_range, maps)
        return None if content is None else buffer.from_bytes(content)

    async def set(self, key: str, value: Buffer) -> None:
        """Write a file, which is forced to the disk before a manifest names it; raises as `check_way` does."""
        await asyncio.to_thread(self._check_way, key)
        await super().set(key, value)
        wrote(str(self.root / key))

    async def delete_dir(self, prefix: str) -> None:
        """Delete a folder, if it is there; raises as `check_way` does."""
        await asyncio.to_thread(self._check_way, prefix)
        await asyncio.to_thread(_delete, self.root / prefix)

    async def delete(self, key: str) -> None:
        """Delete a file, if it is there; raises as `check_way` does."""
        await asyncio.to_thread(self._check_way, key)
        await super().delete(key)

    def _check_way(self, key: str) -> None:
        check_way(f"{self.root}/{key}", self._depth + key.count("/") + 1)


def _delete(folder: Path) -> None:
    if folder.is_dir():
        shutil.rmtree(folder)


def _read(folder: str, name: str, part: ByteRequest | None, maps: bool) -> bytes | memoryview | None:
    """Return a file's content, or a part of it; None where there is no file."""
    check_file(folder, name, MOST_METADATA if name.endswith("zarr.json") else None)
    try:
        if maps and is_local(folder):
            return mapped(f"{folder}/{name}")
        with open(f"{folder}/{name}", "rb") as file:
            match part:
                case RangeByteRequest(start, end):
                    file.seek(start)
                    return file.read(end - start)
                case OffsetByteRequest(offset):
                    file.seek(offset)
                case SuffixByteRequest(suffix):
                    file.seek(max(0, file.seek(0, os.SEEK_END) - suffix))
            return file.read()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None


def mapped(path: str) -> memoryview:
    """Return a file's content, read-only; raises OSError as reading does.

    Unlike Python's `mmap`, it keeps no file open: a model may have more files than a process may open.
    """
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(file).st_size
        if not size:
            return memoryview(b"")
        address = _libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file, 0)
        if address == _FAILED:
            raise _failure(path)
    finally:
        os.close(file)
    pages = (ctypes.c_ubyte * size).from_address(address)
    weakref.finalize(pages, _libc.munmap, address, size).atexit = False  # other threads may read until the end
    if _libc.madvise(address, size, _POPULATE_READ) and ctypes.get_errno() != errno.EINVAL:  # unknown to older systems
        raise _failure(path)
    return memoryview(pages).toreadonly()


def _failure(path: str) -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code), path)
