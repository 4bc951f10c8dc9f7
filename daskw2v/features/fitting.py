"""Rows of n-grams that are fitted to words' vectors: any model then has vectors of words that it has not seen.

A word's vector is taken for a sum of the rows of its n-grams. They are found by least squares with a ridge, by
conjugate gradients, preconditioned by the diagonal (Jacobi; Shewchuk 1994, section 12): n-grams stand in from one to
thousands of words. Learning the spelling of trained vectors is that of Mimick (Pinter et al. 2017), which has a network
for it.

Columns are problems of their own, so threads share them out with the same bits.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from daskw2v.features.words import WordFeatures
from daskw2v.kernels.jit import kernel
from daskw2v.types import Float32Array, Float64Array

RIDGE = 0.1  # weight of the squares of rows against those of errors
STEPS = 16
_COLUMNS = 16  # that one thread fits at a time


def fit_rows(
    features: WordFeatures, n_rows: int, targets: Float32Array, weights: Float32Array, ridge: float = RIDGE,
    steps: int = STEPS,
) -> Float32Array:  # fmt: skip
    """Return rows of features, shape (n_rows, D) float32, whose sums are like the words' targets.

    Minimizes the sum over words of weight * |sum of rows / sqrt(number of rows) - target|^2, plus ridge * |rows|^2.

    Parameters
    ----------
    features
        Of n words; their own weights do not matter.
    n_rows
        Number of rows.
    targets, weights
        Of each word, shapes (n, D) and (n,) float32.
    ridge, steps
        Weight of the ridge, above 0; and steps of the solver.
    """
    scales = _scales(features, weights)
    slabs = [slice(start, start + _COLUMNS) for start in range(0, targets.shape[1], _COLUMNS)]

    def fit(slab: slice) -> Float32Array:
        wanted = np.ascontiguousarray(targets[:, slab]) * np.sqrt(weights)[:, None]
        return _fit(features, n_rows, wanted, scales, np.float32(ridge), steps)

    with ThreadPoolExecutor(min(len(slabs), os.cpu_count() or 1)) as pool:
        return np.concatenate(list(pool.map(fit, slabs)), axis=1)


def reference(
    features: WordFeatures, n_rows: int, targets: Float64Array, weights: Float64Array, ridge: float
) -> Float64Array:
    """Return the rows that `fit_rows` comes close to, in float64, by solving the normal equations."""
    words = np.repeat(np.arange(features.n_words), np.diff(features.offsets))
    matrix = np.zeros((features.n_words, n_rows))
    np.add.at(matrix, (words, features.rows), 1.0)
    matrix *= (np.sqrt(weights) / np.sqrt(np.maximum(1, np.diff(features.offsets))))[:, None]
    normal = matrix.T @ matrix + ridge * np.eye(n_rows)
    return np.asarray(np.linalg.solve(normal, matrix.T @ (targets * np.sqrt(weights)[:, None])), np.float64)


def _scales(features: WordFeatures, weights: Float32Array) -> Float32Array:
    """Return what each word's sum of rows is multiplied by, shape (n,)."""
    sizes = np.maximum(1, np.diff(features.offsets))
    return (np.sqrt(weights) / np.sqrt(sizes)).astype(np.float32)


def _fit(
    features: WordFeatures, n_rows: int, wanted: Float32Array, scales: Float32Array, ridge: np.float32, steps: int
) -> Float32Array:
    diagonal = np.full(n_rows, ridge, np.float32)
    np.add.at(diagonal, features.rows, np.repeat(scales * scales, np.diff(features.offsets)))
    left = np.zeros((n_rows, wanted.shape[1]), np.float32)  # what is not explained yet
    _spread(features.offsets, features.rows, scales, wanted, left)
    rows, sums, product = np.zeros_like(left), np.empty_like(wanted), np.empty_like(left)
    nearer = left / diagonal[:, None]
    way, size = nearer.copy(), _dots(left, nearer)
    for _ in range(steps):
        _sum_up(features.offsets, features.rows, scales, way, sums)
        np.multiply(way, ridge, out=product)
        _spread(features.offsets, features.rows, scales, sums, product)
        step = _ratio(size, _dots(way, product))
        rows += step * way
        left -= step * product
        np.divide(left, diagonal[:, None], out=nearer)
        before, size = size, _dots(left, nearer)
        way *= _ratio(size, before)
        way += nearer
    return rows


def _dots(first: Float32Array, second: Float32Array) -> Float64Array:
    return np.asarray(np.einsum("rc,rc->c", first, second, dtype=np.float64))


def _ratio(part: Float64Array, whole: Float64Array) -> Float32Array:
    """Return the ratio of each column; 0 where nothing is left to explain."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0).astype(np.float32)


@kernel
def _sum_up(offsets: Any, rows: Any, scales: Any, table: Any, sums: Any) -> None:
    """Write the scaled sum of each word's rows."""
    for word in range(len(scales)):
        sums[word] = 0.0
        for i in range(offsets[word], offsets[word + 1]):
            row = np.int64(rows[i])
            for k in range(table.shape[1]):
                sums[word, k] += table[row, k]
        for k in range(table.shape[1]):
            sums[word, k] *= scales[word]


@kernel
def _spread(offsets: Any, rows: Any, scales: Any, values: Any, table: Any) -> None:
    """Add each word's scaled values to its rows."""
    for word in range(len(scales)):
        for i in range(offsets[word], offsets[word + 1]):
            row = np.int64(rows[i])
            for k in range(table.shape[1]):
                table[row, k] += scales[word] * values[word, k]
