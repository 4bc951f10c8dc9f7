"""The folders of compiled kernels: one for each target, version of Numba, and version of the kernels' sources.

Numba names a kernel's file by the path at which its module is installed, and checks the source of that module alone,
not of functions inlined from other modules. Here a kernel is named by its module, below a folder that is named by a
digest of all sources of kernels. So a change elsewhere in the package keeps compiled kernels, and a cache that is
filled when an image is built serves every host with the same processor.

Several processes may compile the same kernel: each writes another file, and the last one that writes the index decides
which file is read. (Numba counts files; two processes that compile for different types would use one name.)
"""

import hashlib
import inspect
import os
import re
import tempfile
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import llvmlite.binding
import numba
from numba.core import caching
from numba.core.runtime import rtsys

_PACKAGE = Path(__file__).parents[1]
_FOLDERS = "kernels", "objectives", "types.py"  # all of their modules; elsewhere those with an import of kernels
_IMPORT = re.compile(rb"^from daskw2v\.kernels(\.(jit|simd|rng|alias|bytes|cuda\.warp))? import", re.MULTILINE)
_TEMPORARY = "daskw2v-"  # begin of the name of a folder of one process


def kernel_sources() -> Iterator[Path]:
    """Yield the source files that kernels are compiled from, sorted."""
    for path in sorted(_PACKAGE.rglob("*.py")):
        if path.relative_to(_PACKAGE).parts[0] in _FOLDERS or _IMPORT.search(path.read_bytes()):
            yield path


@cache
def cache_folder(target: str = "") -> str:
    """Return the folder of compiled kernels for this code, this version of Numba and a target; create it if missing.

    The folder is in NUMBA_CACHE_DIR, or else in the user's cache folder, since its files are unpickled. Where it cannot
    be written, a temporary folder of this process is returned.

    Parameters
    ----------
    target
        Name of the target for which kernels are compiled; "" for this processor.
    """
    code = hashlib.sha256()
    for path in kernel_sources():
        code.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    user = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    base = os.environ.get("NUMBA_CACHE_DIR") or os.path.join(user, "daskw2v")
    name = f"{target or llvmlite.binding.get_host_cpu_name()}-numba{numba.__version__}-{code.hexdigest()[:12]}"
    folder = os.path.join(base, name)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:  # the folder cannot be created or written: each process compiles all kernels
        return tempfile.mkdtemp(prefix=_TEMPORARY)
    return folder


def is_kept() -> bool:
    """Return whether compiled kernels are kept for later processes, as their folder can be written."""
    return not Path(cache_folder()).name.startswith(_TEMPORARY)


class Locator(caching._CacheLocator):
    """Finds the cached files of a kernel by the name of its module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.module, self._line = function.__module__, function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        """Return the folder of the kernels of the function's module."""
        return os.path.join(cache_folder(), self.module)

    def get_source_stamp(self) -> str:
        """Return an empty stamp, as the folder's name has the digest of the sources."""
        return ""

    def get_disambiguator(self) -> str:
        """Return the line of the function, which distinguishes functions of one name."""
        return str(self._line)

    @classmethod
    def from_function(cls, function: Callable[..., Any], _: str) -> "Locator":
        """Return the locator of a function."""
        return cls(function)


class _Implementation(caching.CompileResultCacheImpl):
    """Numba's implementation of a cache, with files where `Locator` says."""

    _locator_classes = (Locator,)


class UniqueFiles:
    """A mixin for the index classes of Numba and numba-cuda: each compiled kernel has a file with a random name.

    So no two processes write the same file.
    """

    _data_name_pattern: str
    _save_data: Callable[[str, Any], None]
    _save_index: Callable[[dict[Any, str]], None]
    _load_index: Callable[[], dict[Any, str]]

    def save(self, key: Any, data: Any) -> None:
        """Write a compiled kernel, then the index that names it."""
        name = self._data_name_pattern.replace("{number:d}", uuid.uuid4().hex)
        self._save_data(name, data)
        self._save_index({**self._load_index(), key: name})


class _Files(UniqueFiles, caching.IndexDataCacheFile):
    """Numba's index and files, with unique names."""


class KernelCache(caching.FunctionCache):
    """The cache on disk of the compiled versions of one kernel."""

    _impl_class = _Implementation

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, "")

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel compiled for a signature; None if the cache lacks it.

        Numba's refresh of the target is left out: only compilation needs it.
        """
        rtsys.initialize(target_context)  # kernels need it to allocate memory
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """Return the key of a signature in the index of compiled kernels."""
        return sig, codegen.magic_tuple(), make_key(self._py_func)


def make_key(value: Any) -> Any:
    """Return a cache key of a function, made of its module, name, line and closure, which is equal in all processes.

    Numba would pickle the closure, and kernels in it have a new identity in each process. A number, text or None is its
    own key; other values in a closure raise a TypeError.
    """
    # The Python function of a kernel, or of an intrinsic
    function = inspect.unwrap(getattr(value, "py_func", getattr(value, "_defn", value)))
    if isinstance(function, FunctionType):
        closure = tuple(make_key(cell.cell_contents) for cell in function.__closure__ or ())
        return function.__module__, function.__qualname__, function.__code__.co_firstlineno, closure
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"A kernel closes over {value!r}: give it functions, numbers and strings.")
