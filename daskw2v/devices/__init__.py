"""Where kernels run: a device takes rows, trains them, and gives them back."""

from collections.abc import Callable
from typing import NamedTuple

from distributed import Client

from daskw2v.cluster import Trainers, ask_workers, await_worker, find_trainers, may_grow
from daskw2v.cuda import check_gpu
from daskw2v.devices.base import Piece, Threads, threads_of
from daskw2v.devices.cpu_meeting import CpuMeeting
from daskw2v.devices.cpu_part import CpuPart
from daskw2v.devices.cpu_replica import CpuReplica
from daskw2v.devices.cuda_meeting import CudaMeeting
from daskw2v.devices.cuda_memory import free_memory, gpu_memory_watched
from daskw2v.devices.cuda_part import CudaPart
from daskw2v.devices.cuda_replica import CudaReplica
from daskw2v.devices.meeting import Meeting
from daskw2v.devices.part import Part
from daskw2v.devices.replica import Replica
from daskw2v.errors import ClusterError, Daskw2vError
from daskw2v.gpus import RESOURCE
from daskw2v.params import Resources
from daskw2v.registry import find, refuse_unread

__all__ = [
    "DEVICES", "CpuMeeting", "CpuPart", "CpuReplica", "CudaMeeting", "CudaPart", "CudaReplica", "Device", "Meeting",
    "Part", "Piece", "Replica", "Threads", "check_device", "check_workers", "find_device", "gpu_memory_watched",
    "threads_of", "trainers_of",
]  # fmt: skip


class Device(NamedTuple):
    """What trains on a device.

    Parameters
    ----------
    options
        The fields of Resources that this device reads and others may not.
    part, replica, meeting
        What trains the rows of a part of the words, a replica of the whole model, or partitions of it.
    check
        Raises where a process cannot train on the device.
    resource
        What Dask's workers declare that have one, where some have none.
    free_memory
        Returns the bytes that are free on the device of a process, where it has memory of its own.
    """

    options: tuple[str, ...]
    part: type[Part]
    replica: type[Replica]
    meeting: type[Meeting]
    check: Callable[[], None] | None = None
    resource: str | None = None
    free_memory: Callable[[], float] | None = None


DEVICES = {
    "cpu": Device(("hot_rows", "flush_words"), CpuPart, CpuReplica, CpuMeeting),
    "cuda": Device(("hot_rows", "max_in_flight"), CudaPart, CudaReplica, CudaMeeting, check_gpu, RESOURCE, free_memory),
}


def find_device(name: str) -> Device:
    """Return a device, or raise a ParameterError that lists them."""
    return find(DEVICES, "device", name)


def check_device(resources: Resources) -> None:
    """Refuse what the device of these Resources would not read.

    Raises
    ------
    ParameterError
        If the device does not exist, or an option of others is set.
    """
    find_device(resources.device)
    refuse_unread(resources, "device", resources.device, {name: device.options for name, device in DEVICES.items()})


def trainers_of(client: Client, device: str) -> Trainers:
    """Return the workers that train on a device: those that declare its resource, or all where none does.

    One is waited for: any, and where workers may come and those there are cannot train, one that declares the resource.

    Raises
    ------
    ClusterError
        If none has come in time.
    """
    of = find_device(device)
    await_worker(client)
    trainers = find_trainers(client, of.resource)
    if of.check is None or of.resource is None or trainers.takes or not may_grow(client):
        return trainers
    try:
        ask_workers(client, _lacking, device, workers=trainers.threads)
    except ClusterError as error:
        await_worker(client, {of.resource: 1}, error.problem)
        return find_trainers(client, of.resource)
    return trainers


def check_workers(client: Client, device: str) -> None:
    """Check that workers that train on a device can; raises what its `check` raises on one of them."""
    if find_device(device).check is not None:
        ask_workers(client, _lacking, device, workers=trainers_of(client, device).threads)


def _lacking(device: str) -> Daskw2vError | None:
    """Return why this process cannot train on a device: what a worker raises, Dask writes to its log."""
    check = find_device(device).check
    try:
        if check is not None:
            check()
    except Daskw2vError as error:
        return error
    return None
