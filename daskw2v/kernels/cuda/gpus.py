"""The GPUs of this process, set up for use by several threads and for copies between GPUs; and launches of kernels.

A launch has at most as many warps as the GPU can run at the same time, each in its own block.
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
    """Return a GPU: a context manager in which it is the current GPU of the calling thread.

    Parameters
    ----------
    number
        Number of the GPU, from 0. All GPUs with lower numbers are in use, too. The simulator has one GPU for all
        numbers.
    """
    if numba.config.ENABLE_CUDASIM:
        return cuda.gpus[0]
    with _setting_up:
        _serialize_loading()
        _release_in_context(number)
        for other in range(number):
            _enable_peer_copies(number, other)
            _enable_peer_copies(other, number)
    return cuda.gpus[number]


class WarpKernel(NamedTuple):
    """A kernel for blocks of one warp, and the bytes of shared memory that it is launched with."""

    run: Any
    shared: int = 0


def launch(kernel: WarpKernel, most: int, stream: Any, *arguments: Any) -> int:
    """Launch a kernel in as many warps as the GPU can run at a time, at most `most`; return their number.

    The number depends on registers and shared memory of the compiled kernel, which the driver knows: further warps
    would wait for running ones to end. The simulator runs warps one after the other, and always `most`.
    """
    run, shared = kernel
    if numba.config.ENABLE_CUDASIM:
        warps = most
    else:
        warps = min(most, _count_warps(_compile(run, arguments), shared, cuda.get_current_device().id))
    run[warps, LANES, stream, shared](*arguments)
    return warps


def room(most: int | None = None) -> int:
    """Return the largest number of warps that the GPU may run at a time, for any kernel of this module; at most `most`.

    Under the simulator, the number is `most`, or 1 for None.
    """
    if numba.config.ENABLE_CUDASIM:
        return most or 1
    gpu = cuda.get_current_device()
    blocks = int(gpu.MULTIPROCESSOR_COUNT * gpu.MAX_BLOCKS_PER_MULTIPROCESSOR)
    return min(most or blocks, blocks)


def shared_memory() -> tuple[int, int]:
    """Return the bytes of shared memory of a multiprocessor, and the bytes that CUDA reserves for each block."""
    if numba.config.ENABLE_CUDASIM:
        return _SIMULATED
    gpu = cuda.get_current_device()
    return int(gpu.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR), int(gpu.RESERVED_SHARED_MEMORY_PER_BLOCK)


@cache
def _serialize_loading() -> None:
    """Patch Numba so that one thread at a time loads a kernel: it fails if two threads load the same kernel."""
    library, lock = load("numba.cuda.codegen").CUDACodeLibrary, RLock()
    get_cufunc = library.get_cufunc

    def one_at_a_time(kernel: Any) -> Any:
        with lock:
            return get_cufunc(kernel)

    library.get_cufunc = one_at_a_time


@cache
def _release_in_context(number: int) -> None:
    """Patch Numba so that memory of a GPU is released while this GPU is current.

    Numba releases it in the thread that deletes the last reference, in which another GPU may be current.
    """
    gpu = cuda.gpus[number]
    with gpu:
        context = cuda.current_context()
        for queue in (context.deallocations, context.memory_manager.deallocations):
            queue.clear = _make_entering(gpu, queue.clear)


def _make_entering(gpu: Any, function: Callable[[], None]) -> Callable[[], None]:
    """Return a function that calls `function` while a GPU is current, in one thread at a time."""
    lock = RLock()  # the queue of memory to release has no lock

    def entered() -> None:
        with lock, gpu:
            function()

    return entered


@cache
def _enable_peer_copies(number: int, other: int) -> None:
    """Enable direct copies from the memory of the GPU `other` to the GPU `number`, where the two are linked."""
    with cuda.gpus[other]:
        other_context = cuda.current_context().handle
    with cuda.gpus[number]:
        context = cuda.current_context()
        if not context.can_access_peer(other):
            return
        try:
            context.enable_peer_access(other_context)
        except cuda.cudadrv.driver.CudaAPIError as error:
            if not any(name in str(error) for name in _HARMLESS):
                raise


def _compile(run: Any, arguments: tuple[Any, ...]) -> Any:
    """Return a kernel compiled for the types of arguments."""
    return run.compile(tuple(map(run.typeof_pyval, arguments)))


@lru_cache(maxsize=256)
def _count_warps(compiled: Any, shared: int, device: int) -> int:
    """Return the number of warps of a compiled kernel that the current GPU, `device`, can run at a time.

    Each warp has `shared` bytes of shared memory, which the call sets as the kernel's limit.
    """
    function, attributes = compiled.library.get_cufunc(), driver.binding.CUfunction_attribute
    most = attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES  # 48 KB by default
    driver.driver.cuKernelSetAttribute(most, shared, function.handle, device)
    return int(compiled.max_cooperative_grid_blocks(LANES, shared))
