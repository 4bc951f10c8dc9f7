"""The curvature of the loss along a row, from the rows that it is trained against."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from daskw2v.config.params import Params
from daskw2v.objectives.settings import ContextsTogether
from daskw2v.types import Float64Array


class Moments(NamedTuple):
    """Sums over the rows r of a table, each weighted by the chance that a window touches the row.

    Parameters
    ----------
    weight
        Sum of the weights: the mean number of rows that a window touches.
    first
        Sum of the rows, shape (D,) float64.
    second
        Sum of r rᵀ, shape (D, D) float64.
    """

    weight: float
    first: Float64Array
    second: Float64Array


def add_moments(*parts: Moments) -> Moments:
    """Return the moments of all rows from the moments of groups of rows."""
    weights, firsts, seconds = zip(*parts, strict=True)
    return Moments(sum(weights), sum(firsts), sum(seconds))


def curvature_of_pairs(_: Params, moments: Mapping[str, Moments]) -> dict[str, Float64Array]:
    """Return the curvature of the loss along the rows of each table, (D, D), of windows that train pairs (skip-gram).

    `moments` has the `Moments` of each table's rows, by table.

    It is the sum of r rᵀ over the rows r that a row is trained against when a window touches it: the Hessian of the
    loss of one update, up to the slope of the sigmoid. Each context of a window meets all targets of the window.
    """
    return {"input": moments["output"].second, "output": moments["input"].second}


def curvature_of_windows(params: Params, moments: Mapping[str, Moments]) -> dict[str, Float64Array]:
    """Return the curvature of the loss along the rows of each table, (D, D), of windows with a hidden vector (CBOW).

    Contexts of a window move together along the mean of the rows, and apart from each other along the rest. Arguments
    as in `curvature_of_pairs`.
    """
    contexts = moments["input"].weight
    scale = 1 / contexts if ContextsTogether.of(params).cbow_mean else 1.0

    def hidden_curvature(weight: float, rows: Moments) -> Float64Array:
        row = rows.first / max(rows.weight, 1e-300)
        mean = np.outer(row, row)
        apart = rows.second / max(rows.weight, 1e-300) - mean
        return weight * (contexts * mean + apart)

    return {
        "input": hidden_curvature(scale * moments["output"].weight, moments["output"]),
        "output": hidden_curvature(scale**2 * contexts, moments["input"]),
    }
