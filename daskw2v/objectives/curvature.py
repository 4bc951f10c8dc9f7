"""The curvature of the loss along a row, from the rows that it is trained against."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from daskw2v.config.params import Params
from daskw2v.objectives.settings import ContextsTogether
from daskw2v.types import Float64Array


class Moments(NamedTuple):
    """Sums over the rows r of a table, each weighted by how often a window touches it.

    Parameters
    ----------
    weight
        Sum of the weights: touches of a window.
    first
        Sum of the rows, shape (D,) float64.
    second
        Sum of r rᵀ, shape (D, D) float64.
    """

    weight: float
    first: Float64Array
    second: Float64Array


def add_moments(*parts: Moments) -> Moments:
    """Return the moments of several groups of rows together."""
    weights, firsts, seconds = zip(*parts, strict=True)
    return Moments(sum(weights), sum(firsts), sum(seconds))


def curvature_of_pairs(_: Params, moments: Mapping[str, Moments]) -> dict[str, Float64Array]:
    """Return, for each table, the sum of r rᵀ over the rows r that a row meets whenever a window touches it, (D, D).

    The sum is the Hessian of the loss of one update by that row, up to the slope of the sigmoid. In skip-gram, each
    context of a window meets all targets of the window.
    """
    return {"input": moments["output"].second, "output": moments["input"].second}


def curvature_of_windows(params: Params, moments: Mapping[str, Moments]) -> dict[str, Float64Array]:
    """Return the curvature by table, (D, D), of windows whose contexts are trained by their mean or sum (CBOW).

    Contexts of a window move together along the mean of the rows, and apart from each other along the rest.
    """
    contexts = moments["input"].weight
    scale = 1 / contexts if ContextsTogether.of(params).cbow_mean else 1.0

    def of_hidden(weight: float, rows: Moments) -> Float64Array:
        row = rows.first / max(rows.weight, 1e-300)
        mean = np.outer(row, row)
        apart = rows.second / max(rows.weight, 1e-300) - mean
        return weight * (contexts * mean + apart)

    return {
        "input": of_hidden(scale * moments["output"].weight, moments["output"]),
        "output": of_hidden(scale**2 * contexts, moments["input"]),
    }
