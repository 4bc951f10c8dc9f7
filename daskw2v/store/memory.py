"""How much memory this process may still take."""

import sys
from contextlib import suppress
from pathlib import Path

import psutil

if sys.platform != "win32":
    import resource

# Limits of containers, of both versions of cgroups, which Dask gives to its workers, too
_LIMITS = (
    "memory/memory.limit_in_bytes", "memory/memory.soft_limit_in_bytes", "memory.max", "memory.high", "memory.low",
)  # fmt: skip


def free_memory() -> int:
    """Return the bytes that are available; no more than the system or a container allows to this process."""
    return min(int(psutil.virtual_memory().available), memory_limit())


def memory_limit(cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the bytes that the system, or the container with these `cgroups`, allows to this process."""
    limits = [int(psutil.virtual_memory().total)]
    if sys.platform != "win32":
        limits.append(resource.getrlimit(resource.RLIMIT_RSS)[1])
    for name in _LIMITS:
        with suppress(OSError, ValueError):  # not there, or "max"
            limits.append(int((cgroups / name).read_text()))
    return min(limit for limit in limits if limit > 0)
