"""The GPUs of this process, made ready for threads that share them, and for each other."""

from collections.abc import Callable
from functools import cache
from threading import Lock, RLock
from typing import Any

import numba
from numba import cuda

from daskw2v.kernels.cuda import load

_making_ready = Lock()
_HARMLESS = "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "CUDA_ERROR_TOO_MANY_PEERS"  # copies go through the host then


def gpu_at(number: int) -> Any:
    """Return a GPU, a context manager that makes it the calling thread's.

    Parameters
    ----------
    number
        Its number, from 0. Those before it are in use, too. A simulated GPU stands for all.
    """
    if numba.config.ENABLE_CUDASIM:
        return cuda.gpus[0]
    with _making_ready:
        _load_one_at_a_time()
        _let_go_in_context(number)
        for other in range(number):
            _reach(number, other)
            _reach(other, number)
    return cuda.gpus[number]


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
    lock = RLock()  # what is released lies in a queue that nobody guards

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
