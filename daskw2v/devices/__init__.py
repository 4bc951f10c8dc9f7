"""Where kernels run: a device takes rows, trains them, and gives them back."""

from typing import NamedTuple

from daskw2v.devices.base import Piece, Threads, threads_of
from daskw2v.devices.cpu import CpuReplica
from daskw2v.devices.cpu_meeting import CpuMeeting
from daskw2v.devices.cpu_part import CpuPart
from daskw2v.registry import find

__all__ = ["DEVICES", "CpuMeeting", "CpuPart", "CpuReplica", "Device", "Piece", "Threads", "find_device", "threads_of"]


class Device(NamedTuple):
    """What trains on a device: a replica of the whole model, partitions of it, or the rows of a part of the words."""

    replica: type[CpuReplica]
    meeting: type[CpuMeeting]
    part: type[CpuPart]


DEVICES = {"cpu": Device(CpuReplica, CpuMeeting, CpuPart)}


def find_device(name: str) -> Device:
    """Return a device, or raise a ParameterError that lists them."""
    return find(DEVICES, "device", name)
