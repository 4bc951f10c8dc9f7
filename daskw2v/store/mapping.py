"""Files of a local disk as memory: their pages are the system's, and all processes share them.

A file that is mapped may be deleted, or replaced by another one. It must not be cut short, and its disk must not fail:
the system ends a process that touches what is gone. Files are read once when they are mapped, so failures of the disk
are errors then. Those of a network are not mapped, as another machine may delete them. Only Linux maps: elsewhere files
are read, as `durability.is_local` knows no local disk there.
"""

import ctypes
import errno
import mmap
import os
import sys
import weakref

from zarr.core.buffer import BufferPrototype
from zarr.core.buffer.cpu import Buffer, NDBuffer

_POPULATE_READ = 22  # MADV_POPULATE_READ of Linux 5.14, which Python does not name
_FAILED = ctypes.c_void_p(-1).value
if sys.platform == "linux":
    _libc = ctypes.CDLL(None, use_errno=True)
    _libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    _libc.mmap.restype = ctypes.c_void_p
    _libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    _libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class MappedBuffer(Buffer):
    """What a Zarr store is asked for where it should map files, if it can."""


MAPPED = BufferPrototype(MappedBuffer, NDBuffer)


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
