"""Where kernels run: each device holds one replica's tables, trains segments on them, and gives rows back."""

from daskw2v.devices.cpu import CpuReplica
from daskw2v.errors import ParameterError

DEVICES = {"cpu": CpuReplica}


def find_device(name: str) -> type[CpuReplica]:
    """Return the replica class of a device.

    Raises
    ------
    ParameterError
        If there is none of that name.
    """
    try:
        return DEVICES[name]
    except KeyError:
        raise ParameterError(f"device={name!r} does not exist.", f"Choose one of: {', '.join(DEVICES)}.") from None
