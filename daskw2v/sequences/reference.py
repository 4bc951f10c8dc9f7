"""The truth that walks are held to: probabilities of a step, in float64 NumPy."""

import numpy as np
import numpy.typing as npt

from daskw2v.sequences.rows import Graph


def step_probabilities(
    graph: Graph, node: int, previous: int | None = None, p: float = 1.0, q: float = 1.0
) -> npt.NDArray[np.float64]:
    """Return the probability of each node to be the next, shape (nodes,); all 0 where no edge leaves.

    Parameters
    ----------
    graph
        Where.
    node, previous
        Where the walk is, and where it came from; None where it begins.
    p, q
        As of `walk`.
    """
    mass = _weights(graph, node)
    if previous is not None:
        bias = np.where(_weights(graph, previous) > 0, 1.0, 1 / q)
        bias[previous] = 1 / p
        mass *= bias
    return mass / mass.sum() if mass.any() else mass


def _weights(graph: Graph, node: int) -> npt.NDArray[np.float64]:
    """Return the weight of a node's edge to each node, 0 where there is none."""
    row, weights = slice(graph.starts[node], graph.starts[node + 1]), np.zeros(len(graph.starts) - 1)
    sums = graph.weights[row] if len(graph.weights) else np.arange(1.0, row.stop - row.start + 1)
    weights[graph.targets[row]] = np.diff(sums, prepend=0.0)
    return weights
