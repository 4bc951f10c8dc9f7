"""Kernels of random walks. A step chooses an edge by its weight and by the node before the current one.

A walk is a pure function of (seed, number of the walk, first node): all its draws are one stream.

A node has a row for each type of targets. A step to a node of a type is a step by weights alone in the row of that
type (metapath2vec, Dong, Chawla and Swami 2017, section 3.2). Without types a node has one row, which all steps read.

A second-order walk (node2vec, Grover and Leskovec 2016) that came from t to v goes to x with a probability
proportional to the weight of the edge from v to x times a bias: 1/p if x is t, 1 if t has an edge to x, else 1/q. No
tables for pairs of nodes are needed: x is drawn by weight and accepted with probability bias / max(1, 1/q), otherwise
drawn again (rejection sampling). If 1/p exceeds this bound, the excess is drawn as a separate outcome (as in
KnightKing, Yang et al. 2019), so a small p costs nothing. After TRIES rejections the step is drawn exactly, from all
edges of v. Draws are independent, so the distribution is the same, and the time of a step is bounded.

A walker steps inside one partition of the nodes, which holds the rows of every n-th node, and leaves where its walk
does. A second-order step also asks whether the previous node t has an edge to a candidate. The walker goes to t's
partition for that, and takes along the candidates of the tries that its own draws do not decide, up to the first that
they do. So a step takes two visits, at most, if there is no more than ASKED to ask. Where all tries fail, the walker
brings the row of t back, and the step is drawn from all edges. A walker is a row of int32. Where only weights count it
has the columns FIRST, LENGTH and NODE.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from daskw2v.errors import ParameterError
from daskw2v.kernels.bytes import prefetch_entry
from daskw2v.kernels.jit import exact, inline, kernel
from daskw2v.kernels.rng import below, draw, draws
from daskw2v.sequences.rows import GraphRows
from daskw2v.sequences.settings import Walks
from daskw2v.types import Int32Array, Int64Array, UInt8Array

TRIES = 32
DRAWS = 2 * TRIES + 1  # of a step
_11, _UNIT = np.uint64(11), 2.0**-53
# Columns: first node, which names the walk; nodes so far; current node, -1 at the end; previous node; what is to be
# done; tries of the step so far; the candidate that is taken if none before it is, or -1; candidates to ask for, or -1
FIRST, LENGTH, NODE, PREVIOUS, STATE, TRIED, THEN, CANDIDATES = range(8)
_AHEAD = 8  # walkers whose edges are prefetched; twice as many for their rows
ASKED = 4  # candidates, at most
NARROW, WIDE = 3, CANDIDATES + ASKED
STEPS, ASKS, BRINGS = range(3)  # states: at its node, at the previous node, at its node with the row of the previous
_AWAY, _UNDECIDED = -1, -2  # what may come instead of the next node


class Metapath(NamedTuple):
    """Types of the nodes of a walk.

    Parameters
    ----------
    types
        Code of the type of each node, shape (nodes of the longest walk,); 0 without types.
    n_types
        Number of types, and of rows of a node.
    """

    types: UInt8Array
    n_types: int


class StepRule(NamedTuple):
    """The rule by which steps are drawn.

    Parameters
    ----------
    key
        Stream of the draws.
    back, far
        Biases 1/p of a step back to the previous node, and 1/q of a step to a node without an edge from it. Both are 1
        if nodes have types.
    path
        Types of the nodes of a walk.
    """

    key: np.uint64
    back: float
    far: float
    path: Metapath


def metapath_of(walks: Walks, types: Mapping[str, int]) -> Metapath:
    """Return the metapath of walks on a graph with these types; without types, all nodes have the code 0.

    Raises
    ------
    ParameterError
        If the metapath names a type that no node has.
    """
    codes = {name: code for code, name in enumerate(types)}
    if unknown := [name for name in walks.metapath if name not in codes]:
        raise ParameterError(
            f"metapath={walks.metapath}, but no node has the type {unknown[0]!r}.",
            f"The types of nodes are: {', '.join(types)}.",
        )
    path = [codes[name] for name in walks.metapath[:-1]] or [0]
    cycle = np.resize(np.array(path, np.uint8), walks.length)
    return Metapath(cycle, max(1, len(types)))


@inline
def row_of(path: Any, node: Any, index: Any) -> Any:
    """Return the row of a node whose targets are of the type of node `index` of a walk."""
    return node * path.n_types + path.types[index]


@inline
def _uniform(bits: Any) -> Any:
    """Return a number in [0, 1) from 64 random bits."""
    return np.float64(bits >> _11) * _UNIT


@exact
def _total(graph: GraphRows, row: int) -> float:
    """Return the total weight of a row's edges; it has at least one."""
    begin, end = graph.starts[row], graph.starts[row + 1]
    return graph.weights[end - 1] if len(graph.weights) else float(end - begin)


@exact
def _weight(graph: GraphRows, row: int, edge: int) -> float:
    """Return the weight of an edge of a row."""
    if not len(graph.weights):
        return 1.0
    return graph.weights[edge] - (graph.weights[edge - 1] if edge > graph.starts[row] else 0.0)


@exact
def _edge_at(graph: GraphRows, row: int, weight: float) -> int:
    """Return the edge of a row at a cumulative weight in 0..total."""
    begin, end = graph.starts[row], graph.starts[row + 1]
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


@exact
def edge_to(graph: GraphRows, row: int, target: int) -> int:
    """Return a row's edge to a node, or -1 if it has none."""
    begin, end = graph.starts[row], graph.starts[row + 1]
    while begin < end:
        middle = (begin + end) // 2
        if graph.targets[middle] < target:
            begin = middle + 1
        else:
            end = middle
    return begin if begin < graph.starts[row + 1] and graph.targets[begin] == target else -1


@inline
def prefetch_step(graph: Any, row: Any, key: Any, at: Any) -> None:
    """Prefetch what `first_order` reads, or begins with, in a row that has edges."""
    if len(graph.weights):
        begin, end = graph.starts[row], graph.starts[row + 1]
        prefetch_entry(graph.weights, end - 1)
        prefetch_entry(graph.weights, (begin + end - 1) // 2)
    else:
        prefetch_entry(graph.targets, _edge_at(graph, row, _uniform(draw(key, at)) * _total(graph, row)))


@exact
def first_order(graph: GraphRows, row: int, key: np.uint64, at: int) -> int:
    """Return the target of a step by weights alone, drawn by number `at` of `key`."""
    return graph.targets[_edge_at(graph, row, _uniform(draw(key, at)) * _total(graph, row))]


@exact
def bias(others: GraphRows, before: int, previous: int, to: int, back: float, far: float) -> float:
    """Return the bias of a step to a node; the previous node's edges are in the row `before` of `others`."""
    if to == previous:
        return back
    return 1.0 if edge_to(others, before, to) >= 0 else far


@exact
def masses(graph: GraphRows, row: int, previous: int, back: float, far: float) -> tuple[float, float]:
    """Return the mass of steps that `offer` draws by weight, and the mass of the step back beyond their bound."""
    bound = max(1.0, far)
    extra = 0.0
    if back > bound:
        edge = edge_to(graph, row, previous)
        extra = _weight(graph, row, edge) * (back - bound) if edge >= 0 else 0.0
    return _total(graph, row) * bound, extra


@exact
def offer(
    graph: GraphRows, row: int, previous: int, far: float, mass: tuple[float, float], key: np.uint64, at: int
) -> tuple[int, float]:
    """Return a candidate for a step, and what its bias must exceed to be taken; draws are `at` and `at` + 1."""
    bound, (even, extra) = max(1.0, far), mass
    position = _uniform(draw(key, at)) * (even + extra)
    if position >= even:
        return previous, -1.0
    return graph.targets[_edge_at(graph, row, position / bound)], _uniform(draw(key, at + 1)) * bound


@exact
def choose(
    graph: GraphRows, row: int, others: GraphRows, before: int, previous: int, back: float, far: float, uniform: float
) -> int:
    """Return the target of a second-order step, drawn from the biased weights of all edges."""
    begin, end = graph.starts[row], graph.starts[row + 1]
    total = 0.0
    for edge in range(begin, end):
        total += _weight(graph, row, edge) * bias(others, before, previous, graph.targets[edge], back, far)
    left = uniform * total
    for edge in range(begin, end - 1):
        left -= _weight(graph, row, edge) * bias(others, before, previous, graph.targets[edge], back, far)
        if left < 0:
            return graph.targets[edge]
    return graph.targets[end - 1]


@inline
def last_draw(key: Any, at: Any) -> Any:
    """Return the number by which `choose` draws, after all tries."""
    return _uniform(draw(key, at + 2 * TRIES))


@exact
def second_order(
    graph: GraphRows, row: int, before: int, previous: int, back: float, far: float, key: np.uint64, at: int
) -> int:
    """Return the target of a step after `previous`, whose row is `before`, by draw `at` of `key` and later ones."""
    mass = masses(graph, row, previous, back, far)
    for i in range(TRIES):
        to, bar = offer(graph, row, previous, far, mass, key, at + 2 * i)
        if bar < bias(graph, before, previous, to, back, far):
            return to
    return choose(graph, row, graph, before, previous, back, far, last_draw(key, at))


@exact
def walk(graph: GraphRows, first: Int32Array, rule: StepRule, walks: Int32Array, lengths: Int64Array) -> None:
    """Walk from each first node.

    Parameters
    ----------
    graph
        The graph; the rows of node i begin at i * rule.path.n_types.
    first
        First node of each walk, shape (n,).
    rule
        How steps are drawn.
    walks
        Output: the nodes of each walk, shape (n, longest walk).
    lengths
        Output: number of nodes in each walk, shape (n,). A walk ends early at a node without edges to the next type.
    """
    back, far = rule.back, rule.far
    for i in range(len(first)):
        own = draw(rule.key, first[i])
        node, previous, n = first[i], -1, 1
        walks[i, 0] = node
        while n < walks.shape[1]:
            row, at = row_of(rule.path, node, n), (n - 1) * DRAWS
            if graph.starts[row] == graph.starts[row + 1]:
                break
            if previous < 0 or (back == 1.0 and far == 1.0):
                to = first_order(graph, row, own, at)
            else:
                to = second_order(graph, row, previous, previous, back, far, own, at)
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


def parts_of(first: Int32Array, key: np.uint64, n_parts: int) -> Int64Array:
    """Return the part that each node is in, as `nodes_of_part` divides the nodes."""
    return np.asarray(below.py_func(draws(key, first.astype(np.uint64)), n_parts).astype(np.int64))


class Partition(NamedTuple):
    """Rows of the nodes `number`, `number` + `n`, ...; node i * n + `number` is node i of `graph`."""

    graph: GraphRows
    number: int
    n: int


class Brought(NamedTuple):
    """Rows that walkers brought from other partitions: nodes[i], ascending, has the row rows[i] of `graph`."""

    nodes: Int32Array
    rows: Int64Array
    graph: GraphRows


@inline
def _owns(part: Any, node: Any) -> Any:
    return node % part.n == part.number


@exact
def advance(
    part: Partition, brought: Brought, rule: StepRule, walkers: Int32Array, at: int, trail: Int32Array
) -> tuple[int, int]:
    """Let walkers step until each leaves the partition or ends.

    Parameters
    ----------
    part, brought
        The rows of the partition, and rows that walkers brought.
    rule
        How steps are drawn.
    walkers
        Walkers, shape (n, NARROW), or (n, WIDE) if biases are not 1. They are changed.
    at
        The walker to begin with.
    trail
        Output: (first node, index in the walk, node) of each step, shape (steps, 3). There is room for a walk.

    Returns
    -------
    tuple
        The walker that the trail had no more room for, and the number of steps.
    """
    n, length = 0, len(rule.path.types)
    for i in range(at, len(walkers)):
        if len(trail) - n < length:
            return i, n
        if length > 1 and i + 2 * _AHEAD < len(walkers):
            prefetch_entry(part.graph.starts, _row(part, rule, walkers[i + 2 * _AHEAD]))
            _prefetch_edge(part, rule, walkers[i + _AHEAD])
        walker = walkers[i]
        if walker[LENGTH] == length:
            walker[NODE] = -1
            continue
        own = draw(rule.key, walker[FIRST])
        while True:
            to = _settle(part, rule, walker) if _is_asking(walker) else _step(part, brought, rule, walker, own)
            if to == _AWAY:
                break
            if to == _UNDECIDED:
                continue
            if len(walker) > NARROW:
                walker[PREVIOUS], walker[STATE], walker[TRIED] = walker[NODE], STEPS, 0
            trail[n, 0], trail[n, 1], trail[n, 2] = walker[FIRST], walker[LENGTH], to
            n += 1
            walker[LENGTH] += 1
            walker[NODE] = to
            if walker[LENGTH] == length:
                walker[NODE] = -1
                break
    return len(walkers), n


@inline
def _row(part: Any, rule: Any, walker: Any) -> Any:
    """Return the row that the next step of a walker reads."""
    return row_of(rule.path, walker[NODE] // part.n, np.int64(walker[LENGTH]))


@inline
def _prefetch_edge(part: Any, rule: Any, walker: Any) -> None:
    row = _row(part, rule, walker)
    if _owns(part, walker[NODE]) and part.graph.starts[row] < part.graph.starts[row + 1]:
        at = (np.int64(walker[LENGTH]) - 1) * DRAWS
        prefetch_step(part.graph, row, draw(rule.key, walker[FIRST]), at)


@inline
def _is_asking(walker: Any) -> Any:
    return len(walker) > NARROW and walker[STATE] == ASKS


@exact
def _step(part: Partition, brought: Brought, rule: StepRule, walker: Int32Array, own: np.uint64) -> int:
    """Return the next node of a walker at its node; _AWAY if that is not here, _UNDECIDED if it has to ask."""
    if not _owns(part, walker[NODE]):
        return _AWAY
    graph, row, at = part.graph, _row(part, rule, walker), (np.int64(walker[LENGTH]) - 1) * DRAWS
    if graph.starts[row] == graph.starts[row + 1]:
        walker[NODE] = -1
        return _AWAY
    if len(walker) == NARROW or walker[PREVIOUS] < 0:
        return first_order(graph, row, own, at)
    previous = walker[PREVIOUS]
    if walker[STATE] == BRINGS:
        before = brought.rows[np.searchsorted(brought.nodes, previous)]
        return choose(graph, row, brought.graph, before, previous, rule.back, rule.far, last_draw(own, at))
    if _owns(part, previous):
        return second_order(graph, row, previous // part.n, previous, rule.back, rule.far, own, at)
    return _try(graph, row, rule, walker, own, at)


@exact
def _try(graph: GraphRows, row: int, rule: StepRule, walker: Int32Array, own: np.uint64, at: int) -> int:
    """Return the next node if draws decide it; else note the candidates to ask for."""
    previous = walker[PREVIOUS]
    mass = masses(graph, row, previous, rule.back, rule.far)
    least, most = min(1.0, rule.far), max(1.0, rule.far)
    walker[STATE], walker[THEN], walker[CANDIDATES:] = ASKS, -1, -1
    n = 0
    while walker[TRIED] < TRIES and n < ASKED:
        to, bar = offer(graph, row, previous, rule.far, mass, own, at + 2 * walker[TRIED])
        walker[TRIED] += 1
        back = to == previous
        if bar < (rule.back if back else least):
            if n == 0:
                return to
            walker[THEN] = to
            return _UNDECIDED
        if not back and bar < most:
            walker[CANDIDATES + n] = to
            n += 1
    return _UNDECIDED


@exact
def _settle(part: Partition, rule: StepRule, walker: Int32Array) -> int:
    """Return the next node of a walker that asks; _AWAY if the previous node is not here, _UNDECIDED if tries fail."""
    previous = walker[PREVIOUS]
    if not _owns(part, previous):
        return _AWAY
    for candidate in walker[CANDIDATES:]:
        # Its bias is either 1 or 1/q, and only the greater one suffices
        if candidate >= 0 and (edge_to(part.graph, previous // part.n, candidate) >= 0) == (rule.far < 1.0):
            return candidate
    if walker[THEN] < 0:
        walker[STATE] = BRINGS if walker[TRIED] == TRIES else STEPS
        return _UNDECIDED
    return walker[THEN]


def owners(walkers: Int32Array, n: int) -> Int64Array:
    """Return the partition that each walker goes to, of `n`, shape (walkers,)."""
    node = walkers[:, NODE]
    if walkers.shape[1] > NARROW:
        node = np.where(walkers[:, STATE] == ASKS, walkers[:, PREVIOUS], node)
    return np.asarray(node % n, np.int64)
