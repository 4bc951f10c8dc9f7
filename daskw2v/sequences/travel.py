"""Kernels of walks that travel: a walker steps inside one partition of the nodes, and leaves where its walk does.

A partition holds the rows of every n-th node. A second-order step also asks whether the previous node t has an edge to
a candidate. The walker goes to t's partition for that, and takes along the candidates of the tries that its own draws
do not decide, up to the first that they do. So a step takes two visits, at most, if there is no more than ASKED to ask.
Where all tries fail, the walker brings the row of t back, and the step is drawn from all edges.

A walker is a row of int32. Where only weights count it has the columns FIRST, LENGTH and NODE.
"""

from typing import Any, NamedTuple

import numpy as np

from daskw2v.kernels.bytes import prefetch_entry
from daskw2v.kernels.jit import exact, inline
from daskw2v.kernels.rng import draw
from daskw2v.sequences.rows import GraphRows
from daskw2v.sequences.steps import (
    DRAWS,
    TRIES,
    Metapath,
    choose,
    edge_to,
    first_order,
    last_draw,
    masses,
    offer,
    prefetch_step,
    row_of,
    second_order,
)
from daskw2v.types import Int32Array, Int64Array

# Columns: first node, which names the walk; nodes so far; current node, -1 at the end; previous node; what is to be
# done; tries of the step so far; the candidate that is taken if none before it is, or -1; candidates to ask for, or -1
FIRST, LENGTH, NODE, PREVIOUS, STATE, TRIED, THEN, CANDIDATES = range(8)
_AHEAD = 8  # walkers whose edges are prefetched; twice as many for their rows
ASKED = 4  # candidates, at most
NARROW, WIDE = 3, CANDIDATES + ASKED
STEPS, ASKS, BRINGS = range(3)  # states: at its node, at the previous node, at its node with the row of the previous


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


class StepRule(NamedTuple):
    """Key of the draws, the biases 1/p and 1/q of a step back and of a step away, and types of the nodes of a walk."""

    key: np.uint64
    back: float
    far: float
    path: Metapath


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
            _prefetch_row(part, rule, walkers[i + 2 * _AHEAD])
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


_AWAY, _UNDECIDED = -1, -2


@inline
def _row(part: Any, rule: Any, walker: Any) -> Any:
    """Return the row that the next step of a walker reads."""
    return row_of(rule.path, walker[NODE] // part.n, np.int64(walker[LENGTH]))


@inline
def _prefetch_row(part: Any, rule: Any, walker: Any) -> None:
    prefetch_entry(part.graph.starts, _row(part, rule, walker))


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
