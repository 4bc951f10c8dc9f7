"""The kernel that searches a table of int8."""

from typing import Any

import numpy as np

from daskw2v.kernels.jit import kernel
from daskw2v.types import Float64Array

_ROWS = 64  # of a table, which all queries meet before the next: they stay in the cache


@kernel
def bounds(
    codes: Any, steps: Any, errors: Any, first: int, stop: int, queries: Any, scales: Any, start: int, most: Any
) -> None:
    """Write the most that the cosines of the words first:stop may be to most[:, first - start : stop - start].

    That is the product of a word's int8 and a query's int16, both times their steps, and the word's error. Products
    add up in int32, which queries have to be small enough for (`table.quantized_queries`).
    """
    for begin in range(first, stop, _ROWS):
        for query in range(len(queries)):
            for word in range(begin, min(begin + _ROWS, stop)):
                dot = np.int32(0)
                for k in range(codes.shape[1]):
                    dot = np.int32(dot + np.int32(codes[word, k]) * np.int32(queries[query, k]))
                most[query, word - start] = np.float32(dot) * (steps[word] * scales[query]) + errors[word]


def reference(codes: Any, steps: Any, errors: Any, queries: Any, scales: Any) -> Float64Array:
    """Return what `bounds` writes of all words, in float64."""
    cosines = (queries.astype(np.float64) * scales[:, None]) @ (codes.astype(np.float64) * steps[:, None]).T
    return np.asarray(cosines + errors)
