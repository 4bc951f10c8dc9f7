"""References of the walks: probabilities of a step, in float64 NumPy, and walks along a metapath by the same draws."""

from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np

from daskw2v.kernels.rng import draws
from daskw2v.sequences.rows import GraphRows
from daskw2v.sequences.steps import DRAWS
from daskw2v.types import Float64Array


def step_probabilities(
    graph: GraphRows, node: int, previous: int | None = None, p: float = 1.0, q: float = 1.0
) -> Float64Array:
    """Return the probability of each node to be the next, shape (nodes,); all 0 if no edge leaves the node.

    Parameters
    ----------
    graph
        The graph, of nodes without types.
    node, previous
        Current node of the walk, and the one before it; None at the start.
    p, q
        Settings of `Walks`: a step back has the bias 1/p, a step to a node without an edge from the previous one 1/q.
    """
    mass = _edge_weights(graph, node)
    if previous is not None:
        bias = np.where(_edge_weights(graph, previous) > 0, 1.0, 1 / q)
        bias[previous] = 1 / p
        mass *= bias
    return mass / mass.sum() if mass.any() else mass


def _edge_weights(graph: GraphRows, node: int) -> Float64Array:
    """Return the weight of a node's edge to each node, 0 without an edge, shape (nodes,)."""
    row, weights = slice(graph.starts[node], graph.starts[node + 1]), np.zeros(len(graph.starts) - 1)
    cumulative = graph.weights[row] if len(graph.weights) else np.arange(1.0, row.stop - row.start + 1)
    weights[graph.targets[row]] = np.diff(cumulative, prepend=0.0)
    return weights


def metapath_walk(
    edges: Mapping[int, Mapping[int, float]],
    types: Sequence[str],
    metapath: Sequence[str],
    length: int,
    key: np.uint64,
    first: int,
) -> list[int]:
    """Return the nodes of a walk along a metapath (metapath2vec, Dong, Chawla and Swami 2017, section 3.2).

    Parameters
    ----------
    edges
        Weight of the edge to each neighbour of a node.
    types
        Type of each node, by its number.
    metapath
        Types of the nodes of a walk, of which the last is the first.
    length
        Greatest number of nodes of the walk.
    key
        Key of the random numbers of all walks of one number, as in `StepRule`.
    first
        First node.
    """
    walk, cycle = [first], metapath[:-1]
    stream = draws(key, np.array([first], np.uint64))
    while len(walk) < length:
        wanted_type = cycle[len(walk) % len(cycle)]
        row = [(node, weight) for node, weight in sorted(edges[walk[-1]].items()) if types[node] == wanted_type]
        if not row:
            break
        sums = list(accumulate(weight for _, weight in row))
        bits = draws(stream[0], np.array([(len(walk) - 1) * DRAWS], np.uint64))[0]
        position = int(bits >> np.uint64(11)) * 2.0**-53 * sums[-1]
        walk.append(next((node for (node, _), end in zip(row, sums, strict=True) if end > position), row[-1][0]))
    return walk
