"""The interface of a device: a value with its trainers and what they need of a worker."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from daskw2v.config.choice import Choice
from daskw2v.training.devices.base import PartitionTrainer, RowTrainer
from daskw2v.training.devices.replica_trainer import ReplicaTrainer


@dataclass(frozen=True, kw_only=True)
class Device:
    """One device, on which kernels run.

    Parameters
    ----------
    name
        As in Resources.
    title
        Short description for `--help`.
    settings
        The class of its settings.
    replica_trainer, partition_trainer, row_trainer
        Classes that train a replica of the model, buckets of its partitions, or the rows of a part of the words. Each
        finds the kernel for an objective (`find_kernel`).
    check
        Function that raises an error if the calling process cannot train on the device.
    resource
        The Dask resource that workers with the device declare, if some workers lack it. A training task takes one.
    free_memory
        Function that returns the smallest number of free bytes of a worker's devices; None for a device without memory
        of its own. Dask calls it on the worker, and passes the worker as `dask_worker` if it has this parameter.
    local_cluster
        Function from a number of workers to more options of Dask's LocalCluster.
    torch_device
        Function that returns PyTorch's name of the device that the calling process trains networks on.
    explaining_errors
        Function that returns a context manager, which replaces errors of the device's libraries by errors with a
        remedy.
    runs_cpu_kernels
        Whether the device runs the objectives' kernels for the processor: a process without the device can compile
        them before a run, and their time is known to forecasts.
    honours
        Fields of Params that the device reads and not all devices do (`honoured_by`), besides its settings.
    """

    name: str
    title: str
    settings: type[Choice]
    replica_trainer: type[ReplicaTrainer]
    partition_trainer: type[PartitionTrainer]
    row_trainer: type[RowTrainer]
    check: Callable[[], None] | None = None
    resource: str | None = None
    free_memory: Callable[[], float] | None = None
    local_cluster: Callable[[int], Mapping[str, Any]] = field(default=lambda _: {})
    torch_device: Callable[[], str] = field(default=lambda: "cpu")
    explaining_errors: Callable[[], AbstractContextManager[None]] = nullcontext
    runs_cpu_kernels: bool = False
    honours: tuple[str, ...] = ()

    def tasks(self, threads: int) -> int:
        """Return the number of tasks that a worker trains at a time: one for each thread, or one for its resource."""
        return threads if self.resource is None else 1
