"""The heap of a process that works on large arrays: what is freed goes back to the system.

By default glibc takes memory of up to 32 MB from heaps, one for each of eight threads a core, and keeps what is freed
there. A worker in this process then holds a third more than it uses. Dask gives its worker processes such bounds, too.
"""

import ctypes
import os
import sys
from typing import Any

_ARENA_MAX, _MMAP_THRESHOLD = -8, -3  # of mallopt
_ARENAS = 2  # heaps of all threads
_MAPPED = 4 << 20  # bytes from which an array has pages of its own, which are unmapped when it is freed


def bound_heap() -> None:
    """Let large arrays have memory of their own, and threads share heaps; what MALLOC_* variables say goes first."""
    if any(name.startswith("MALLOC_") for name in os.environ):
        return
    for parameter, value in ((_ARENA_MAX, _ARENAS), (_MMAP_THRESHOLD, _MAPPED)):
        _glibc("mallopt", parameter, value)


def trim_heap() -> None:
    """Give back to the system what is free: after a stage whose memory the next one cannot use."""
    _glibc("malloc_trim", 0)


def _glibc(name: str, *arguments: int) -> Any:
    """Call a function of glibc, where it is this process' C library."""
    function = getattr(ctypes.CDLL(None) if sys.platform == "linux" else None, name, None)
    return None if function is None else function(*arguments)
