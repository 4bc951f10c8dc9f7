"""Targets of hierarchical softmax on an NVIDIA GPU: the inner nodes on a word's path, from the leaf up."""

from functools import lru_cache
from typing import Any

import numpy as np
from numba import int32

from daskw2v.kernels.cuda.warp import LANES, at, device
from daskw2v.objectives.cuda.shape import Aim, Shape

_NONE, _ONE = np.float32(0.0), np.float32(1.0)


@lru_cache(maxsize=64)
def path_targets(shape: Shape, depth: int) -> Aim:
    """Return the nodes of a center's path, at most `depth`, as targets; kernels get `vocabulary.huffman.Tree`."""
    size = shape.group
    longest = max(size, -(-depth // size) * size)

    @device
    def write(
        tree: Any, text: Any, center: Any, first: Any, last: Any, number: Any, lane: Any, listed: Any, signs: Any
    ) -> Any:
        word = at(text.tokens, center)
        start, stop = at(tree.starts, word), at(tree.starts, word + 1)
        n = int32(stop - start)
        for k in range(lane, (n + size - 1) // size * size, LANES):
            step = at(tree.steps, stop - 1 - k if k < n else start)
            listed[np.uint64(k)] = ~step if step < 0 else step
            signs[np.uint64(k)] = (-_ONE if step < 0 else _ONE) if k < n else _NONE
        return n

    return Aim(longest, size, write, top=shape.top)
