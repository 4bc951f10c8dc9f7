"""Products of matrices in float32, by the calling thread alone: BLAS would start threads of its own in each task."""

from typing import Any

import numpy as np

from daskw2v.kernels.jit import kernel
from daskw2v.types import Float32Array


def multiply(left: Float32Array, right: Float32Array) -> Float32Array:
    """Return left @ right, of C-contiguous matrices of shapes (n, m) and (m, k) float32."""
    n_rows = len(left)
    left = np.concatenate([left, np.zeros((-n_rows % 4, left.shape[1]), np.float32)]) if n_rows % 4 else left
    product = np.zeros((len(left), right.shape[1]), np.float32)
    _add_products(left, right, product)
    return product[:n_rows]


@kernel
def _add_products(left: Any, right: Any, product: Any) -> None:
    """Add products to `product`, four rows and two terms at a time: few numbers are read and written per product."""
    last = right.shape[0] - 1
    for i in range(0, left.shape[0], 4):
        for k in range(0, right.shape[0], 2):
            after, keep = min(k + 1, last), np.float32(k < last)
            a, b, c, d = left[i, k], left[i + 1, k], left[i + 2, k], left[i + 3, k]
            e, f = left[i, after] * keep, left[i + 1, after] * keep
            g, h = left[i + 2, after] * keep, left[i + 3, after] * keep
            for j in range(right.shape[1]):
                x, y = right[k, j], right[after, j]
                product[i, j] += a * x + e * y
                product[i + 1, j] += b * x + f * y
                product[i + 2, j] += c * x + g * y
                product[i + 3, j] += d * x + h * y
