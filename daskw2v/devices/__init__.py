"""Where kernels run: a device takes rows, trains them, and gives them back."""

from collections.abc import Callable
from typing import NamedTuple

from distributed import Client

from daskw2v.cluster import Trainers, find_trainers
from daskw2v.cuda import check_gpu
from daskw2v.devices.base import Piece, Threads, threads_of
from daskw2v.devices.cpu import CpuReplica
from daskw2v.devices.cpu_meeting import CpuMeeting
from daskw2v.devices.cpu_part import CpuPart
from daskw2v.devices.cuda_part import CudaPart
from daskw2v.devices.part import Part
from daskw2v.registry import find

__all__ = [
    "DEVICES", "CpuMeeting", "CpuPart", "CpuReplica", "CudaPart", "Device", "Part", "Piece", "Threads", "check_workers",
    "find_device", "threads_of", "trainers_of",
]  # fmt: skip


class Device(NamedTuple):
    """What trains on a device: the rows of a part of the words, a replica of the whole model, or partitions of it.

    Where a device has none of the last two, no objective has a kernel for them. `check` raises where a process cannot
    train on the device. `resource` is what Dask's workers declare that have one, where some have none.
    """

    part: type[Part]
    replica: type[CpuReplica] | None = None
    meeting: type[CpuMeeting] | None = None
    check: Callable[[], None] | None = None
    resource: str | None = None


DEVICES = {"cpu": Device(CpuPart, CpuReplica, CpuMeeting), "cuda": Device(CudaPart, check=check_gpu, resource="GPU")}


def find_device(name: str) -> Device:
    """Return a device, or raise a ParameterError that lists them."""
    return find(DEVICES, "device", name)


def trainers_of(client: Client, device: str) -> Trainers:
    """Return the workers that train on a device: those that declare its resource, or all where none does."""
    return find_trainers(client, find_device(device).resource)


def check_workers(client: Client, device: str) -> None:
    """Check that workers that train on a device can; raises what its `check` raises on one of them."""
    check = find_device(device).check
    if check is not None:
        client.run(check, workers=[*trainers_of(client, device).threads])
