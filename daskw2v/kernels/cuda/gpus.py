"""The GPUs of this process, set up for threads that share them and for copies between them, and launches on them.

A launch has warps, each a block, all of which train at the same time: as many as fit on the GPU.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from threading import Lock, RLock
from typing import Any, NamedTuple

import numba
from numba import cuda
from numba.cuda.cudadrv import driver

from daskw2v.kernels.cuda import load
from daskw2v.kernels.cuda.warp import LANES

_setting_up = Lock()
_HARMLESS = "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "CUDA_ERROR_TOO_MANY_PEERS"  # copies go through the host then
_SIMULATED = 228 << 10, 1 << 10  # bytes of shared memory, as an H100 has them


def gpu_at(number: int) -> Any:
    """Return a GPU, a context manager that makes it the calling thread's.

    Parameters
    ----------
    number
        The number of the GPU, from 0. GPUs before it are in use, too. A simulated GPU stands for all.
    """
    if numba.config.ENABLE_CUDASIM:
        return cuda.gpus[0]
    with _setting_up:
        _load_one_at_a_time()
        _let_go_in_context(number)
        for other in range(number):
            _reach(number, other)
            _reach(other, number)
    return cuda.gpus[number]


class WarpKernel(NamedTuple):
    """A kernel for blocks of one warp, and the bytes of shared memory that it is launched with."""

    run: Any
    shared: int = 0


def launch(kernel: WarpKernel, most: int, stream: Any, *arguments: Any) -> int:
    """Launch a kernel in `most` warps, or in as many as fit on the GPU; return how many.

    How many fit depends on registers and shared memory of the compiled kernel, which the driver knows. More warps would
    wait until others have ended. The simulator runs warps one after the other, and any number fits.
    """
    run, shared = kernel
    if numba.config.ENABLE_CUDASIM:
        warps = most
    else:
        warps = min(most, _room(_compiled(run, arguments), shared, cuda.get_current_device().id))
    run[warps, LANES, stream, shared](*arguments)
    return warps


def room(most: int | None = None) -> int:
    """Return how many warps of any kernel, at most `most`, the GPU may run at a time; the simulator runs one."""
    if numba.config.ENABLE_CUDASIM:
        return most or 1
    gpu = cuda.get_current_device()
    blocks = int(gpu.MULTIPROCESSOR_COUNT * gpu.MAX_BLOCKS_PER_MULTIPROCESSOR)
    return min(most or blocks, blocks)


def shared_memory() -> tuple[int, int]:
    """Return the bytes of shared memory of a multiprocessor, and the bytes of each block that CUDA reserves."""
    if numba.config.ENABLE_CUDASIM:
        return _SIMULATED
    gpu = cuda.get_current_device()
    return int(gpu.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR), int(gpu.RESERVED_SHARED_MEMORY_PER_BLOCK)


@cache
def _load_one_at_a_time() -> None:
    """Let one thread at a time load a kernel: Numba holds no lock, and fails where two threads load the same one."""
    library, lock = load("numba.cuda.codegen").CUDACodeLibrary, RLock()
    get_cufunc = library.get_cufunc

    def one_at_a_time(kernel: Any) -> Any:
        with lock:
            return get_cufunc(kernel)

    library.get_cufunc = one_at_a_time


@cache
def _let_go_in_context(number: int) -> None:
    """Let memory be released by any thread: Numba does so where the last reference goes, whatever GPU is current."""
    gpu = cuda.gpus[number]
    with gpu:
        context = cuda.current_context()
        for released in (context.deallocations, context.memory_manager.deallocations):
            released.clear = _entering(gpu, released.clear)


def _entering(gpu: Any, function: Callable[[], None]) -> Callable[[], None]:
    lock = RLock()  # the queue of memory to release has no lock

    def entered() -> None:
        with lock, gpu:
            function()

    return entered


@cache
def _reach(number: int, other: int) -> None:
    """Let copies from another GPU come straight from its memory, where there is a link."""
    with cuda.gpus[other]:
        its_context = cuda.current_context().handle
    with cuda.gpus[number]:
        context = cuda.current_context()
        if not context.can_access_peer(other):
            return
        try:
            context.enable_peer_access(its_context)
        except cuda.cudadrv.driver.CudaAPIError as error:
            if not any(name in str(error) for name in _HARMLESS):
                raise


def _compiled(run: Any, arguments: tuple[Any, ...]) -> Any:
    """Return the kernel as it is compiled for such arguments."""
    return run.compile(tuple(map(run.typeof_pyval, arguments)))


@lru_cache(maxsize=256)
def _room(compiled: Any, shared: int, device: int) -> int:
    """Return how many warps fit on the current GPU with `shared` bytes of shared memory each, and allow these bytes."""
    function, attributes = compiled.library.get_cufunc(), driver.binding.CUfunction_attribute
    most = attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES  # 48 KB by default
    driver.driver.cuKernelSetAttribute(most, shared, function.handle, device)
    return int(compiled.max_cooperative_grid_blocks(LANES, shared))
