"""Decorators that compile functions with Numba on the CPU, with the same flags and cache for all kernels.

Kernels release the GIL and are never `parallel=True` (its fallback layer aborts the process when two Dask
threads enter it); threads are explicit, inside a task.
"""

from collections.abc import Callable
from typing import Any

import numba
from numba.core import event

from daskw2v.kernels import compilation
from daskw2v.kernels.cache import KernelCache

event.register("numba:compile", compilation.here)

# NaN and infinity keep their meaning (the divergence guard needs them), the rest of fast arithmetic is allowed.
FAST = ("nsz", "arcp", "contract", "afn", "reassoc")


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function on its first call: no GIL, no bounds checks, C's rules for division, cached on disk."""
    compiled = numba.njit(nogil=True, boundscheck=False, error_model="numpy", fastmath=set(FAST))(function)
    if not numba.config.DISABLE_JIT:
        compiled._cache = KernelCache(function)
    return compiled


def exact(function: Callable[..., Any]) -> Any:
    """Compile a function like `kernel`, but without fast arithmetic: its bits are the same in every kernel."""
    compiled = numba.njit(nogil=True, boundscheck=False, error_model="numpy")(function)
    if not numba.config.DISABLE_JIT:
        compiled._cache = KernelCache(function)
    return compiled


def inline(function: Callable[..., Any]) -> Any:
    """Compile a function as part of the kernels that call it."""
    return numba.njit(nogil=True, inline="always", error_model="numpy", fastmath=set(FAST))(function)
