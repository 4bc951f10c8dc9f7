"""What an alias table stands for."""

import numpy as np

from daskw2v.types import Float64Array, UInt64Array


def shares_of(table: UInt64Array) -> Float64Array:
    """Return the distribution that a table stands for."""
    n = len(table)
    own = (table >> np.uint64(32)).astype(np.float64) / 2**32
    result = own / n
    np.add.at(result, (table & np.uint64(0xFFFFFFFF)).astype(np.int64), (1 - own) / n)
    return result
