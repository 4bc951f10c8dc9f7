"""The GPUs that a process may use, as the driver reports them; and local clusters whose workers have GPUs.

The driver is asked, not CUDA, which would fix the set of GPUs on first use. This module does not need the extra `cuda`.
"""

import ctypes
import os
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

import numba
from distributed import Nanny, Worker, get_worker

from daskw2v.errors import ClusterError

RESOURCE = "GPU"  # the Dask resource of workers with GPUs: `dask worker --resources GPU=1`
VARIABLE = "CUDA_VISIBLE_DEVICES"
_LIBRARY = "libnvidia-ml.so.1"  # NVML comes with every driver


class _GpuNanny(Nanny):  # type: ignore[misc]  # Dask is untyped
    """A nanny whose worker sees one GPU only.

    Parameters
    ----------
    name
        Number of the worker, which is the index of its GPU in `gpus`.
    gpus
        Names of the GPUs, as of `list_visible_gpus`.
    args, options
        As of Dask's `Nanny`.
    """

    def __init__(self, *args: Any, name: int, gpus: list[str], **options: Any) -> None:
        super().__init__(*args, name=name, env={VARIABLE: gpus[name]}, **options)


def gpu_cluster_options(n_workers: int) -> Mapping[str, Any]:
    """Return options of Dask's LocalCluster with a GPU for each worker; a single worker has all GPUs.

    Raises
    ------
    ClusterError
        If this process sees fewer GPUs than workers.
    """
    options: dict[str, Any] = {"resources": {RESOURCE: 1}}
    gpus = list_visible_gpus()
    if numba.config.ENABLE_CUDASIM:
        return options
    if n_workers == 1:  # the worker reports missing GPUs
        return {"resources": {RESOURCE: max(1, len(gpus))}}
    if len(gpus) < n_workers:
        raise ClusterError(
            f"workers={n_workers} with device='cuda' needs a GPU for each worker, but this process sees {len(gpus)} "
            f"({VARIABLE}={','.join(gpus)}).",
            f"Give workers={len(gpus) or 1}, name more GPUs in {VARIABLE}, or start workers on other machines.",
        )
    return {**options, "worker_class": _GpuNanny, "gpus": gpus}


def count_declared_gpus(worker: Worker | None = None) -> int:
    """Return the number of GPUs that a worker declares, by default the worker of this task.

    It is 1 if the worker declares none, and outside of tasks.
    """
    try:
        return max(1, int((worker or get_worker()).state.total_resources.get(RESOURCE, 1)))
    except ValueError:
        return 1


def list_visible_gpus() -> list[str]:
    """Return the names of this process's GPUs: the names in CUDA_VISIBLE_DEVICES if it is set, or else "0", "1", ..."""
    visible = os.environ.get(VARIABLE)
    if visible is None:
        return [str(number) for number in range(_count_gpus())]
    # CUDA stops reading at the first invalid name
    names = takewhile(_is_name, (name.strip() for name in visible.split(",")))
    return list(dict.fromkeys(names))


def _is_name(name: str) -> bool:
    """Return whether a text is a valid name of a GPU in CUDA_VISIBLE_DEVICES."""
    return name.isdecimal() or name.startswith(("GPU-", "MIG-"))


def _count_gpus() -> int:
    """Return the number of GPUs of this machine, as NVML reports it; 0 without a driver."""
    try:
        nvml = ctypes.CDLL(_LIBRARY)
    except OSError:
        return 0
    if nvml.nvmlInit_v2():  # anything but 0 is an error
        return 0
    count = ctypes.c_uint(0)
    failed = nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
    nvml.nvmlShutdown()
    return 0 if failed else count.value
