"""Folders of this machine as Zarr stores: links that lead out of them are refused, files of a local disk are mapped.

All processes share the pages of a mapped file. Such a file may be deleted, or replaced by another one. It must not be
cut short, and its disk must not fail: the system ends a process that touches missing pages. So a file is read once when
it is mapped, and a failure of the disk is an error then. Files of a network are not mapped, as another machine may
delete them. Only Linux maps files: `durability.is_local` knows local disks only of Linux.
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

from daskw2v.store.durability import is_local, note_written
from daskw2v.store.limits import MAX_METADATA, check_file, check_links

_POPULATE_READ = 22  # MADV_POPULATE_READ of Linux 5.14, which Python does not name
_FAILED = ctypes.c_void_p(-1).value
if sys.platform == "linux":
    _libc = ctypes.CDLL(None, use_errno=True)
    _libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    _libc.mmap.restype = ctypes.c_void_p
    _libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    _libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class MappedBuffer(cpu.Buffer):
    """A buffer whose prototype asks a `Folder` to map files, if it can."""


MAPPED = BufferPrototype(MappedBuffer, cpu.NDBuffer)


class Folder(LocalStore):
    """A Zarr store in a folder of this machine, which refuses links that lead out of it, and large metadata.

    The disk is accessed in threads only: one that hangs would block the event loop that all stores share.

    Parameters
    ----------
    root, read_only
        As in `LocalStore`.
    depth
        As in `Store`.
    """

    def __init__(self, root: Path | str, *, read_only: bool = False, depth: int = 0) -> None:
        super().__init__(root, read_only=read_only)
        self._depth = depth

    def with_read_only(self, read_only: bool = False) -> "Folder":
        """Return a store of the same folder, read-only or not."""
        return Folder(self.root, read_only=read_only, depth=self._depth)

    async def _open(self, *, mode: object = None) -> None:
        """Open the store without creating its folder."""
        self._is_open = True  # `set` makes the folders

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Return a file's content, or a range of it; None if there is no such file; raises as `check_file` does.

        For a `MappedBuffer` a file without a range is mapped, if it is on a local disk.
        """
        buffer = (prototype or default_buffer_prototype()).buffer
        maps = byte_range is None and issubclass(buffer, MappedBuffer)
        # Checked and read at once: a thread for each would cost more than the check
        content = await asyncio.to_thread(_read, str(self.root), key, byte_range, maps)
        return None if content is None else buffer.from_bytes(content)

    async def set(self, key: str, value: Buffer) -> None:
        """Write a file, and note it to be forced to the disk before a manifest; raises as `check_links` does."""
        await asyncio.to_thread(self._check_links, key)
        await super().set(key, value)
        note_written(str(self.root / key))

    async def delete_dir(self, prefix: str) -> None:
        """Delete a folder, if it exists; raises as `check_links` does."""
        await asyncio.to_thread(self._check_links, prefix)
        await asyncio.to_thread(_delete, self.root / prefix)

    async def delete(self, key: str) -> None:
        """Delete a file, if it exists; raises as `check_links` does."""
        await asyncio.to_thread(self._check_links, key)
        await super().delete(key)

    def _check_links(self, key: str) -> None:
        """Refuse links on the path of a key that is to be changed."""
        check_links(f"{self.root}/{key}", self._depth + key.count("/") + 1)


def _delete(folder: Path) -> None:
    """Delete a folder, if it exists."""
    if folder.is_dir():
        shutil.rmtree(folder)


def _read(folder: str, name: str, part: ByteRequest | None, maps: bool) -> bytes | memoryview | None:
    """Return the content of a file, or a range of its bytes; None if there is no such file.

    With `maps` the file is mapped, if it is on a local disk.
    """
    check_file(folder, name, MAX_METADATA if name.endswith("zarr.json") else None)
    try:
        if maps and is_local(folder):
            return map_file(f"{folder}/{name}")
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


def map_file(path: str) -> memoryview:
    """Map a file into memory, on Linux, and return its content, read-only; raises OSError as reading does.

    Unlike Python's `mmap`, this keeps no file open: a model may have more files than a process may open.
    """
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(file).st_size
        if not size:
            return memoryview(b"")
        address = _libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file, 0)
        if address == _FAILED:
            raise _make_error(path)
    finally:
        os.close(file)
    pages = (ctypes.c_ubyte * size).from_address(address)
    weakref.finalize(pages, _libc.munmap, address, size).atexit = False  # other threads may read until the end
    if _libc.madvise(address, size, _POPULATE_READ) and ctypes.get_errno() != errno.EINVAL:  # unknown to older systems
        raise _make_error(path)
    return memoryview(pages).toreadonly()


def _make_error(path: str) -> OSError:
    """Return the OSError for the last call of the C library, with a path."""
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code), path)
