"""Launches of warps, each a block, all of which train at the same time: as many as the GPU has room for."""

from functools import lru_cache
from typing import Any, NamedTuple

import numba
from numba import cuda
from numba.cuda.cudadrv import driver

from daskw2v.kernels.cuda.warp import LANES

_SIMULATED = 228 << 10, 1 << 10  # bytes of shared memory, as an H100 has them


class WarpKernel(NamedTuple):
    """A kernel for blocks of one warp, and the bytes of shared memory that it is launched with."""

    run: Any
    shared: int = 0


def launch(kernel: WarpKernel, most: int, stream: Any, *arguments: Any) -> int:
    """Launch a kernel in `most` warps, or in as many as there is room for; return how many.

    Registers and shared memory of the compiled kernel say so, and the driver knows them. More warps would wait until
    others have ended. The simulator runs one after the other, and has room for any.
    """
    run, shared = kernel
    if numba.config.ENABLE_CUDASIM:
        warps = most
    else:
        warps = min(most, _room(_compiled(run, arguments), shared, cuda.get_current_device().id))
    run[warps, LANES, stream, shared](*arguments)
    return warps


def room(most: int | None = None) -> int:
    """Return how many warps of any kernel, at most as many as wanted, the GPU may run at a time; the simulator one."""
    if numba.config.ENABLE_CUDASIM:
        return most or 1
    gpu = cuda.get_current_device()
    blocks = int(gpu.MULTIPROCESSOR_COUNT * gpu.MAX_BLOCKS_PER_MULTIPROCESSOR)
    return min(most or blocks, blocks)


def shared_memory() -> tuple[int, int]:
    """Return the bytes of shared memory of a multiprocessor, and those of a block that CUDA keeps for itself."""
    if numba.config.ENABLE_CUDASIM:
        return _SIMULATED
    gpu = cuda.get_current_device()
    return int(gpu.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR), int(gpu.RESERVED_SHARED_MEMORY_PER_BLOCK)


def _compiled(run: Any, arguments: tuple[Any, ...]) -> Any:
    """Return the kernel as it is compiled for such arguments."""
    return run.compile(tuple(map(run.typeof_pyval, arguments)))


@lru_cache(maxsize=256)
def _room(compiled: Any, shared: int, device: int) -> int:
    """Return how many warps a GPU, the current one, has room for, with so much shared memory: that is allowed, too."""
    function, attributes = compiled.library.get_cufunc(), driver.binding.CUfunction_attribute
    most = attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES  # 48 KB by default
    driver.driver.cuKernelSetAttribute(most, shared, function.handle, device)
    return int(compiled.max_cooperative_grid_blocks(LANES, shared))
