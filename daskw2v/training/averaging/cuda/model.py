"""The common model beside a replica's tables, in the memory of the GPU that trains it.

Replicas of one process read each other's deltas by copies from GPU to GPU, and need no handshake: a delta that a task
has returned is finished.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numba import cuda

from daskw2v.cluster.shared_memory import room
from daskw2v.kernels.simd import padded
from daskw2v.training.averaging.common_model import BlockKey, CommonModel, Given
from daskw2v.training.averaging.cuda.kernels import NONE, Formula, MergeWeights, grid_of, merging, subtract
from daskw2v.training.averaging.device_delta import Change, DeviceDelta
from daskw2v.training.averaging.merge import MergedBlock, rows_of
from daskw2v.training.devices.base import padded_copy
from daskw2v.types import Float32Array


class CudaModel(CommonModel):
    """The common model in the memory of the GPU that trains the replica.

    Parameters
    ----------
    formula
        How replicas are merged.
    trainer
        A `CudaReplicaTrainer`.
    places, given
        As in `HostModel`.
    """

    def __init__(self, formula: Formula, trainer: Any, places: Sequence[BlockKey], given: Given) -> None:
        self._formula, self._trainer, self._places = formula, trainer, places
        self._columns = rows_of(given[0]).shape[1]
        self._width = padded(self._columns)
        velocity = {n: block.velocity for n, block in given.items() if isinstance(block, MergedBlock)}
        self._velocity = {n: self._there(faster) for n, faster in velocity.items() if faster is not None}
        self._none = trainer.to_device(np.zeros(1, np.float32))
        with trainer.gpu:
            self._gathered = cuda.device_array(1, np.uint16)  # deltas of all replicas
            self._bases = {number: _copy_of(self._own(number)) for number in given}

    def give(self, rows: Mapping[int, Float32Array]) -> None:
        """Replace the rows of some blocks, as `CommonModel.give` does."""
        with self._trainer.gpu:
            for number, part in rows.items():
                self._own(number).copy_to_device(padded_copy(part, self._width))
                self._bases[number].copy_to_device(self._own(number))

    def changes(self, numbers: Iterable[int]) -> tuple[Mapping[int, Change], bool]:
        """Return what the replica changed, as `CommonModel.changes` does."""
        found: dict[int, Change] = {}
        with self._trainer.gpu:
            squares = cuda.to_device(NONE.reshape(1))
            for number in numbers:
                base, rows = self._bases[number], self._rows(number)
                bits = cuda.device_array(rows * self._columns, np.uint16)
                subtract[grid_of(rows)](base, self._own(number), rows, self._width, self._columns, bits, squares)
                found[number] = DeviceDelta(bits, self._columns, self._trainer.gpu)
            finite = bool(np.isfinite(squares.copy_to_host()).all())  # and so waits for all of them
        return found, finite

    def merge(self, changes: Sequence[Mapping[int, Change]]) -> None:
        """Merge some blocks, as `CommonModel.merge` does."""
        n = len(changes)
        weights = MergeWeights(*map(np.float32, (n, 1 / n, 1 - 1 / n)))
        with self._trainer.gpu:
            for number in changes[0]:
                rows, base = self._rows(number), self._bases[number]
                deltas = self._gather([of_replica[number] for of_replica in changes])
                velocity = self._velocity_of(number) if self._formula.has_velocity else self._none
                merging(self._formula)[grid_of(rows)](
                    deltas, n, rows, self._width, self._columns, weights, base, self._own(number), velocity
                )
            cuda.synchronize()  # before deltas of others are let go

    def merged(self, numbers: Iterable[int]) -> dict[int, MergedBlock]:
        """Return some blocks as they were merged last, in this machine's memory."""
        return {
            number: MergedBlock(
                self._here(self._bases[number]),
                self._here(self._velocity[number]) if number in self._velocity else None,
            ).shared()
            for number in numbers
        }

    def _own(self, number: int) -> Any:
        """Return a block of the replica's tables."""
        return self._trainer.block(*self._places[number])

    def _rows(self, number: int) -> int:
        return len(self._bases[number]) // self._width

    def _velocity_of(self, number: int) -> Any:
        if number not in self._velocity:
            self._velocity[number] = cuda.to_device(np.zeros(len(self._bases[number]), np.float32))
        return self._velocity[number]

    def _gather(self, deltas: Sequence[Change]) -> Any:
        """Return the deltas of all replicas in this GPU's memory, one after the other, until others are gathered."""
        size = deltas[0].bits.size
        if len(self._gathered) < size * len(deltas):
            self._gathered = cuda.device_array(size * len(deltas), np.uint16)
        for replica, delta in enumerate(deltas):
            self._gathered[replica * size : (replica + 1) * size].copy_to_device(delta.bits.reshape(-1))
        return self._gathered

    def _there(self, rows: Float32Array) -> Any:
        return self._trainer.to_device(padded_copy(rows, self._width))

    def _here(self, rows: Any) -> Float32Array:
        copied = room((len(rows) // self._width, self._columns))
        copied[:] = self._trainer.from_device(rows).reshape(-1, self._width)[:, : self._columns]
        return copied


def _copy_of(array: Any) -> Any:
    copy = cuda.device_array(array.shape, array.dtype)
    copy.copy_to_device(array)
    return copy
