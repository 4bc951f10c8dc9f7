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
they do. If there are at most MAX_ASKED candidates to ask for, a step takes at most two visits. Where all tries fail,
the walker brings the row of t back, and the step is drawn from all edges. A walker is a row of int32. Where only
weights count it has the columns FIRST, LENGTH and NODE.
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
DRAWS = 2 * TRIES + 1  # random numbers for a step
_11, _UNIT = np.uint64(11), 2.0**-53
# Columns of a walker: first node, which names the walk; number of nodes; current node, -1 at the end; previous node;
# state; tries of the step; candidate that is taken if no asked one is, or -1; candidates to ask for, or -1
FIRST, LENGTH, NODE, PREVIOUS, STATE, TRIED, FALLBACK, CANDIDATES = range(8)
_AHEAD = 8  # walkers whose edges are prefetched; twice as many for their rows
MAX_ASKED = 4  # candidates of a walker
NARROW, WIDE = 3, CANDIDATES + MAX_ASKED
STEPS, ASKS, BRINGS = range(3)  # states: at its node, at the previous node, at its node with the row of the previous
_LEAVES, _UNDECIDED = -1, -2  # values in place of the next node


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
        Key of the random numbers of all walks of one number.
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


def encode_metapath(walks: Walks, types: Mapping[str, int]) -> Metapath:
    """Return the metapath of walks as codes of types; without one, all nodes have the code 0.

    `types` has the number of nodes of each type, sorted by type.

    Raises
    ------
    ParameterError
        If the metapath names a type that no node has.
    """
    codes = {name: code for code, name in enumerate(types)}
    if unknown := [name for name in walks.metapath if name not in codes]:
        problem = f"metapath={walks.metapath}, but no node has the type {unknown[0]!r}."
        raise ParameterError(problem, f"The types of nodes are: {', '.join(types)}.")
    path = [codes[name] for name in walks.metapath[:-1]] or [0]
    cycle = np.resize(np.array(path, np.uint8), walks.length)
    return Metapath(cycle, max(1, len(types)))


@inline
def find_row(path: Any, node: Any, index: Any) -> Any:
    """Return the row of a node with its edges to nodes of the type that node `index`, from 0, of a walk has."""
    return node * path.n_types + path.types[index]


@inline
def _to_uniform(bits: Any) -> Any:
    """Return a number in [0, 1) from 64 random bits."""
    return np.float64(bits >> _11) * _UNIT


@exact
def _total_weight(graph: GraphRows, row: int) -> float:
    """Return the total weight of a row's edges; it has at least one."""
    begin, end = graph.starts[row], graph.starts[row + 1]
    return graph.weights[end - 1] if len(graph.weights) else float(end - begin)


@exact
def _edge_weight(graph: GraphRows, row: int, edge: int) -> float:
    """Return the weight of an edge of a row; `edge` is the edge's index in the graph."""
    if not len(graph.weights):
        return 1.0
    return graph.weights[edge] - (graph.weights[edge - 1] if edge > graph.starts[row] else 0.0)


@exact
def _find_edge_at(graph: GraphRows, row: int, weight: float) -> int:
    """Return the index in the graph of the edge of a row at a cumulative weight in 0..total."""
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
def find_edge(graph: GraphRows, row: int, target: int) -> int:
    """Return the index in the graph of a row's edge to a node, or -1 if the row has none."""
    begin, end = graph.starts[row], graph.starts[row + 1]
    while begin < end:
        middle = (begin + end) // 2
        if graph.targets[middle] < target:
            begin = middle + 1
        else:
            end = middle
    return begin if begin < graph.starts[row + 1] and graph.targets[begin] == target else -1


@inline
def prefetch_step(graph: Any, row: Any, key: Any, index: Any) -> None:
    """Prefetch the first entries that `draw_first_order` reads in a row that has edges."""
    if len(graph.weights):
        begin, end = graph.starts[row], graph.starts[row + 1]
        prefetch_entry(graph.weights, end - 1)
        prefetch_entry(graph.weights, (begin + end - 1) // 2)
    else:
        prefetch_entry(
            graph.targets, _find_edge_at(graph, row, _to_uniform(draw(key, index)) * _total_weight(graph, row))
        )


@exact
def draw_first_order(graph: GraphRows, row: int, key: np.uint64, index: int) -> int:
    """Return the target of a step by weights alone, by the random number `index` of `key`."""
    return graph.targets[_find_edge_at(graph, row, _to_uniform(draw(key, index)) * _total_weight(graph, row))]


@exact
def step_bias(
    previous_rows: GraphRows, previous_row: int, previous: int, target: int, back: float, far: float
) -> float:
    """Return the bias of a second-order step to a target.

    The edges of the previous node are in the row `previous_row` of `previous_rows`; `back` and `far` are as in
    `StepRule`.
    """
    if target == previous:
        return back
    return 1.0 if find_edge(previous_rows, previous_row, target) >= 0 else far


@exact
def step_masses(graph: GraphRows, row: int, previous: int, back: float, far: float) -> tuple[float, float]:
    """Return the mass of the steps that `draw_candidate` draws by weight, and of the step back beyond their bound."""
    bound = max(1.0, far)
    extra = 0.0
    if back > bound:
        edge = find_edge(graph, row, previous)
        extra = _edge_weight(graph, row, edge) * (back - bound) if edge >= 0 else 0.0
    return _total_weight(graph, row) * bound, extra


@exact
def draw_candidate(
    graph: GraphRows, row: int, previous: int, far: float, mass: tuple[float, float], key: np.uint64, index: int
) -> tuple[int, float]:
    """Return a candidate for a second-order step, and the threshold that its bias must exceed for it to be taken.

    `mass` is the result of `step_masses`. The random numbers are `index` and `index` + 1 of `key`.
    """
    bound, (by_weight, back) = max(1.0, far), mass
    position = _to_uniform(draw(key, index)) * (by_weight + back)
    if position >= by_weight:
        return previous, -1.0
    return graph.targets[_find_edge_at(graph, row, position / bound)], _to_uniform(draw(key, index + 1)) * bound


@exact
def draw_exactly(
    graph: GraphRows,
    row: int,
    previous_rows: GraphRows,
    previous_row: int,
    previous: int,
    back: float,
    far: float,
    uniform: float,
) -> int:
    """Return the target of a second-order step, drawn by a number in [0, 1) from the biased weights of all edges.

    `previous_rows` to `far` are as in `step_bias`.
    """
    begin, end = graph.starts[row], graph.starts[row + 1]
    total = 0.0
    for edge in range(begin, end):
        total += _edge_weight(graph, row, edge) * step_bias(
            previous_rows, previous_row, previous, graph.targets[edge], back, far
        )
    remaining = uniform * total
    for edge in range(begin, end - 1):
        remaining -= _edge_weight(graph, row, edge) * step_bias(
            previous_rows, previous_row, previous, graph.targets[edge], back, far
        )
        if remaining < 0:
            return graph.targets[edge]
    return graph.targets[end - 1]


@inline
def draw_last(key: Any, index: Any) -> Any:
    """Return a number in [0, 1) for `draw_exactly`, by the random number after the random numbers of all tries."""
    return _to_uniform(draw(key, index + 2 * TRIES))


@exact
def draw_second_order(
    graph: GraphRows,
    row: int,
    previous_row: int,
    previous: int,
    back: float,
    far: float,
    key: np.uint64,
    index: int,
) -> int:
    """Return the target of a second-order step, by the random numbers from `index` on of `key`.

    `previous_row` is the row of the previous node in the same graph.
    """
    mass = step_masses(graph, row, previous, back, far)
    for i in range(TRIES):
        target, threshold = draw_candidate(graph, row, previous, far, mass, key, index + 2 * i)
        if threshold < step_bias(graph, previous_row, previous, target, back, far):
            return target
    return draw_exactly(graph, row, graph, previous_row, previous, back, far, draw_last(key, index))


@exact
def walk(graph: GraphRows, first: Int32Array, rule: StepRule, walks: Int32Array, lengths: Int64Array) -> None:
    """Walk on a graph from each first node.

    Parameters
    ----------
    graph
        The graph; the rows of node i begin at i * rule.path.n_types.
    first
        First node of each walk, shape (n,).
    rule
        The rule by which steps are drawn.
    walks
        Output: the nodes of each walk, shape (n, longest walk); nothing is written behind its end.
    lengths
        Output: number of nodes in each walk, shape (n,). A walk ends early at a node without edges to the next type.
    """
    back, far = rule.back, rule.far
    for i in range(len(first)):
        walk_key = draw(rule.key, first[i])
        node, previous, n = first[i], -1, 1
        walks[i, 0] = node
        while n < walks.shape[1]:
            row, index = find_row(rule.path, node, n), (n - 1) * DRAWS
            if graph.starts[row] == graph.starts[row + 1]:
                break
            if previous < 0 or (back == 1.0 and far == 1.0):
                target = draw_first_order(graph, row, walk_key, index)
            else:
                target = draw_second_order(graph, row, previous, previous, back, far, walk_key, index)
            previous, node = node, target
            walks[i, n] = node
            n += 1
        lengths[i] = n


def shuffle_part(n_nodes: int, key: np.uint64, part: int, n_parts: int) -> Int32Array:
    """Return the nodes of a part in random order, by the random numbers of `key`, shape (nodes of the part,).

    The same random number decides in which part a node is. All parts, one after the other, are a random order of all
    nodes.
    """
    nodes, draws = _draw_part(n_nodes, key, part, n_parts)
    return np.asarray(nodes[np.argsort(draws)])


@kernel
def _draw_part(n_nodes: int, key: np.uint64, part: int, n_parts: int) -> tuple[Any, Any]:
    """Return the nodes of a part, ascending, and the random number of each."""
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


def find_parts(first: Int32Array, key: np.uint64, n_parts: int) -> Int64Array:
    """Return the part that each node is in, as `shuffle_part` divides the nodes, shape (nodes,)."""
    return np.asarray(below.py_func(draws(key, first.astype(np.uint64)), n_parts).astype(np.int64))


class Partition(NamedTuple):
    """Partition `number` of `n` of a graph, in memory.

    `graph` has the rows of the nodes number, number + n, ...: its node i is node i * n + number of the whole graph.
    """

    graph: GraphRows
    number: int
    n: int


class BroughtRows(NamedTuple):
    """Rows that walkers brought from other partitions.

    The row of nodes[i] is the row rows[i] of `graph`; `nodes` are ascending.
    """

    nodes: Int32Array
    rows: Int64Array
    graph: GraphRows


@inline
def _has_node(part: Any, node: Any) -> Any:
    """Return whether a partition has the rows of a node."""
    return node % part.n == part.number


@exact
def advance(
    part: Partition, brought: BroughtRows, rule: StepRule, walkers: Int32Array, start: int, trail: Int32Array
) -> tuple[int, int]:
    """Let walkers step until each leaves the partition or its walk ends, as long as the trail has room.

    Parameters
    ----------
    part, brought
        The rows of the partition, and rows that walkers brought.
    rule
        The rule by which steps are drawn.
    walkers
        Walkers, shape (n, NARROW), or (n, WIDE) if biases are not 1. They are changed.
    start
        Index of the walker to begin with.
    trail
        Output: (first node, index in the walk, node) of each step, shape (steps, 3). There is room for a walk.

    Returns
    -------
    tuple
        Index of the first walker for which the trail has no room, or the number of walkers; number of steps.
    """
    n_steps, length = 0, len(rule.path.types)
    for i in range(start, len(walkers)):
        if len(trail) - n_steps < length:
            return i, n_steps
        if length > 1 and i + 2 * _AHEAD < len(walkers):
            prefetch_entry(part.graph.starts, _find_next_row(part, rule, walkers[i + 2 * _AHEAD]))
            _prefetch_edge(part, rule, walkers[i + _AHEAD])
        walker = walkers[i]
        if walker[LENGTH] == length:
            walker[NODE] = -1
            continue
        walk_key = draw(rule.key, walker[FIRST])
        while True:
            target = (
                _resolve_candidates(part, rule, walker)
                if _is_asking(walker)
                else _next_node(part, brought, rule, walker, walk_key)
            )
            if target == _LEAVES:
                break
            if target == _UNDECIDED:
                continue
            if len(walker) > NARROW:
                walker[PREVIOUS], walker[STATE], walker[TRIED] = walker[NODE], STEPS, 0
            trail[n_steps, 0], trail[n_steps, 1], trail[n_steps, 2] = walker[FIRST], walker[LENGTH], target
            n_steps += 1
            walker[LENGTH] += 1
            walker[NODE] = target
            if walker[LENGTH] == length:
                walker[NODE] = -1
                break
    return len(walkers), n_steps


@inline
def _find_next_row(part: Any, rule: Any, walker: Any) -> Any:
    """Return the row that the next step of a walker reads."""
    return find_row(rule.path, walker[NODE] // part.n, np.int64(walker[LENGTH]))


@inline
def _prefetch_edge(part: Any, rule: Any, walker: Any) -> None:
    """Prefetch the edge that the next step of a walker reads, if the partition has the walker's node."""
    row = _find_next_row(part, rule, walker)
    if _has_node(part, walker[NODE]) and part.graph.starts[row] < part.graph.starts[row + 1]:
        index = (np.int64(walker[LENGTH]) - 1) * DRAWS
        prefetch_step(part.graph, row, draw(rule.key, walker[FIRST]), index)


@inline
def _is_asking(walker: Any) -> Any:
    """Return whether a walker is at its previous node, to ask for candidates."""
    return len(walker) > NARROW and walker[STATE] == ASKS


@exact
def _next_node(part: Partition, brought: BroughtRows, rule: StepRule, walker: Int32Array, walk_key: np.uint64) -> int:
    """Return the next node of a walker that is at its current node, or _LEAVES or _UNDECIDED; change the walker.

    It is _LEAVES if the current node is in another partition, or has no edges: then the walk ends, and walker[NODE] is
    -1. It is _UNDECIDED if the walker has to ask for candidates at its previous node, which is in another partition:
    then its state, tries and candidates are set. The caller moves the walker to a node that is returned.
    """
    if not _has_node(part, walker[NODE]):
        return _LEAVES
    graph, row, index = part.graph, _find_next_row(part, rule, walker), (np.int64(walker[LENGTH]) - 1) * DRAWS
    if graph.starts[row] == graph.starts[row + 1]:
        walker[NODE] = -1
        return _LEAVES
    if len(walker) == NARROW or walker[PREVIOUS] < 0:
        return draw_first_order(graph, row, walk_key, index)
    previous = walker[PREVIOUS]
    if walker[STATE] == BRINGS:
        previous_row = brought.rows[np.searchsorted(brought.nodes, previous)]
        return draw_exactly(
            graph, row, brought.graph, previous_row, previous, rule.back, rule.far, draw_last(walk_key, index)
        )
    if _has_node(part, previous):
        return draw_second_order(graph, row, previous // part.n, previous, rule.back, rule.far, walk_key, index)
    return _try_candidates(graph, row, rule, walker, walk_key, index)


@exact
def _try_candidates(
    graph: GraphRows, row: int, rule: StepRule, walker: Int32Array, walk_key: np.uint64, index: int
) -> int:
    """Return the next node if random numbers alone decide it; else set the candidates to ask for, and _UNDECIDED."""
    previous = walker[PREVIOUS]
    mass = step_masses(graph, row, previous, rule.back, rule.far)
    lowest, highest = min(1.0, rule.far), max(1.0, rule.far)
    walker[STATE], walker[FALLBACK], walker[CANDIDATES:] = ASKS, -1, -1
    n = 0
    while walker[TRIED] < TRIES and n < MAX_ASKED:
        target, threshold = draw_candidate(graph, row, previous, rule.far, mass, walk_key, index + 2 * walker[TRIED])
        walker[TRIED] += 1
        is_back = target == previous
        if threshold < (rule.back if is_back else lowest):
            if n == 0:
                return target
            walker[FALLBACK] = target
            return _UNDECIDED
        if not is_back and threshold < highest:
            walker[CANDIDATES + n] = target
            n += 1
    return _UNDECIDED


@exact
def _resolve_candidates(part: Partition, rule: StepRule, walker: Int32Array) -> int:
    """Return the next node of a walker that asks for candidates, or _LEAVES or _UNDECIDED.

    It is _LEAVES if the previous node is in another partition, _UNDECIDED if no candidate is accepted.
    """
    previous = walker[PREVIOUS]
    if not _has_node(part, previous):
        return _LEAVES
    for candidate in walker[CANDIDATES:]:
        # Its bias is either 1 or 1/q, and only the greater one suffices
        if candidate >= 0 and (find_edge(part.graph, previous // part.n, candidate) >= 0) == (rule.far < 1.0):
            return candidate
    if walker[FALLBACK] < 0:
        walker[STATE] = BRINGS if walker[TRIED] == TRIES else STEPS
        return _UNDECIDED
    return walker[FALLBACK]


def find_partitions(walkers: Int32Array, n: int) -> Int64Array:
    """Return the partition of `n` to which each walker goes, shape (walkers,)."""
    node = walkers[:, NODE]
    if walkers.shape[1] > NARROW:
        node = np.where(walkers[:, STATE] == ASKS, walkers[:, PREVIOUS], node)
    return np.asarray(node % n, np.int64)
