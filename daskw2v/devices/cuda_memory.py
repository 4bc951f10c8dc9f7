"""The memory of an NVIDIA GPU: how much is free, and what a user is told when there is no more."""

import math
import platform
from collections.abc import Iterator
from contextlib import contextmanager

import numba

from daskw2v.cuda import load
from daskw2v.errors import ClusterError

_FULL = "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation"  # in the errors of all of CUDA's libraries


def free_memory() -> float:
    """Return the bytes that are free on the GPU of this process; infinity for a simulated one.

    Raises
    ------
    MissingExtraError, ClusterError
        As `cuda.check_gpu` does.
    """
    context = load("numba.cuda").current_context()
    if numba.config.ENABLE_CUDASIM:
        return math.inf
    context.memory_manager.deallocations.clear()  # of earlier runs
    return float(context.get_memory_info().free)


@contextmanager
def gpu_memory_watched() -> Iterator[None]:
    """Turn what CUDA's libraries raise when a GPU has no memory left into a ClusterError."""
    try:
        yield
    except Exception as error:
        if not any(name in str(error) for name in _FULL):
            raise
        raise ClusterError(
            f"The memory of a GPU is full on {platform.node()} ({error}).",
            "End what else uses that GPU (nvidia-smi lists it), start one worker a GPU (with --resources GPU=1), or "
            "train a smaller model: vector_size, max_final_vocab, or more n_partitions of strategy='rotation'.",
        ) from error
