"""Builds a graph from an edge list on the cluster: numbers the nodes and writes their edges as rows."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dask.utils import format_bytes
from distributed import Client

from daskw2v.cluster import await_worker, check_cluster, clocks_watched, gather, waits_for_workers, workers_known
from daskw2v.cluster.console import listening
from daskw2v.cluster.tasks import run_tasks
from daskw2v.config.resources import Resources
from daskw2v.corpus.files import Source
from daskw2v.corpus.inputs import Inputs
from daskw2v.corpus.sources import find_sources, plan_blocks
from daskw2v.errors import ClusterError, InputError, counted
from daskw2v.extras import needed
from daskw2v.progress import Listener, Watching
from daskw2v.sequences.edges import EdgeList
from daskw2v.sequences.identity import identity_of
from daskw2v.sequences.numbering import EdgePiece, Names, encode_block, merge_names, pieces_of, read_names
from daskw2v.sequences.rows import GraphLayout, StoredEdges, deal_piece, fill_rows, graph_bytes
from daskw2v.store.limits import refused, shown, typed
from daskw2v.store.stage import OpenStage, Stage
from daskw2v.store.storage import MANIFEST, Store

_PART = 1 << 21  # edges in a part of the rows, about
_MERGED = 8  # parts whose names one task merges
_NAME = 16  # bytes of a node in hash tables, besides its name
_SHARE = 0.5  # share of a worker's memory that a graph may take; tasks need the rest
_MOST = 1 << 31  # nodes, whose numbers are int32
_HOME = "graphs"


@dataclass(frozen=True)
class StoredGraph:
    """A finished graph.

    Parameters
    ----------
    home
        Folder of the graph.
    names
        Names of its nodes.
    rows
        Its edges, in parts.
    """

    home: Store
    names: Names
    rows: tuple[StoredEdges, ...]

    @property
    def n_edges(self) -> int:
        """Number of edges; those of an undirected graph count in both directions."""
        return sum(part.edges for part in self.rows)


def build_graph(
    inputs: Inputs,
    work: Store,
    edges: EdgeList,
    resources: Resources,
    client: Client,
    listener: Watching = "show",
) -> StoredGraph:
    """Build the graph of an edge list, or return it if it was built before.

    Parallel edges are combined into one with the sum of their weights. Loops are kept. Nodes are those that edges name.
    Every block is read once, also by an interrupted build that resumes.

    Parameters
    ----------
    inputs
        URLs, paths, folders or patterns of the edges.
    work
        The work directory, which all workers can reach.
    edges
        Layout of edges in these files.
    resources
        How to read.
    client
        The cluster to run on.
    listener
        Called with the progress.

    Raises
    ------
    InputError
        If the files cannot be read as edges, have none, or name nodes by both integers and strings.
    ClusterError
        If the graph does not fit into a worker's memory.
    MissingExtraError
        If pyarrow is not installed.
    """
    needed("pyarrow", "arrow")
    with listening(listener, client) as listen, waits_for_workers(resources, listen):
        return _stored(inputs, work, edges, resources, client, listen)


def _stored(
    inputs: Inputs, work: Store, edges: EdgeList, resources: Resources, client: Client, listener: Listener
) -> StoredGraph:
    check_cluster(client, work)
    sources = find_sources(inputs, None, resources.storage_options, tables=True, work=work.url)
    home = work / _HOME / identity_of(sources, edges)
    stage = Stage(work, home, partial(run_tasks, client), listener, "graph")
    with clocks_watched(client):
        manifest = stage.make(home.read_manifest, partial(_build, sources, edges, resources, client))
    graph, name_bytes = read_graph(home, manifest)
    n_nodes, n_edges = graph.names.size, graph.n_edges
    size = graph_bytes(n_nodes, n_edges, even=all(part.even for part in graph.rows)) + name_bytes
    _check_room(client, size, f"The graph of {counted(n_nodes, 'node')} and {counted(n_edges, 'edge')}")
    return graph


def read_graph(home: Store, manifest: dict[str, Any]) -> tuple[StoredGraph, int]:
    """Return what a manifest says: the graph, and the bytes of its nodes' names.

    Raises
    ------
    StoreError
        If an entry is missing or of another type.
    """
    place = f"{home.url}/{MANIFEST}"
    match manifest:
        case {"names": [path, size], "rows": [*parts], "name_bytes": int(name_bytes)} if 0 <= name_bytes < 1 << 63:
            names = typed(Names, {"path": path, "size": size}, place)
            if not 0 < len(parts) <= names.size:
                raise refused(place, f"holds {counted(len(parts), 'part')} of {counted(names.size, 'node')}")
        case _:
            raise refused(place, f"describes no graph: {shown(manifest)}")
    rows = []
    for part in parts:
        if not isinstance(part, list | tuple) or len(part) != len(StoredEdges._fields):
            raise refused(place, f"holds no StoredEdges: {shown(part)}")
        rows.append(typed(StoredEdges, dict(zip(StoredEdges._fields, part, strict=True)), place))
    return StoredGraph(home, names, tuple(rows)), name_bytes


def _build(
    sources: Sequence[Source], edges: EdgeList, resources: Resources, client: Client, stage: OpenStage
) -> dict[str, Any]:
    home = stage.home
    place = replace(home, options={**resources.storage_options, **home.options})
    blocks = plan_blocks(sources, resources.block_bytes, resources.storage_options)
    encoded = _step(stage, "read edges", encode_block, [(block, place, edges) for block in blocks])
    pieces = [piece for manifest in encoded for piece in pieces_of(manifest, edges)]
    if not pieces:
        raise InputError(
            f"There are no edges in {counted(len(sources), 'file')}.", "Check the files and the names of their columns."
        )
    if len({manifest["strings"] for manifest in encoded if manifest["pieces"]}) > 1:
        raise InputError("Some files name nodes by integers, others by strings.", "Use one type in all files.")
    parts = [piece.names for piece in pieces]
    while True:
        groups = [parts[i : i + _MERGED] for i in range(0, len(parts), _MERGED)]
        parts = _step(stage, "merge names", merge_names, [(home, group) for group in groups])
        if len(parts) == 1:
            return _fill(parts[0], pieces, edges, client, stage)


def _step(stage: OpenStage, step: str, function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Run the tasks of a step. Each step counts its own progress, as the number of later tasks is not known yet."""
    stage.expect(len(jobs), message=step)
    return stage.map(step, function, jobs)


def _fill(
    names: Names, pieces: Sequence[EdgePiece], edges: EdgeList, client: Client, stage: OpenStage
) -> dict[str, Any]:
    """Sort all edges by source and target, and write the manifest."""
    if names.size >= _MOST:
        raise InputError(f"The edges have {names.size:,} nodes; at most {_MOST:,} are supported.", "Split the graph.")
    home = stage.home
    nodes = client.submit(read_names, home, names, pure=False)
    (name_bytes,) = gather(client, [client.submit(_bytes_of, nodes, pure=False)], "Reading the nodes")
    n_edges = sum(piece.edges for piece in pieces) * (1 if edges.directed else 2)
    _check_room(client, name_bytes + _NAME * names.size, f"The table of {counted(names.size, 'node')}")
    n_parts = min(names.size, max(1, math.ceil(n_edges / _PART)))
    layout = GraphLayout(home, names.size, n_parts, edges.directed, edges.weight is not None)
    dealt = _step(stage, "deal edges", deal_piece, [(layout, i, piece, nodes) for i, piece in enumerate(pieces)])
    rows = _step(stage, "order edges", fill_rows, [(layout, part, dealt) for part in range(n_parts)])
    manifest = {"names": names, "rows": rows, "name_bytes": name_bytes}
    stage.finish(manifest, [names.path, *(part.path for part in rows)])
    return manifest


def _bytes_of(nodes: Any) -> int:
    return int(nodes.nbytes)


def _check_room(client: Client, size: int, what: str) -> None:
    """Refuse data of `size` bytes that each worker needs in memory but has no room for."""
    await_worker(client)
    workers = workers_known(client).values()
    limit = min((worker["memory_limit"] or math.inf for worker in workers), default=math.inf)
    if size > _SHARE * limit:
        raise ClusterError(
            f"{what} takes {format_bytes(size)} of each worker's memory, but may take only "
            f"{_SHARE:.0%} of {format_bytes(int(limit))}.",
            f"Give workers a memory_limit of {format_bytes(math.ceil(size / _SHARE))}: use fewer workers with more "
            "threads each.",
        )
