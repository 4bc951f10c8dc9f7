"""The folder of compiled kernels for GPUs, beside the folders for processors (`kernels.cache`).

Its name has no processor: hosts of any kind use kernels that one of them compiled for a generation of GPUs.

numba-cuda reports no compilation: it compiles from the moment that a kernel is not found until the kernel is saved.
"""

import os
from collections.abc import Callable
from typing import Any

import numba_cuda
from numba.cuda import dispatcher
from numba.cuda.core import caching

from daskw2v.kernels import compilation
from daskw2v.kernels.cache import Locator, UniqueFiles, cache_folder, named


class _Locator(Locator):
    """Finds kernels in the folder of all GPUs: an index names the generation that each is compiled for."""

    def get_cache_path(self) -> str:
        """Return the folder of a module's kernels."""
        return os.path.join(cache_folder("cuda"), self.module)


class _Implementation(dispatcher.CUDACacheImpl):
    """numba-cuda's implementation, with the files in our folder."""

    _locator_classes = (_Locator,)


class _Files(UniqueFiles, caching.IndexDataCacheFile):
    """numba-cuda's index and files, with unique names."""


class CudaKernelCache(dispatcher.CUDACache):
    """The compiled versions of one kernel on disk, by CUDA's version and the GPU's generation."""

    _impl_class = _Implementation

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, "")
        self._compiling = False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return a compiled kernel; if there is none, count the seconds until it is saved as compilation."""
        found = super().load_overload(sig, target_context)
        if found is None and not self._compiling:
            self._compiling = True
            compilation.here.on_start()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a compiled kernel."""
        if self._compiling:
            self._compiling = False
            compilation.here.on_end()
        super().save_overload(sig, data)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return sig, codegen.magic_tuple(), numba_cuda.__version__, named(self._py_func)
