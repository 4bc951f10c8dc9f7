"""A replica's difference that stays on its device. Whoever is not in the same process gets one in its own memory."""

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
from distributed.protocol import deserialize, register_serialization, serialize

from daskw2v.cluster.shared_memory import room, share
from daskw2v.training.averaging.deltas import Delta


class DeviceDelta:
    """What one replica changed in a whole block, as `Delta` has it, in the memory of a device.

    Other devices of the process copy it from there. To be sent or pickled, it is copied to this machine's memory, once.

    Parameters
    ----------
    bits
        The differences in bfloat16, row after row, shape (rows * D,) uint16, an array of the device.
    columns
        D.
    device
        A context manager in which the device is the calling thread's.
    """

    def __init__(self, bits: Any, columns: int, device: Any) -> None:
        self.bits, self._columns, self._device = bits, columns, device
        self._copy: Delta | None = None
        self._lock = Lock()

    def on_host(self) -> Delta:
        """Return it in this machine's memory."""
        with self._lock:
            if self._copy is None:
                bits = room((len(self.bits) // self._columns, self._columns), np.uint16)
                with self._device:
                    self.bits.copy_to_host(np.asarray(bits).reshape(-1))
                self._copy = Delta(share(bits))
            return self._copy

    def __reduce__(self) -> tuple[Any, ...]:
        return Delta, tuple(self.on_host())

    def __sizeof__(self) -> int:  # Dask counts what would be sent
        return object.__sizeof__(self) + int(self.bits.nbytes)


Change: TypeAlias = Delta | DeviceDelta


def _dumps(delta: DeviceDelta, context: Mapping[str, Any] | None = None) -> tuple[Any, list[Any]]:
    header, frames = serialize(delta.on_host(), context=context, on_error="raise")
    return header, frames


def _loads(header: Mapping[str, Any], frames: Sequence[Any]) -> Delta:
    delta: Delta = deserialize(header, frames)
    return delta


register_serialization(DeviceDelta, _dumps, _loads)
