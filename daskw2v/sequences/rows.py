"""Tasks that sort edges, first into parts by source, then within parts; and the graph in memory.

    dealt/<i>/<attempt>/   edges of a piece as numbers, in parts by source: `pairs` (n, 2) int32, `weights` (n, 1)
                           float64, and `types` (n, 1) uint8 of targets, if any
    rows/<k>/<attempt>/    Zarr group, the rows of every n_parts-th node from k on: their `degrees` int64, and the
                           `targets` int32 and `weights` float64 of their edges (without weights if all are 1)

A task holds one piece or one part. Nodes with consecutive numbers, which may all be hubs, are in different parts. A
node has a row for each type of targets, one after the other; where nodes have no types, it has one. So the rows of node
i begin at i times the number of types.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.cluster.shared_memory import by_fields, share
from daskw2v.errors import InputError
from daskw2v.kernels.jit import kernel
from daskw2v.sequences.numbering import EdgePiece, GraphLayout, Names, read_piece
from daskw2v.store.arrays import read_array, write_array
from daskw2v.store.limits import check_room, refused
from daskw2v.store.partfile import read_part, write_parts
from daskw2v.store.stage import new_attempt
from daskw2v.store.storage import Store
from daskw2v.types import Float64Array, Int32Array, Int64Array

MAX_NODE_WEIGHT = 1e300  # sum of the weights of a node's edges


@by_fields
class GraphRows(NamedTuple):
    """A graph in memory.

    Parameters
    ----------
    starts
        Edges of row i are starts[i]..starts[i + 1] - 1, shape (rows + 1,).
    targets
        Target of each edge, ascending in each row, shape (edges,).
    weights
        Cumulative weights of each row's edges, shape (edges,); (0,) if all weights are 1.
    """

    starts: Int64Array
    targets: Int32Array
    weights: Float64Array


def as_readonly(graph: GraphRows) -> GraphRows:
    """Return a graph of read-only views of the arrays, so that one compiled kernel serves new and received arrays."""
    views: list[Any] = [np.asarray(array).view() for array in graph]
    for view in views:
        view.flags.writeable = False
    return GraphRows(*views)


class StoredEdges(NamedTuple):
    """A part of a graph's rows in the store: its path below the graph's folder, its number of edges.

    `even` is whether all weights are 1.
    """

    path: str
    edges: int
    even: bool


def distribute_piece(layout: GraphLayout, number: int, piece: EdgePiece, n_pieces: int, names: Sequence[Names]) -> str:
    """Task: write the edges of a piece in parts by source, in both directions unless the graph is directed.

    Returns the files' path below the graph's folder. Arguments are as in `read_piece`; `names` are its `ranges`.
    """
    pairs, types, weights = read_piece(layout, number, piece, n_pieces, names)
    if not layout.directed:
        no_loop = pairs[:, 0] != pairs[:, 1]
        pairs = np.concatenate([pairs, pairs[no_loop, ::-1]])
        types = np.concatenate([types, types[no_loop, ::-1]])
        weights = np.concatenate([weights, weights[no_loop]])
    part = pairs[:, 0] % layout.n_parts
    order = np.argsort(part, kind="stable")
    edges = np.searchsorted(part[order], np.arange(layout.n_parts + 1))
    path = f"dealt/{number}/{new_attempt()}"
    write_parts(layout.folder / path, "pairs", edges, pairs[order])
    if layout.weighted:
        write_parts(layout.folder / path, "weights", edges, weights[order][:, None])
    if layout.types:
        write_parts(layout.folder / path, "types", edges, types[order, 1:])
    return path


def write_rows(layout: GraphLayout, part: int, edge_paths: Sequence[str]) -> StoredEdges:
    """Task: write a part of the rows; parallel edges become one with the sum of their weights.

    `edge_paths` are what `distribute_piece` returned for all pieces. Weights in a row that add up to more than
    MAX_NODE_WEIGHT raise InputError.
    """

    def read(name: str, dtype: npt.DTypeLike, columns: int) -> npt.NDArray[Any]:
        folders = [layout.folder / path for path in edge_paths]
        return np.concatenate([read_part(folder, name, layout.n_parts, part, dtype, columns) for folder in folders])

    pairs, n_types = read("pairs", np.int32, 2), max(1, len(layout.types))
    keys = pairs[:, 0].astype(np.int64) // layout.n_parts * n_types
    if layout.types:
        keys += read("types", np.uint8, 1)[:, 0]
    keys = keys * layout.n_nodes + pairs[:, 1]
    if layout.weighted:
        weights = read("weights", np.float64, 1)[:, 0]
        # By weight, too, so that sums have the same bits whatever the order of edges in files
        order = np.lexsort((weights, keys))
        keys = keys[order]
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        with np.errstate(over="ignore"):
            weights = np.add.reduceat(weights[order], first)
    else:
        keys.sort()
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        weights = np.diff(first, append=len(keys)).astype(float)
    rows, targets = np.divmod(keys[first], layout.n_nodes)
    _check_sums(rows, weights)
    n_rows = len(range(part, layout.n_nodes, layout.n_parts)) * n_types
    even = bool((weights == 1).all())
    path = f"rows/{part}/{new_attempt()}"
    group = (layout.folder / path).create_group()
    write_array(group, "degrees", np.bincount(rows, minlength=n_rows))
    write_array(group, "targets", targets.astype(np.int32))
    if not even:
        write_array(group, "weights", weights)
    return StoredEdges(path, len(targets), even)


def _check_sums(rows: Int64Array, weights: Float64Array) -> None:
    """Raise an InputError if the weights of a row's edges add up to so much that walks would overflow.

    `rows` has the row of each edge, ascending.
    """
    with np.errstate(over="ignore"):
        if len(weights) and weights.sum() > MAX_NODE_WEIGHT and np.bincount(rows, weights).max() > MAX_NODE_WEIGHT:
            problem = f"The weights of a node's edges add up to more than {MAX_NODE_WEIGHT:g}."
            raise InputError(problem, "Divide all weights by one number.")


def graph_bytes(n_rows: int, n_edges: int, *, even: bool) -> int:
    """Return the bytes of a graph in memory; `even` is whether all weights are 1."""
    return 8 * (n_rows + 1) + (4 if even else 12) * n_edges


def load_graph(folder: Store, n_nodes: int, rows: Sequence[StoredEdges], n_types: int = 1) -> GraphRows:
    """Task: return all of a graph in memory that workers of one host share; arguments and errors as for `load_rows`."""
    graph = load_rows(folder, n_nodes, n_nodes, rows, n_types)
    return GraphRows(share(graph.starts), share(graph.targets), share(graph.weights))


def load_rows(folder: Store, n_read: int, n_nodes: int, rows: Sequence[StoredEdges], n_types: int = 1) -> GraphRows:
    """Return the rows of nodes of a graph in memory.

    Parameters
    ----------
    folder
        Folder of the graph.
    n_read
        Number of nodes to read; node i of them is in the part rows[i % len(rows)].
    n_nodes
        Number of nodes of the graph.
    rows
        The parts to read.
    n_types
        Number of rows of each node.

    Raises
    ------
    DamageError
        If a part is missing or damaged.
    StoreError
        If a part is not of this graph, or memory has no room for the rows.
    """
    n_edges, even = sum(part.edges for part in rows), all(part.even for part in rows)
    check_room((graph_bytes(n_read * n_types, n_edges, even=even),), ..., 1, folder.url)
    starts = np.zeros(n_read * n_types + 1, np.int64)
    degrees = starts[1:].reshape(n_read, n_types)
    for k, part in enumerate(rows):
        degrees_of_part = degrees[k :: len(rows)]
        stored = _read_array(folder / part.path, "degrees", np.int64, degrees_of_part.size)
        if (stored < 0).any() or (stored > part.edges).any() or stored.sum() != part.edges:
            raise refused(f"{folder.url}/{part.path}/degrees", f"does not add up to {part.edges:,} edges")
        degrees_of_part[...] = stored.reshape(degrees_of_part.shape)
    np.cumsum(starts, out=starts)
    graph = GraphRows(starts, np.empty(n_edges, np.int32), np.empty(0 if even else n_edges))
    for k, part in enumerate(rows):
        targets = _read_array(folder / part.path, "targets", np.int32, part.edges)
        if len(targets) and not 0 <= targets.min() <= targets.max() < n_nodes:
            raise refused(f"{folder.url}/{part.path}/targets", f"names other nodes than 0..{n_nodes - 1}")
        weights = np.ones(part.edges)
        if not part.even:
            weights = _read_array(folder / part.path, "weights", np.float64, part.edges)
        if not (np.isfinite(weights) & (weights > 0)).all():
            raise refused(f"{folder.url}/{part.path}/weights", "holds what is no weight")
        _copy_rows(graph, k, len(rows), n_types, targets, weights)
    return graph


def _read_array(folder: Store, name: str, dtype: npt.DTypeLike, length: int) -> npt.NDArray[Any]:
    """Return an array of a part of the rows; another dtype or length raises StoreError, as kernels check no index."""
    array = read_array(folder.open_group(), name)
    if array.dtype != dtype or array.shape != (length,):
        raise refused(f"{folder.url}/{name}", f"holds {array.dtype} of shape {array.shape}, not ({length},)")
    return array


@kernel
def _copy_rows(
    graph: GraphRows, first: int, step: int, n_types: int, targets: Int32Array, weights: Float64Array
) -> None:
    """Copy the edges of nodes first, first + step, ... into the graph, with cumulative weights in each row.

    `targets` and `weights` are the targets and weights of the edges of these nodes, one after the other.
    """
    k = 0
    for node in range(first * n_types, len(graph.starts) - 1, step * n_types):
        for row in range(node, node + n_types):
            total = 0.0
            for edge in range(graph.starts[row], graph.starts[row + 1]):
                graph.targets[edge] = targets[k]
                if len(graph.weights):
                    total += weights[k]
                    graph.weights[edge] = total
                k += 1
