"""What an alias table stands for."""

import numpy as np


def shares_of(table):
    """Return the distribution that a table stands for."""
    n = len(table)
    own = (table >> np.uint64(32)).astype(np.float64) / 2**32
    result = own / n
    np.add.at(result, (table & np.uint64(0xFFFFFFFF)).astype(np.int64), (1 - own) / n)
    return result
