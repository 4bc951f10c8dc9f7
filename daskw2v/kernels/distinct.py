"""Finds distinct integers by sorting: `np.unique` hashes since NumPy 2.3, which takes tens of times as long."""

from typing import Any

import numpy as np


def distinct(values: Any) -> Any:
    """Return the distinct values of an array of integers, shape (n,), in ascending order and of the same dtype."""
    ascending = np.sort(values)
    return ascending[np.append(True, ascending[1:] != ascending[:-1])[: len(ascending)]]
