"""Kernels of random walks. A step chooses an edge by its weight and by the node before the current one.

A walk is a pure function of (seed, number of the walk, first node): all its draws are one stream.

A second-order walk (node2vec, Grover and Leskovec 2016) that came from t to v goes to x with a probability
proportional to the weight of the edge from v to x times a bias: 1/p if x is t, 1 if t has an edge to x, else 1/q. No
tables for pairs of nodes are needed: x is drawn by weight and accepted with probability bias / max(1, 1/q), otherwise
drawn again (rejection sampling). If 1/p exceeds this bound, the excess is drawn as a separate outcome (as in
KnightKing, Yang et al. 2019), so a small p costs nothing. After TRIES rejections the step is drawn exactly, from all
edges of v. Draws are independent, so the distribution is the same, and the time of a step is bounded.
"""

from typing import Any

import numpy as np

from daskw2v.kernels.jit import inline, kernel
from daskw2v.kernels.rng import below, draw
from daskw2v.sequences.rows import Graph
from daskw2v.types import Int32Array, Int64Array

TRIES = 32
_11, _UNIT = np.uint64(11), 2.0**-53


@inline
def _uniform(bits: Any) -> Any:
    """Return a number in [0, 1) from 64 random bits."""
    return np.float64(bits >> _11) * _UNIT


@kernel
def _total(graph: Graph, node: int) -> float:
    """Return the total weight of a node's edges; the node has at least one."""
    begin, end = graph.starts[node], graph.starts[node + 1]
    return graph.weights[end - 1] if len(graph.weights) else float(end - begin)


@kernel
def _weight(graph: Graph, node: int, edge: int) -> float:
    """Return the weight of an edge of a node."""
    if not len(graph.weights):
        return 1.0
    return graph.weights[edge] - (graph.weights[edge - 1] if edge > graph.starts[node] else 0.0)


@kernel
def _edge_at(graph: Graph, node: int, weight: float) -> int:
    """Return the edge of a node at a cumulative weight in 0..total."""
    begin, end = graph.starts[node], graph.starts[node + 1]
    if not len(graph.weights):
        return min(begin + np.int64(weight), end - 1)
    last = end - 1  # the result if rounding exceeds the total
    while begin < last:
        middle = (begin + last) // 2
        if graph.weights[middle] > weight:
            last = middle
        else:
            begin = middle + 1
    return begin


@kernel
def _edge_to(graph: Graph, node: int, target: int) -> int:
    """Return a node's edge to another node, or -1 if it has none."""
    begin, end = graph.starts[node], graph.starts[node + 1]
    while begin < end:
        middle = (begin + end) // 2
        if graph.targets[middle] < target:
            begin = middle + 1
        else:
            end = middle
    return begin if begin < graph.starts[node + 1] and graph.targets[begin] == target else -1


@kernel
def _bias(graph: Graph, previous: int, to: int, back: float, far: float) -> float:
    if to == previous:
        return back
    return 1.0 if _edge_to(graph, previous, to) >= 0 else far


@kernel
def _exact(graph: Graph, node: int, previous: int, back: float, far: float, uniform: float) -> int:
    """Return the target of a second-order step, drawn from the biased weights of all edges."""
    begin, end = graph.starts[node], graph.starts[node + 1]
    total = 0.0
    for edge in range(begin, end):
        total += _weight(graph, node, edge) * _bias(graph, previous, graph.targets[edge], back, far)
    left = uniform * total
    for edge in range(begin, end - 1):
        left -= _weight(graph, node, edge) * _bias(graph, previous, graph.targets[edge], back, far)
        if left < 0:
            return graph.targets[edge]
    return graph.targets[end - 1]


@kernel
def _second_order(graph: Graph, node: int, previous: int, back: float, far: float, key: np.uint64, at: int) -> int:
    """Return the target of a step after `previous`; its draws are those of `key` from `at` on."""
    bound = max(1.0, far)
    even = _total(graph, node) * bound
    extra = 0.0  # weight of the step back beyond the bound
    if back > bound:
        edge = _edge_to(graph, node, previous)
        extra = _weight(graph, node, edge) * (back - bound) if edge >= 0 else 0.0
    for i in range(TRIES):
        place = _uniform(draw(key, at + 2 * i)) * (even + extra)
        if place >= even:
            return previous
        to = graph.targets[_edge_at(graph, node, place / bound)]
        if _uniform(draw(key, at + 2 * i + 1)) * bound < _bias(graph, previous, to, back, far):
            return to
    return _exact(graph, node, previous, back, far, _uniform(draw(key, at + 2 * TRIES)))


@kernel
def walk(
    graph: Graph,
    first: Int32Array,
    key: np.uint64,
    p: float,
    q: float,
    walks: Int32Array,
    lengths: Int64Array,
) -> None:
    """Walk from each of some nodes.

    Parameters
    ----------
    graph
        The graph.
    first
        First node of each walk, shape (n,).
    key
        Stream of the draws.
    p, q
        A step back to the previous node has the bias 1/p, a step to a node without an edge from it 1/q.
    walks
        Output: the nodes of each walk, shape (n, longest walk).
    lengths
        Output: number of nodes in each walk, shape (n,). A walk ends early at a node without edges.
    """
    back, far = 1.0 / p, 1.0 / q
    for i in range(len(first)):
        own = draw(key, first[i])
        node, previous, n = first[i], -1, 1
        walks[i, 0] = node
        while n < walks.shape[1] and graph.starts[node] < graph.starts[node + 1]:
            at = (n - 1) * (2 * TRIES + 1)
            if previous < 0 or (back == 1.0 and far == 1.0):
                place = _uniform(draw(own, at)) * _total(graph, node)
                to = graph.targets[_edge_at(graph, node, place)]
            else:
                to = _second_order(graph, node, previous, back, far, own, at)
            previous, node = node, to
            walks[i, n] = node
            n += 1
        lengths[i] = n


def nodes_of_part(n_nodes: int, key: np.uint64, part: int, n_parts: int) -> Int32Array:
    """Return the nodes of a part in random order; all parts, one after the other, are a random order of all nodes."""
    nodes, draws = _drawn(n_nodes, key, part, n_parts)
    return np.asarray(nodes[np.argsort(draws)])


@kernel
def _drawn(n_nodes: int, key: np.uint64, part: int, n_parts: int) -> tuple[Any, Any]:
    """Return the nodes of a part and their random numbers."""
    size = 0
    for node in range(n_nodes):
        size += below(draw(key, node), n_parts) == part
    nodes, draws = np.empty(size, np.int32), np.empty(size, np.uint64)
    i = 0
    for node in range(n_nodes):
        bits = draw(key, node)
        if below(bits, n_parts) == part:
            nodes[i], draws[i] = node, bits
            i += 1
    return nodes, draws
