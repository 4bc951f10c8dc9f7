"""Reference of the walks: probabilities of a step, in float64 NumPy."""

import numpy as np

from daskw2v.sequences.rows import Graph
from daskw2v.types import Float64Array


def step_probabilities(
    graph: Graph, node: int, previous: int | None = None, p: float = 1.0, q: float = 1.0
) -> Float64Array:
    """Return the probability of each node to be the next, shape (nodes,); all 0 if no edge leaves the node.

    Parameters
    ----------
    graph
        The graph.
    node, previous
        Current node of the walk, and the one before it; None at the start.
    p, q
        As in `walk`.
    """
    mass = _weights(graph, node)
    if previous is not None:
        bias = np.where(_weights(graph, previous) > 0, 1.0, 1 / q)
        bias[previous] = 1 / p
        mass *= bias
    return mass / mass.sum() if mass.any() else mass


def _weights(graph: Graph, node: int) -> Float64Array:
    """Return the weight of a node's edge to each node, 0 without an edge."""
    row, weights = slice(graph.starts[node], graph.starts[node + 1]), np.zeros(len(graph.starts) - 1)
    sums = graph.weights[row] if len(graph.weights) else np.arange(1.0, row.stop - row.start + 1)
    weights[graph.targets[row]] = np.diff(sums, prepend=0.0)
    return weights
