"""Where kernels run: each device holds one replica's tables, trains segments on them, and gives rows back."""

from daskw2v.devices.base import Piece, Threads, threads_of
from daskw2v.devices.cpu import CpuReplica
from daskw2v.registry import find

__all__ = ["DEVICES", "CpuReplica", "Piece", "Threads", "find_device", "threads_of"]

DEVICES = {"cpu": CpuReplica}


def find_device(name: str) -> type[CpuReplica]:
    """Return the replica class of a device, or raise a ParameterError that lists them."""
    return find(DEVICES, "device", name)
