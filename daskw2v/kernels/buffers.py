"""Reuse of the memory of tables.

The system clears memory before a process gets it, and a virtual machine may have to get it from its host first: that
takes as long as copying a table, or ten times as long. So memory that a task frees is kept for a few seconds, for the
next task that allocates as many bytes.
"""

import math
import time
import weakref
from collections import deque
from collections.abc import Callable
from threading import Lock, Thread
from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.kernels.simd import aligned_empty, huge_pages

_IDLE = 5.0  # seconds for which free memory is kept
MIN_BYTES = 1 << 18  # of an array whose memory is kept
_SIZES = 1 << 16, 2 << 20  # bytes to a multiple of which sizes are rounded: below the size of a huge page, and above


class Buffers:
    """A pool of memory for arrays: memory in use, and free memory that waits for its next use.

    Parameters
    ----------
    idle
        Seconds for which free memory is kept before it is returned to the system.
    create
        Called with a number of bytes; returns new memory of this length that begins on a cache line.
    is_free
        Called with free memory before it is used again; returns whether it may be used.
    """

    def __init__(
        self,
        idle: float = _IDLE,
        create: Callable[[int], Any] = huge_pages,
        is_free: Callable[[Any], bool] = lambda _: True,
    ) -> None:
        self._idle, self._create, self._is_free = idle, create, is_free
        self._waiting: deque[tuple[float, Any]] = deque()  # time at which it was freed, ascending, and the memory
        self._used: list[weakref.finalize[Any, Any]] = []
        self._lock = Lock()
        self._thread: Thread | None = None

    def empty(self, n: int, dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
        """Return an uninitialized array of shape (n,), on its own cache lines.

        An array of at least MIN_BYTES bytes lies in memory of the pool. Once the array and all its views are deleted,
        later calls may use this memory.
        """
        wanted = n * np.dtype(dtype).itemsize
        if wanted < MIN_BYTES:
            return aligned_empty(n, dtype)
        small, page = _SIZES
        unit = small if wanted < page else page
        size = -(-wanted // unit) * unit
        with self._lock:
            memory = self._find_waiting(size)
            if memory is None:
                memory = self._create(size)
            array = np.frombuffer(memory, dtype, n)
            # `_keep` takes no lock: an array may be freed at any time, also while this thread holds the lock
            freed = weakref.finalize(array, self._keep, memory)
            freed.atexit = False
            self._used.append(freed)
            if self._thread is None:
                self._thread = Thread(target=self._trim, name="daskw2v-buffers", daemon=True)
                self._thread.start()
        return array

    def table(self, shape: tuple[int, ...], dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
        """Return an uninitialized array of this shape, with memory as of `empty`."""
        return self.empty(math.prod(shape), dtype).reshape(shape)

    @property
    def waiting_bytes(self) -> int:
        """Bytes of free memory that is kept."""
        return sum(len(memory) for _, memory in list(self._waiting))

    def release(self) -> None:
        """Return free memory to the system at once."""
        with self._lock:
            self._waiting.clear()

    def _keep(self, memory: Any) -> None:
        """Keep memory of a deleted array for later calls."""
        self._waiting.append((time.monotonic(), memory))

    def _find_waiting(self, size: int) -> Any:
        """Return free memory of `size` bytes, which is in use from now on; None if there is none."""
        for entry in reversed(list(self._waiting)):  # the memory that was used last is in the cache
            if len(entry[1]) == size and self._is_free(entry[1]):
                self._waiting.remove(entry)
                return entry[1]
        return None

    def _trim(self) -> None:
        """Return memory that was free for `idle` seconds to the system, until no memory is in use or kept."""
        while True:
            time.sleep(self._idle / 2)
            with self._lock:
                while self._waiting and self._waiting[0][0] < time.monotonic() - self._idle:
                    self._waiting.popleft()
                self._used = [freed for freed in self._used if freed.alive]
                if not self._used and not self._waiting:
                    self._thread = None
                    return


pool = Buffers()
