"""Memory for tables that is used again.

The system clears memory before a process gets it, and a virtual machine may have to ask its host for it first: that
takes as long as copying a table, or ten times as long. So memory that a task frees waits a few seconds for the next
task that asks for as much.
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

_IDLE = 5.0  # seconds that memory waits
LEAST = 1 << 18  # bytes; less is not kept
_SIZES = 1 << 16, 2 << 20  # units of memory in bytes: below the size of a huge page, and from it on


class Buffers:
    """Memory that is in use, and memory that waits.

    Parameters
    ----------
    idle
        Seconds that memory waits before it returns to the system.
    create
        Returns new memory of so many bytes, which begins on a cache line.
    is_free
        Returns whether memory that waits may be used again.
    """

    def __init__(
        self,
        idle: float = _IDLE,
        create: Callable[[int], Any] = huge_pages,
        is_free: Callable[[Any], bool] = lambda _: True,
    ) -> None:
        self._idle, self._create, self._is_free = idle, create, is_free
        self._waiting: deque[tuple[float, Any]] = deque()  # since when; ordered by that
        self._used: list[weakref.finalize[Any, Any]] = []
        self._lock = Lock()
        self._thread: Thread | None = None

    def take(self, n: int, dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
        """Return an uninitialized array of n numbers, on whole cache lines, in huge pages where the system has them.

        Once the array and all views of it are gone, its memory waits for the next call.
        """
        wanted = n * np.dtype(dtype).itemsize
        if wanted < LEAST:
            return aligned_empty(n, dtype)
        small, page = _SIZES
        unit = small if wanted < page else page
        size = -(-wanted // unit) * unit
        with self._lock:
            memory = self._find_waiting(size)
            if memory is None:
                memory = self._create(size)
            array = np.frombuffer(memory, dtype, n)
            # No lock there: arrays are freed anywhere, also while this thread holds it
            freed = weakref.finalize(array, self._keep, memory)
            freed.atexit = False
            self._used.append(freed)
            if self._thread is None:
                self._thread = Thread(target=self._trim, name="daskw2v-buffers", daemon=True)
                self._thread.start()
        return array

    def table(self, shape: tuple[int, ...], dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
        """Return an uninitialized table from `take`."""
        return self.take(math.prod(shape), dtype).reshape(shape)

    @property
    def waiting_bytes(self) -> int:
        """Bytes that wait."""
        return sum(len(memory) for _, memory in list(self._waiting))

    def _keep(self, memory: Any) -> None:
        self._waiting.append((time.monotonic(), memory))

    def _find_waiting(self, size: int) -> Any:
        for entry in reversed(list(self._waiting)):  # the memory that was used last is in the cache
            if len(entry[1]) == size and self._is_free(entry[1]):
                self._waiting.remove(entry)
                return entry[1]
        return None

    def _trim(self) -> None:
        """Release memory that waited long enough, until no memory is in use or waits."""
        while True:
            time.sleep(self._idle / 2)
            with self._lock:
                while self._waiting and self._waiting[0][0] < time.monotonic() - self._idle:
                    self._waiting.popleft()
                self._used = [freed for freed in self._used if freed.alive]
                if not self._used and not self._waiting:
                    self._thread = None
                    return


here = Buffers()
