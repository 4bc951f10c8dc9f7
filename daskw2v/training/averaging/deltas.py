"""What replicas that trained apart changed: each one's difference from the common model, and the sum of them.

A replica's difference travels in bfloat16, half the bytes: float32 without its lower 16 bits, rounded to nearest.
"""

from typing import Any, NamedTuple

import numpy as np

from daskw2v.cluster.shared_memory import by_fields, room
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

    def on_host(self) -> "Delta":
        """Return it in this machine's memory, where it is."""
        return self

    def within(self, some: slice) -> "Delta":
        """Return those of some consecutive rows, counted from the first of them."""
        if self.rows is None:
            return Delta(self.bits[some])
        first, last = np.searchsorted(self.rows, (some.start, some.stop))
        return Delta(self.bits[first:last], self.rows[first:last] - np.int32(some.start))


@by_fields
class Deltas(NamedTuple):
    """The sum of the replicas' differences from the common model, row by row.

    Parameters
    ----------
    total
        Sum of the deltas, shape (rows, D) float32.
    changed
        Replicas that changed each row, shape (rows, 1) float32.
    n
        Number of replicas.
    """

    total: Float32Array
    changed: Float32Array
    n: int


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


def add_deltas(length: int, *deltas: Delta) -> Deltas:
    """Sum the deltas of replicas in so many rows; change nothing in place."""
    total = np.zeros((length, deltas[0].bits.shape[1]), np.float32)
    changed = np.zeros((length, 1), np.float32)
    for bits, rows in deltas:  # in order: float addition is not associative, and results must repeat
        _add_delta(total, changed, bits, np.empty(0, np.int32) if rows is None else rows, rows is None)
    return Deltas(total, changed, len(deltas))


@kernel
def _add_delta(total: Any, changed: Any, delta: Any, rows: Any, whole: Any) -> None:
    row = np.empty(total.shape[1], np.float32)
    bits = row.view(np.uint32)
    for i in range(delta.shape[0]):
        at = i if whole else rows[i]
        any_bit = np.uint16(0)
        for k in range(total.shape[1]):
            any_bit |= delta[i, k]
            bits[k] = np.uint32(delta[i, k]) << np.uint32(16)
        for k in range(total.shape[1]):
            total[at, k] += row[k]
        changed[at, 0] += (any_bit & np.uint16(0x7FFF)) != 0


def join_deltas(*groups: Deltas) -> Deltas:
    """Add the sums of several groups of replicas."""
    first, *rest = groups
    total, changed = first.total.copy(), first.changed.copy()
    for group in rest:
        total += group.total
        changed += group.changed
    return Deltas(total, changed, sum(group.n for group in groups))
