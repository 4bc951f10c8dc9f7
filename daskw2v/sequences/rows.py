"""Tasks that sort edges, first into parts by source, then within parts; and the graph in memory.

    dealt/<i>/<attempt>/   edges of a piece as numbers, in parts by source: `pairs` (n, 2) int32, `weights` (n,) float64
    rows/<k>/<attempt>/    Zarr group, the rows of every n_parts-th node from k on: their `degrees` int64, and the
                           `targets` int32 and `weights` float64 of their edges (without weights if all are 1)

A task holds one piece or one part. Nodes with consecutive numbers, which may all be hubs, are in different parts.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import zarr

from daskw2v.cluster.shared_memory import by_fields, share
from daskw2v.kernels.jit import kernel
from daskw2v.sequences.numbering import EdgePiece, read_piece
from daskw2v.store.arrays import read_array, write_array
from daskw2v.store.limits import check_room, refused
from daskw2v.store.partfile import read_part, write_parts
from daskw2v.store.stage import new_attempt
from daskw2v.store.storage import Store
from daskw2v.types import Float64Array, Int32Array, Int64Array


@by_fields
class Graph(NamedTuple):
    """A graph in memory.

    Parameters
    ----------
    starts
        Edges of node i are starts[i]..starts[i + 1] - 1, shape (nodes + 1,).
    targets
        Target of each edge, ascending for each node, shape (edges,).
    weights
        Cumulative weights of each node's edges, shape (edges,); (0,) if all weights are 1.
    """

    starts: Int64Array
    targets: Int32Array
    weights: Float64Array


class GraphLayout(NamedTuple):
    """Arguments shared by all tasks of a graph: its folder, numbers of nodes and parts, and the kind of edges."""

    home: Store
    n_nodes: int
    n_parts: int
    directed: bool
    weighted: bool


class StoredEdges(NamedTuple):
    """A part of the rows in the store: its path, its number of edges, and whether all weights are 1."""

    path: str
    edges: int
    even: bool


def deal_piece(layout: GraphLayout, number: int, piece: EdgePiece, nodes: Any) -> str:
    """Task: divide the edges of a piece into parts by source; return their path."""
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


def fill_rows(layout: GraphLayout, part: int, dealt: Sequence[str]) -> StoredEdges:
    """Task: write a part of the rows; parallel edges become one with the sum of their weights."""

    def read(name: str, dtype: npt.DTypeLike, columns: int) -> npt.NDArray[Any]:
        return np.concatenate(
            [read_part(layout.home / path, name, layout.n_parts, part, dtype, columns) for path in dealt]
        )

    pairs = read("pairs", np.int32, 2)
    keys = pairs[:, 0].astype(np.int64) // layout.n_parts * layout.n_nodes + pairs[:, 1]
    if layout.weighted:
        weights = read("weights", np.float64, 1)[:, 0]
        # By weight, too, so that sums have the same bits whatever the order of edges in files
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
    return StoredEdges(path, len(targets), even)


def graph_bytes(n_nodes: int, n_edges: int, *, even: bool) -> int:
    """Return the bytes of a graph in memory."""
    return 8 * (n_nodes + 1) + (4 if even else 12) * n_edges


def load_graph(home: Store, n_nodes: int, rows: Sequence[StoredEdges]) -> Graph:
    """Task: read a graph; workers of one host share its memory.

    Raises
    ------
    DamageError
        If a part is missing or damaged.
    StoreError
        If a part is not of this graph, or there is no room for it.
    """
    n_edges, even = sum(part.edges for part in rows), all(part.even for part in rows)
    check_room((graph_bytes(n_nodes, n_edges, even=even),), ..., 1, home.url)
    starts = np.zeros(n_nodes + 1, np.int64)
    parts = [_Part((home / part.path).open_group(), part, f"{home.url}/{part.path}") for part in rows]
    for k, part in enumerate(parts):
        starts[k + 1 :: len(rows)] = part.degrees(len(range(k, n_nodes, len(rows))))
    np.cumsum(starts, out=starts)
    graph = Graph(starts, np.empty(n_edges, np.int32), np.empty(0 if even else n_edges))
    for k, part in enumerate(parts):
        _place_rows(graph, k, len(rows), part.targets(n_nodes), part.weights())
    return Graph(share(graph.starts), share(graph.targets), share(graph.weights))


class _Part(NamedTuple):
    """A part of the rows. Its arrays are checked, as kernels that read them check no index."""

    group: zarr.Group
    declared: StoredEdges
    place: str

    def _read(self, name: str, dtype: npt.DTypeLike, length: int) -> npt.NDArray[Any]:
        found = read_array(self.group, name)
        if found.dtype != dtype or found.shape != (length,):
            raise refused(f"{self.place}/{name}", f"holds {found.dtype} of shape {found.shape}, not ({length},)")
        return found

    def degrees(self, n_rows: int) -> Int64Array:
        """Return the number of edges of each node, shape (n_rows,)."""
        degrees = self._read("degrees", np.int64, n_rows)
        if (degrees < 0).any() or (degrees > self.declared.edges).any() or degrees.sum() != self.declared.edges:
            raise refused(f"{self.place}/degrees", f"does not add up to {self.declared.edges:,} edges")
        return degrees

    def targets(self, n_nodes: int) -> Int32Array:
        """Return the target of each edge, shape (edges,)."""
        targets = self._read("targets", np.int32, self.declared.edges)
        if len(targets) and not 0 <= targets.min() <= targets.max() < n_nodes:
            raise refused(f"{self.place}/targets", f"names other nodes than 0..{n_nodes - 1}")
        return targets

    def weights(self) -> Float64Array:
        """Return the weight of each edge, shape (edges,)."""
        n = self.declared.edges
        weights = np.ones(n) if self.declared.even else self._read("weights", np.float64, n)
        if not (np.isfinite(weights) & (weights > 0)).all():
            raise refused(f"{self.place}/weights", "holds what is no weight")
        return weights


@kernel
def _place_rows(graph: Graph, first: int, step: int, targets: Int32Array, weights: Float64Array) -> None:
    """Copy the edges of nodes first, first + step, ... into the graph, with cumulative weights in each row."""
    at = 0
    for node in range(first, len(graph.starts) - 1, step):
        total = 0.0
        for edge in range(graph.starts[node], graph.starts[node + 1]):
            graph.targets[edge] = targets[at]
            if len(graph.weights):
                total += weights[at]
                graph.weights[edge] = total
            at += 1
