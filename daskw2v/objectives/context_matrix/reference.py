"""Columns of the word-context matrix in float64 NumPy."""

import numpy as np

from daskw2v.kernels.rng import GOLDEN, draws, mix
from daskw2v.objectives.base import MatrixColumns
from daskw2v.objectives.context_matrix.updates import BETA1, BETA2, EPSILON
from daskw2v.objectives.noise import BATCH
from daskw2v.objectives.reference import Goals, Rows, gradient, pick_words
from daskw2v.types import Float64Array, UInt64Array


def train_columns(
    columns: MatrixColumns, rows: Rows, moments: list[Rows], fixed: Rows, negative: int, noise: UInt64Array
) -> Float64Array:
    """Train the rows of a part in place, and their moments with Adam; return the summed loss of each row, shape (n,).

    Parameters
    ----------
    columns
        The contexts of the n words in each column, with learning rate and key of draws.
    rows, moments
        Rows of the words, shape (n, D) float64; first and second moments of the same shape, or an empty list for plain
        gradient steps.
    fixed
        Rows of the other table, which do not move, shape (V, D) float64.
    negative, noise
        Number of negatives that the rows of a batch (BATCH neighbours) share in a column, and the alias table that they
        are drawn from, shape (V,) uint64.
    """
    losses = np.zeros(len(rows))
    for j in range(columns.contexts.shape[1]):
        number = columns.first + j
        for i in range(len(rows)):
            context = int(columns.contexts[i, j])
            step = np.zeros(rows.shape[1])
            if context >= 0:
                targets, signs = _draw_targets(columns, number, i, context, negative, noise)
                gains, loss = gradient(fixed[targets] @ rows[i], signs, 1.0)
                losses[i] += loss
                step = gains @ fixed[targets]
            if not moments:
                rows[i] += columns.alpha * step
                continue
            first, second = moments
            first[i] += (1.0 - float(BETA1)) * (step - first[i])
            second[i] += (1.0 - float(BETA2)) * (step**2 - second[i])
            mean, square = (m[i] / (1.0 - float(b) ** (number + 1)) for m, b in ((first, BETA1), (second, BETA2)))
            # Epsilon is added before the correction of the square
            small = EPSILON**2 / (1.0 - float(BETA2) ** (number + 1))
            rows[i] += columns.alpha * mean / np.sqrt(square + small)
    return losses


def _draw_targets(
    columns: MatrixColumns, number: int, row: int, context: int, negative: int, noise: UInt64Array
) -> Goals:
    """Return the context and negatives of a row in column `number`, counted over all epochs, and their signs.

    Both have the shape (1 + negative,).
    """
    counter = (number << 32) + (columns.row + row) // BATCH
    state = draws(columns.key, np.array([counter], np.uint64))
    negatives = pick_words(noise, mix.py_func(state + np.arange(1, negative + 1, dtype=np.uint64) * GOLDEN))
    signs = np.where(negatives == context, 0.0, -1.0)
    return np.concatenate([[context], negatives]), np.concatenate([[1.0], signs])
