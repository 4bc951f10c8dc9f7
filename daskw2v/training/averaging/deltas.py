"""What replicas that trained apart changed: the sum of their differences from the common model."""

from typing import Any, NamedTuple

import numpy as np

from daskw2v.cluster.shared_memory import by_fields
from daskw2v.kernels.jit import kernel
from daskw2v.types import Float32Array


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


def add_deltas(base: Float32Array, *trained: Float32Array) -> Deltas:
    """Sum the deltas of replicas' blocks from the common one; change nothing in place."""
    total = np.zeros_like(base)
    changed = np.zeros((len(base), 1), np.float32)
    for block in trained:  # in order: float addition is not associative, and results must repeat
        _add_delta(total, changed, base, block)
    return Deltas(total, changed, len(trained))


@kernel
def _add_delta(total: Any, changed: Any, base: Any, block: Any) -> None:
    """Add one replica's delta in one pass over memory, where NumPy would take four."""
    for row in range(base.shape[0]):
        differs = False
        for column in range(base.shape[1]):
            delta = block[row, column] - base[row, column]
            total[row, column] += delta
            differs |= delta != 0
        changed[row, 0] += differs


def join_deltas(*groups: Deltas) -> Deltas:
    """Add the sums of several groups of replicas."""
    first, *rest = groups
    total, changed = first.total.copy(), first.changed.copy()
    for group in rest:
        total += group.total
        changed += group.changed
    return Deltas(total, changed, sum(group.n for group in groups))
