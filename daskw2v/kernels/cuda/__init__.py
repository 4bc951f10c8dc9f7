"""Access to NVIDIA GPUs: `load` imports modules that need Numba's CUDA target, once a GPU is used.

So runs without a GPU do not need the extra `cuda`, and `import daskw2v` needs no driver. Modules that need the CUDA
target are named `cuda`, or are in this package.
"""

import platform
from importlib import import_module
from types import ModuleType
from typing import Any

import numba

from daskw2v.errors import ClusterError
from daskw2v.extras import needed

_OLDER = "With a driver before 580, or a GPU of the generation Volta, install daskw2v[cuda12] in its place."


def load(module: str) -> ModuleType:
    """Return a module that needs Numba's CUDA target, or the target itself, imported; raises as `check_gpu` does."""
    check_gpu()
    return import_module(module)


def call(module: str, function: str, *arguments: Any) -> Any:
    """Return the result of a function of a module, which is imported as by `load`."""
    return getattr(load(module), function)(*arguments)


def check_gpu() -> None:
    """Check that this process can train on a GPU, or on Numba's simulator of one (NUMBA_ENABLE_CUDASIM=1).

    Raises
    ------
    MissingExtraError
        If numba-cuda is not installed: Numba's built-in CUDA target does not support today's GPUs.
    ClusterError
        If there is no GPU, or no driver.
    """
    if numba.config.ENABLE_CUDASIM:
        return
    needed("numba_cuda", "cuda", _OLDER)
    cuda = import_module("numba.cuda")
    if not cuda.is_available():
        error = " ".join(str(cuda.cuda_error()).split())
        raise ClusterError(
            f"device='cuda' finds no GPU, or no driver, on {platform.node()} ({error}).",
            "Start workers where there are NVIDIA GPUs (with --resources GPU=1, or GPU=4 for four, if others that have "
            f"none shall do the rest), or train with device='cpu'. {_OLDER}",
        )
