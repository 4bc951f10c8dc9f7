"""The folders of compiled kernels: one folder for each version of the code that they are compiled from.

Numba names a kernel's file by the path that its module is installed at, and looks at that module's source alone, not at
what it inlines from others. Here a kernel is named by its module, below a folder that is named by a digest of all
sources that kernels are made of. So a change elsewhere in the package keeps compiled kernels, and a cache that is
filled when an image is built serves every host with the same processor.

Several processes may compile the same kernel: each writes a file of its own, and the last one that writes the index
decides which file is read. (Numba counts files; two processes that compile for different types would use one name.)
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
_FOLDERS = "kernels", "objectives", "types.py"  # all of these; elsewhere the modules that import Numba's door
_DOOR = re.compile(rb"^from daskw2v\.kernels(\.(jit|simd|rng|alias|bytes|cuda\.warp))? import", re.MULTILINE)
_OWN = "daskw2v-"  # begins the name of a folder of one process


def kernel_sources() -> Iterator[Path]:
    """Yield the files that kernels are compiled from, in order."""
    for path in sorted(_PACKAGE.rglob("*.py")):
        if path.relative_to(_PACKAGE).parts[0] in _FOLDERS or _DOOR.search(path.read_bytes()):
            yield path


@cache
def cache_folder(target: str = "") -> str:
    """Return the folder of compiled kernels for this code, this version of Numba and a target.

    The folder lies in NUMBA_CACHE_DIR, or else in the user's own cache folder, since its files are unpickled.

    Parameters
    ----------
    target
        The target that kernels are compiled for; by default this processor.
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
    except OSError:  # no such folder, or one that is not writable: each process compiles anew
        return tempfile.mkdtemp(prefix=_OWN)
    return folder


def is_kept() -> bool:
    """Return whether compiled kernels outlive this process: their folder can be written."""
    return not Path(cache_folder()).name.startswith(_OWN)


class Locator(caching._CacheLocator):
    """Finds a kernel's files by its module's name."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.module, self._line = function.__module__, function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        """Return the folder of a module's kernels."""
        return os.path.join(cache_folder(), self.module)

    def get_source_stamp(self) -> str:
        """Return an empty stamp: the folder's name has the digest of the sources."""
        return ""

    def get_disambiguator(self) -> str:
        """Return the line of the function, which distinguishes functions of one name."""
        return str(self._line)

    @classmethod
    def from_function(cls, function: Callable[..., Any], _: str) -> "Locator":
        """Return the locator of a function."""
        return cls(function)


class _Implementation(caching.CompileResultCacheImpl):
    """Numba's implementation, with the files in our folder."""

    _locator_classes = (Locator,)


class UniqueFiles:
    """An index and its files, none of which two processes write; a mixin for Numba's and numba-cuda's classes."""

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
    """The compiled versions of one kernel on disk."""

    _impl_class = _Implementation

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, "")

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return a compiled kernel, without Numba's refresh, .3 s of a process: only compilation needs it."""
        rtsys.initialize(target_context)  # kernels allocate memory by it
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return sig, codegen.magic_tuple(), named(self._py_func)


def named(value: Any) -> Any:
    """Return a key of a function from its position in the code and its closure, the same in each process.

    Numba pickles the closure of a function, and kernels in it have a new identity in each process.
    """
    function = inspect.unwrap(
        getattr(value, "py_func", getattr(value, "_defn", value))
    )  # a kernel's, or an intrinsic's
    if isinstance(function, FunctionType):
        closure = tuple(named(cell.cell_contents) for cell in function.__closure__ or ())
        return function.__module__, function.__qualname__, function.__code__.co_firstlineno, closure
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"A kernel closes over {value!r}: give it functions, numbers and strings.")
