"""Rows of n-grams that are fitted to words' vectors, so that a model has vectors of words that it has not seen.

Each word's vector is modelled as a sum of the rows of its n-grams, and the rows are fitted by ridge regression. The
solver is the method of conjugate gradients, preconditioned by the diagonal (Jacobi; Shewchuk 1994, section 12), since
an n-gram occurs in one word or in thousands. Mimick (Pinter et al. 2017) learns the spelling of trained vectors by a
network instead.

Columns are independent problems. Threads share them, and their number does not change the bits.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from daskw2v.features.words import WordFeatures
from daskw2v.kernels.cores import usable_cores
from daskw2v.kernels.jit import kernel
from daskw2v.types import Float32Array, Float64Array

RIDGE = 0.1
STEPS = 16
_COLUMNS = 16  # columns that a thread fits at a time


def fit_rows(
    features: WordFeatures,
    n_rows: int,
    targets: Float32Array,
    weights: Float32Array,
    ridge: float = RIDGE,
    steps: int = STEPS,
) -> Float32Array:
    """Return rows of features whose sums approximate the words' targets, shape (n_rows, D) float32.

    The rows minimize weight * |sum of a word's rows / sqrt(number of its rows) - target|^2, added up over words, plus
    ridge * |rows|^2.

    Parameters
    ----------
    features
        The features of n words. Each feature has a row. The weights of features and own rows are not read.
    n_rows
        Number of rows.
    targets, weights
        A vector and a weight for each word, shapes (n, D) and (n,) float32.
    ridge
        Weight of the squared rows, above 0.
    steps
        Number of steps of conjugate gradients.
    """
    sizes = np.maximum(1, np.diff(features.offsets))
    scales = (np.sqrt(weights) / np.sqrt(sizes)).astype(np.float32)  # factor of each word's sum of rows
    slabs = [slice(start, start + _COLUMNS) for start in range(0, targets.shape[1], _COLUMNS)]

    def fit(slab: slice) -> Float32Array:
        weighted = np.ascontiguousarray(targets[:, slab]) * np.sqrt(weights)[:, None]
        return _fit_columns(features, n_rows, weighted, scales, np.float32(ridge), steps)

    with ThreadPoolExecutor(min(len(slabs), usable_cores())) as pool:
        return np.concatenate(list(pool.map(fit, slabs)), axis=1)


def fit_rows_exactly(
    features: WordFeatures, n_rows: int, targets: Float64Array, weights: Float64Array, ridge: float
) -> Float64Array:
    """Return the rows that `fit_rows` approximates, solved from the normal equations, shape (n_rows, D) float64."""
    words = np.repeat(np.arange(features.n_words), np.diff(features.offsets))
    matrix = np.zeros((features.n_words, n_rows))
    np.add.at(matrix, (words, features.rows), 1.0)
    matrix *= (np.sqrt(weights) / np.sqrt(np.maximum(1, np.diff(features.offsets))))[:, None]
    normal = matrix.T @ matrix + ridge * np.eye(n_rows)
    return np.asarray(np.linalg.solve(normal, matrix.T @ (targets * np.sqrt(weights)[:, None])), np.float64)


def _fit_columns(
    features: WordFeatures, n_rows: int, targets: Float32Array, scales: Float32Array, ridge: np.float32, steps: int
) -> Float32Array:
    """Return the rows after `steps` steps of conjugate gradients from zeros, shape (n_rows, columns) float32.

    With A the matrix of scales, words by rows, the equations are (A'A + ridge) rows = A' targets. `targets` are columns
    of the weighted targets, shape (n, columns); `scales` have the shape (n,).
    """
    diagonal = np.full(n_rows, ridge, np.float32)
    np.add.at(diagonal, features.rows, np.repeat(scales * scales, np.diff(features.offsets)))
    residual = np.zeros((n_rows, targets.shape[1]), np.float32)
    _add_to_rows(features.offsets, features.rows, scales, targets, residual)
    rows, sums, product = np.zeros_like(residual), np.empty_like(targets), np.empty_like(residual)
    preconditioned = residual / diagonal[:, None]
    direction, error = preconditioned.copy(), _multiply_columns(residual, preconditioned)
    for _ in range(steps):
        _sum_rows(features.offsets, features.rows, scales, direction, sums)
        np.multiply(direction, ridge, out=product)
        _add_to_rows(features.offsets, features.rows, scales, sums, product)
        length = _divide_columns(error, _multiply_columns(direction, product))
        rows += length * direction
        residual -= length * product
        np.divide(residual, diagonal[:, None], out=preconditioned)
        previous_error, error = error, _multiply_columns(residual, preconditioned)
        direction *= _divide_columns(error, previous_error)
        direction += preconditioned
    return rows


def _multiply_columns(first: Float32Array, second: Float32Array) -> Float64Array:
    """Return the dot product of each column of `first` with the same column of `second`, shape (columns,)."""
    return np.asarray(np.einsum("rc,rc->c", first, second, dtype=np.float64))


def _divide_columns(numerator: Float64Array, denominator: Float64Array) -> Float32Array:
    """Return the quotient of each column, 0 where the denominator is 0, shape (columns,) float32."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0).astype(np.float32)


@kernel
def _sum_rows(offsets: Any, rows: Any, scales: Any, table: Any, sums: Any) -> None:
    """Write the scaled sum of each word's rows of `table` to `sums`, shape (n, columns)."""
    for word in range(len(scales)):
        sums[word] = 0.0
        for i in range(offsets[word], offsets[word + 1]):
            row = np.int64(rows[i])
            for k in range(table.shape[1]):
                sums[word, k] += table[row, k]
        for k in range(table.shape[1]):
            sums[word, k] *= scales[word]


@kernel
def _add_to_rows(offsets: Any, rows: Any, scales: Any, values: Any, table: Any) -> None:
    """Add each word's scaled values, shape (n, columns), to the word's rows of `table`."""
    for word in range(len(scales)):
        for i in range(offsets[word], offsets[word + 1]):
            row = np.int64(rows[i])
            for k in range(table.shape[1]):
                table[row, k] += scales[word] * values[word, k]
