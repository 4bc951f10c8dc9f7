"""Tasks that put edges in order, dealt by their sources, then row by row; and the graph which these make.

    dealt/<i>/<attempt>/   edges of a piece by numbers, in parts by source: `pairs` (n, 2) int32, `weights` (n,) float64
    rows/<k>/<attempt>/    Zarr group, the rows of every n_parts-th node from k on: `degrees` int64, and of their edges
                           `targets` int32 and `weights` float64 (left out where all are 1)

A task holds one piece, or one part of the rows: neighbours in number, which may all be hubs, are in different parts.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.jit import kernel
from daskw2v.raw import read_part, write_parts
from daskw2v.sequences.numbering import Piece, read_piece
from daskw2v.shards.tasks import new_attempt
from daskw2v.shared import by_fields, share
from daskw2v.storage import Store, read_array, write_array

Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@by_fields
class Graph(NamedTuple):
    """A graph in memory.

    Parameters
    ----------
    starts
        Edges of node i are starts[i]..starts[i + 1] - 1, shape (nodes + 1,).
    targets
        Where each edge leads, ascending for each node, shape (edges,).
    weights
        Sum of the weights of a node's edges up to and with each, shape (edges,); (0,) where all weigh 1.
    """

    starts: Longs
    targets: npt.NDArray[np.int32]
    weights: Floats


class Layout(NamedTuple):
    """What all tasks of a graph share: where it lies, its nodes, the parts of its rows, and what edges are."""

    home: Store
    n_nodes: int
    n_parts: int
    directed: bool
    weighted: bool


class Rows(NamedTuple):
    """A part of the rows on disk: where it lies, its edges, and whether all of them weigh 1."""

    path: str
    edges: int
    even: bool


def deal_piece(layout: Layout, number: int, piece: Piece, nodes: Any) -> str:
    """Task: deal the edges of a piece to the parts of their sources; return where they lie."""
    pairs, weights = read_piece(layout.home, piece, nodes)
    if not layout.directed:
        other = pairs[:, 0] != pairs[:, 1]
        pairs = np.concatenate([pairs, pairs[other, ::-1]])
        weights = np.concatenate([weights, weights[other]])
    part = pairs[:, 0] % layout.n_parts
    order = np.argsort(part, kind="stable")
    edges = np.searchsorted(part[order], np.arange(layout.n_parts + 1))
    path = f"dealt/{number}/{new_attempt()}"
    write_parts(layout.home / path, "pairs", edges, pairs[order])
    if layout.weighted:
        write_parts(layout.home / path, "weights", edges, weights[order][:, None])
    return path


def fill_rows(layout: Layout, part: int, dealt: Sequence[str]) -> Rows:
    """Task: write a part of the rows; edges between the same two nodes become one that has the sum of their weights."""

    def read(name: str, dtype: npt.DTypeLike, columns: int) -> npt.NDArray[Any]:
        return np.concatenate(
            [read_part(layout.home / path, name, layout.n_parts, part, dtype, columns) for path in dealt]
        )

    pairs = read("pairs", np.int32, 2)
    keys = pairs[:, 0].astype(np.int64) // layout.n_parts * layout.n_nodes + pairs[:, 1]
    if layout.weighted:
        weights = read("weights", np.float64, 1)[:, 0]
        # By weight too: sums are then the same, to the last bit, however edges lie in files
        order = np.lexsort((weights, keys))
        keys = keys[order]
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        weights = np.add.reduceat(weights[order], first)
    else:
        keys.sort()
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        weights = np.diff(first, append=len(keys)).astype(float)
    rows, targets = np.divmod(keys[first], layout.n_nodes)
    n_rows = len(range(part, layout.n_nodes, layout.n_parts))
    even = bool((weights == 1).all())
    path = f"rows/{part}/{new_attempt()}"
    group = (layout.home / path).create_group()
    write_array(group, "degrees", np.bincount(rows, minlength=n_rows))
    write_array(group, "targets", targets.astype(np.int32))
    if not even:
        write_array(group, "weights", weights)
    return Rows(path, len(targets), even)


def graph_bytes(n_nodes: int, n_edges: int, *, even: bool) -> int:
    """Return the bytes of a graph in memory."""
    return 8 * (n_nodes + 1) + (4 if even else 12) * n_edges


def load_graph(home: Store, n_nodes: int, rows: Sequence[Rows]) -> Graph:
    """Task: read a graph; workers of one host share its memory.

    Raises
    ------
    DamageError
        If some of it is gone or damaged.
    """
    n_edges, even = sum(part.edges for part in rows), all(part.even for part in rows)
    starts = np.zeros(n_nodes + 1, np.int64)
    groups = [(home / part.path).open_group() for part in rows]
    for k, group in enumerate(groups):
        starts[k + 1 :: len(rows)] = read_array(group, "degrees")
    np.cumsum(starts, out=starts)
    graph = Graph(starts, np.empty(n_edges, np.int32), np.empty(0 if even else n_edges))
    for k, (part, group) in enumerate(zip(rows, groups, strict=True)):
        weights = np.ones(part.edges) if part.even else read_array(group, "weights")
        _place_rows(graph, k, len(rows), read_array(group, "targets"), weights)
    return Graph(share(graph.starts), share(graph.targets), share(graph.weights))


@kernel
def _place_rows(graph: Graph, first: int, step: int, targets: npt.NDArray[np.int32], weights: Floats) -> None:
    """Put the edges of nodes first, first + step, ... where they belong, weights summed up along each row."""
    at = 0
    for node in range(first, len(graph.starts) - 1, step):
        total = 0.0
        for edge in range(graph.starts[node], graph.starts[node + 1]):
            graph.targets[edge] = targets[at]
            if len(graph.weights):
                total += weights[at]
                graph.weights[edge] = total
            at += 1
