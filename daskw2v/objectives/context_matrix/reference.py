"""Columns of the word-context matrix in float64 NumPy."""

import numpy as np

from daskw2v.kernels.rng import GOLDEN, draws, mix
from daskw2v.objectives.base import MatrixColumns
from daskw2v.objectives.context_matrix.updates import BETA1, BETA2, EPSILON
from daskw2v.objectives.noise import BATCH
from daskw2v.objectives.reference import Goals, Rows, gradient, picked
from daskw2v.types import Float64Array, UInt64Array


def train_columns(
    columns: MatrixColumns, rows: Rows, moments: list[Rows], others: Rows, negative: int, noise: UInt64Array
) -> Float64Array:
    """Train the rows of a part in place, and their moments if there are any (Adam); return each row's summed loss.

    Parameters
    ----------
    columns
        The columns.
    rows, moments
        Of the part, shapes (n, D) float64; first and second moments, or none.
    others
        Rows of the other table, which are fixed, shape (V, D) float64.
    negative, noise
        Negatives of a batch, and the alias table that they are drawn from, shape (V,) uint64.
    """
    losses = np.zeros(len(rows))
    for j in range(columns.contexts.shape[1]):
        number = columns.first + j
        for i in range(len(rows)):
            context = int(columns.contexts[i, j])
            move = np.zeros(rows.shape[1])
            if context >= 0:
                targets, signs = _targets(columns, number, i, context, negative, noise)
                gains, loss = gradient(others[targets] @ rows[i], signs, 1.0)
                losses[i] += loss
                move = gains @ others[targets]
            if not moments:
                rows[i] += columns.alpha * move
                continue
            first, second = moments
            first[i] += (1.0 - float(BETA1)) * (move - first[i])
            second[i] += (1.0 - float(BETA2)) * (move**2 - second[i])
            mean, square = (m[i] / (1.0 - float(b) ** (number + 1)) for m, b in ((first, BETA1), (second, BETA2)))
            # Epsilon is added before the correction of the square
            small = EPSILON**2 / (1.0 - float(BETA2) ** (number + 1))
            rows[i] += columns.alpha * mean / np.sqrt(square + small)
    return losses


def _targets(columns: MatrixColumns, number: int, row: int, context: int, negative: int, noise: UInt64Array) -> Goals:
    """Return a row's context and negatives in a column, and their signs, shapes (1 + negative,)."""
    counter = (number << 32) + (columns.row + row) // BATCH
    state = draws(columns.key, np.array([counter], np.uint64))
    negatives = picked(noise, mix.py_func(state + np.arange(1, negative + 1, dtype=np.uint64) * GOLDEN))
    signs = np.where(negatives == context, 0.0, -1.0)
    return np.concatenate([[context], negatives]), np.concatenate([[1.0], signs])
