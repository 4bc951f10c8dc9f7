"""Products of float32 matrices by the calling thread alone: BLAS would start further threads in each task."""

from typing import Any

import numpy as np

from daskw2v.kernels.jit import kernel
from daskw2v.types import Float32Array


def multiply(left: Float32Array, right: Float32Array) -> Float32Array:
    """Return left @ right for C-contiguous matrices of shapes (n, m) and (m, k) float32."""
    n_rows = len(left)
    left = np.concatenate([left, np.zeros((-n_rows % 4, left.shape[1]), np.float32)]) if n_rows % 4 else left
    product = np.zeros((len(left), right.shape[1]), np.float32)
    _add_products(left, right, product)
    return product[:n_rows]


@kernel
def _add_products(left: Any, right: Any, product: Any) -> None:
    """Add left @ right to `product`, four rows and two terms at a time, so that few numbers are read and written.

    The number of rows of `left` is a multiple of four.
    """
    last = right.shape[0] - 1
    for i in range(0, left.shape[0], 4):
        for k in range(0, right.shape[0], 2):
            next_row, has_next = min(k + 1, last), np.float32(k < last)
            a, b, c, d = left[i, k], left[i + 1, k], left[i + 2, k], left[i + 3, k]
            e, f = left[i, next_row] * has_next, left[i + 1, next_row] * has_next
            g, h = left[i + 2, next_row] * has_next, left[i + 3, next_row] * has_next
            for j in range(right.shape[1]):
                x, y = right[k, j], right[next_row, j]
                product[i, j] += a * x + e * y
                product[i + 1, j] += b * x + f * y
                product[i + 2, j] += c * x + g * y
                product[i + 3, j] += d * x + h * y
