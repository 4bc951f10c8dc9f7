"""What a replica changed: its difference from the common model.

It travels in bfloat16, half the bytes: float32 without its lower 16 bits, rounded to nearest.
"""

from typing import Any, NamedTuple

import numpy as np

from daskw2v.cluster.shared_memory import by_fields, room
from daskw2v.kernels.bfloat16 import from_bfloat16
from daskw2v.kernels.jit import kernel
from daskw2v.types import Float32Array, Int32Array, UInt16Array


@by_fields
class Delta(NamedTuple):
    """What one replica changed in a block.

    Parameters
    ----------
    bits
        The differences in bfloat16, shape (n, D) uint16.
    rows
        The rows that these are of, ascending, shape (n,) int32; None for all rows of the block.
    """

    bits: UInt16Array
    rows: Int32Array | None = None

    def within(self, some: slice) -> "Delta":
        """Return those of some consecutive rows, counted from the first of them."""
        if self.rows is None:
            return Delta(self.bits[some])
        first, last = np.searchsorted(self.rows, (some.start, some.stop))
        return Delta(self.bits[first:last], self.rows[first:last] - np.int32(some.start))


def delta_of(base: Float32Array, trained: Float32Array) -> tuple[UInt16Array, bool]:
    """Return what training changed, and whether the trained rows are finite, as `objectives.base.is_finite` tells it.

    Parameters
    ----------
    base
        Rows before training, shape (rows, D).
    trained
        Rows after it, shape (rows, at least D); columns from D on are padding.

    Returns
    -------
    delta, finite
        The difference as the bits of bfloat16, shape (rows, D) uint16; and the answer.
    """
    delta = room(base.shape, np.uint16)
    return delta, bool(np.isfinite(_subtract(base, trained, delta)))


def dense_delta(delta: Delta, n_rows: int) -> Float32Array:
    """Return a delta of all rows of a block, shape (n_rows, D) float32."""
    if delta.rows is None:
        return from_bfloat16(delta.bits)
    changes = np.zeros((n_rows, delta.bits.shape[1]), np.float32)
    changes[delta.rows] = from_bfloat16(delta.bits)
    return changes


def nearest_bfloat16(values: Float32Array) -> UInt16Array:
    """Return the bits of the nearest numbers in bfloat16, of two the even one, shape (rows, D) uint16."""
    bits = np.empty(values.shape, np.uint16)
    _subtract(np.zeros_like(values), values, bits)
    return bits


@kernel
def _subtract(base: Any, trained: Any, delta: Any) -> Any:
    """Write the differences; return the sum of the squares of the trained rows."""
    squares = np.float32(0)
    row = np.empty(base.shape[1], np.float32)
    bits = row.view(np.uint32)
    for i in range(base.shape[0]):
        for k in range(base.shape[1]):
            squares += trained[i, k] * trained[i, k]
            row[k] = trained[i, k] - base[i, k]
        for k in range(base.shape[1]):
            to_even = np.uint32(0x7FFF) + ((bits[k] >> np.uint32(16)) & np.uint32(1))
            delta[i, k] = (bits[k] + to_even) >> np.uint32(16)
    return squares
