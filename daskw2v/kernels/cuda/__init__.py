"""Access to NVIDIA GPUs: `load` imports modules that need Numba's CUDA target, when a GPU is used.

So other runs do not need the extra `cuda`, and `import daskw2v` needs no driver. Modules that need the CUDA target are
named `cuda`, or lie in this package.
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
    """Import a module that needs Numba's CUDA target, or this target itself, or raise like `check_gpu`."""
    check_gpu()
    return import_module(module)


def call(module: str, function: str, *arguments: Any) -> Any:
    """Import a module as `load` does, and return the result of one of its functions."""
    return getattr(load(module), function)(*arguments)


def check_gpu() -> None:
    """Check that this process can train on a GPU, be it Numba's simulator of one (NUMBA_ENABLE_CUDASIM=1).

    Raises
    ------
    MissingExtraError
        If numba-cuda is not installed: Numba's own CUDA target is older than today's GPUs.
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
