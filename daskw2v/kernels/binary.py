"""The kernel that searches a table of signs, one bit for each dimension."""

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from daskw2v.kernels.jit import kernel
from daskw2v.types import Float32Array, UInt64Array

_ROWS = 256  # of a table, which all queries meet before the next: they stay in the cache


@intrinsic
def _ones(typingctx: Any, bits: Any) -> Any:
    """Return how many bits of a uint64 are 1."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


@kernel
def agreements(codes: Any, first: int, stop: int, queries: Any, start: int, most: Any) -> None:
    """Write minus the Hamming distances of the words first:stop to most[:, first - start : stop - start].

    `codes` and `queries` have the bits of words and queries, shapes (words, W) and (queries, W) uint64.
    """
    for begin in range(first, stop, _ROWS):
        for query in range(len(queries)):
            for word in range(begin, min(begin + _ROWS, stop)):
                differ = 0
                for k in range(codes.shape[1]):
                    differ += _ones(codes[word, k] ^ queries[query, k])
                most[query, word - start] = np.float32(-differ)


def reference(codes: UInt64Array, queries: UInt64Array) -> Float32Array:
    """Return what `agreements` writes of all words."""
    return -np.bitwise_count(queries[:, None] ^ codes[None]).sum(axis=2).astype(np.float32)
