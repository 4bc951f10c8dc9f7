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
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
from numba.core import event

from daskw2v import compiling


def _cache_folder() -> str:
    """Return the folder of this host's, processor's and code's own cache, which nobody else can write.

    Numba looks only at a kernel's own file, not at what it inlines from others: so the name holds a digest of all
    of the package. And it unpickles what it finds: so the folder is below the user's own.
    """
    code = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        code.update(path.read_bytes())
    place = f"{platform.node()}-{llvmlite.binding.get_host_cpu_name()}-numba{numba.__version__}"
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(base, "daskw2v", f"{place}-{code.hexdigest()[:12]}")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError:  # no home, or one that cannot be written: compiled anew in each process
        return tempfile.mkdtemp(prefix="daskw2v-")
    return folder


event.register("numba:compile", compiling.here)
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
