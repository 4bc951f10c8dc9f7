"""The kernels of product quantization (Jegou et al. 2011, "Product Quantization for Nearest Neighbor Search").

A vector is cut into parts, and each part is named by the nearest of its part's centroids (section II-B).
"""

from typing import Any

import numpy as np

from daskw2v.kernels.jit import kernel
from daskw2v.types import Float32Array, Float64Array, UInt8Array

_ROWS = 64  # of a table, which all queries meet before the next: they stay in the cache


@kernel
def assign(vectors: Any, centroids: Any, distances: Any, codes: Any) -> None:
    """Write the number of the nearest centroid of each of n parts to `codes`, shape (n,) uint8.

    Of equally near ones it is the first.

    Parameters
    ----------
    vectors, centroids
        The parts, shape (n, size), and the centroids, shape (size, K) float32: a line for each dimension.
    distances
        Room for K float32.
    """
    for i in range(len(vectors)):
        distances[:] = 0
        for d in range(len(centroids)):
            value = vectors[i, d]
            for k in range(len(distances)):
                gap = centroids[d, k] - value
                distances[k] += gap * gap
        best = 0
        for k in range(1, len(distances)):
            if distances[k] < distances[best]:
                best = k
        codes[i] = best


@kernel
def sums(codes: Any, first: int, stop: int, tables: Any, start: int, most: Any) -> None:
    """Write products with the words first:stop, which their codes stand for, to most[:, first - start : stop - start].

    This is the asymmetric computation (section III-A), of inner products: a query is not quantized.

    Parameters
    ----------
    codes
        Numbers of each word's centroids, shape (words, parts) uint8.
    tables
        Products of each query's parts with all centroids, shape (queries, parts, K) float32.
    """
    for begin in range(first, stop, _ROWS):
        for query in range(len(tables)):
            for word in range(begin, min(begin + _ROWS, stop)):
                total = np.float32(0.0)
                for part in range(codes.shape[1]):
                    total += tables[query, part, codes[word, part]]
                most[query, word - start] = total


def assign_reference(vectors: Float32Array, centroids: Float32Array) -> UInt8Array:
    """Return what `assign` writes, from distances in float64."""
    gaps = vectors.astype(np.float64)[:, :, None] - centroids.astype(np.float64)[None]
    return np.asarray((gaps**2).sum(axis=1).argmin(axis=1), np.uint8)


def sums_reference(codes: UInt8Array, tables: Float32Array) -> Float64Array:
    """Return what `sums` writes of all words, in float64."""
    parts = np.arange(codes.shape[1])
    return np.asarray(tables.astype(np.float64)[:, parts[None], codes].sum(axis=2))
