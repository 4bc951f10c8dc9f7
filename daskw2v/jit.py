"""The only door to Numba on the CPU: flags and cache policy stand here once.

Kernels release the GIL and are never `parallel=True` (its fallback layer aborts the process when two Dask
threads enter it); threads are explicit, inside a task. Compiled code is cached for each host and version, since
one cache on a shared home is corrupted by workers that compile at the same time.
"""

import hashlib
import os
import platform
import tempfile
from collections.abc import Callable
from typing import Any

import llvmlite.binding
import numba


def _cache_folder() -> str:
    """Return this host's, user's and processor's own cache folder."""
    host = f"{platform.node()}-{llvmlite.binding.get_host_cpu_name()}-{numba.__version__}"
    user = str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    return os.path.join(tempfile.gettempdir(), f"daskw2v-{user}-{hashlib.sha256(host.encode()).hexdigest()[:12]}")


if "NUMBA_CACHE_DIR" not in os.environ:  # read by Numba at each decoration
    numba.config.CACHE_DIR = _cache_folder()

# NaN and infinity keep their meaning (the divergence guard needs them), the rest of fast arithmetic is allowed.
_FAST = {"nsz", "arcp", "contract", "afn", "reassoc"}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile on first call: no GIL, no bounds checks, C's rules for division, cached on disk."""
    return numba.njit(nogil=True, cache=True, boundscheck=False, error_model="numpy", fastmath=_FAST)(function)


def inline(function: Callable[..., Any]) -> Any:
    """Compile as part of the kernels that call it."""
    return numba.njit(nogil=True, inline="always", error_model="numpy", fastmath=_FAST)(function)
