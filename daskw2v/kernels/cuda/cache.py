"""The folder of compiled kernels for GPUs, beside the folders for processors (`kernels.cache`).

Its name has no processor: all hosts use the kernels that one of them compiled for a generation of GPUs.

numba-cuda reports no compilation: it compiles from the time that a kernel is missing in the cache until it is saved.
"""

import os
from collections.abc import Callable
from typing import Any

import numba_cuda
from numba.cuda import dispatcher
from numba.cuda.core import caching

from daskw2v.kernels import compilation
from daskw2v.kernels.cache import Locator, UniqueFiles, cache_folder, make_key


class _Locator(Locator):
    """Finds kernels in the folder for all GPUs: an index names the generation for which each is compiled."""

    def get_cache_path(self) -> str:
        """Return the folder of the kernels of the function's module."""
        return os.path.join(cache_folder("cuda"), self.module)


class _Implementation(dispatcher.CUDACacheImpl):
    """numba-cuda's implementation of a cache, with files where `_Locator` says."""

    _locator_classes = (_Locator,)


class _Files(UniqueFiles, caching.IndexDataCacheFile):
    """numba-cuda's index and files, with unique names."""


class CudaKernelCache(dispatcher.CUDACache):
    """The cache on disk of the compiled versions of one kernel, by CUDA's version and the GPU's generation."""

    _impl_class = _Implementation

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, "")
        self._compiling = False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel compiled for a signature; None if the cache lacks it: then compilation begins."""
        kernel = super().load_overload(sig, target_context)
        if kernel is None and not self._compiling:
            self._compiling = True
            compilation.clock.on_start()
        return kernel

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save the kernel compiled for a signature, which ends its compilation."""
        if self._compiling:
            self._compiling = False
            compilation.clock.on_end()
        super().save_overload(sig, data)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """Return the key of a signature in the index of compiled kernels."""
        return sig, codegen.magic_tuple(), numba_cuda.__version__, make_key(self._py_func)
