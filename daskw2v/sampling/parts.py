"""Parts of what a task makes, for tasks that each gather the same part of all pieces: a file as it is.

A file of n parts begins with their edges, (n + 1,) int64; the items follow, part after part.
"""

import numpy as np

from daskw2v.storage import Store

_EDGE = 8  # bytes


def part_bounds(piece: Store, name: str, part: int) -> tuple[int, int]:
    """Return which items of a file are its part of that number; raises as `Store.read_range` does."""
    start, stop = np.frombuffer(piece.read_range(name, _EDGE * part, _EDGE * (part + 2)), np.int64)
    return int(start), int(stop)


def read_items(piece: Store, name: str, n_parts: int, bounds: tuple[int, int], item_bytes: int = 8) -> bytes:
    """Read the items between bounds of a file of `n_parts` parts; raises as `Store.read_range` does."""
    head = _EDGE * (n_parts + 1)
    return piece.read_range(name, *(head + item_bytes * bound for bound in bounds))
