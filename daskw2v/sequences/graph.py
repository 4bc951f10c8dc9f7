"""Builds a graph from an edge list on the cluster: numbers the nodes and writes their edges as rows.

A row has the edges that leave a node or, if nodes have types, its edges to nodes of one type. Part k of n has the rows
of the nodes k, k + n, k + 2n, .... For walks, a graph is divided into partitions in the same way; each has one or more
parts.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dask.utils import format_bytes
from distributed import Client

from daskw2v.cluster.clocks import watching_clocks
from daskw2v.cluster.connecting import GetClient
from daskw2v.cluster.console import listening
from daskw2v.cluster.tasks import connect_tasks
from daskw2v.cluster.waiting import await_worker, waits_for_workers
from daskw2v.cluster.workers import total_threads, workers_known
from daskw2v.config.resources import Resources
from daskw2v.corpus.files import Source
from daskw2v.corpus.inputs import Inputs
from daskw2v.corpus.sources import find_sources, plan_blocks
from daskw2v.errors import ClusterError, InputError, ParameterError, counted
from daskw2v.extras import needed
from daskw2v.progress import Watching
from daskw2v.sequences import numbering
from daskw2v.sequences.edges import find_node_kind
from daskw2v.sequences.files import digest_inputs, parse_tuples
from daskw2v.sequences.numbering import EdgePiece, GraphLayout, Names
from daskw2v.sequences.rows import StoredEdges, distribute_piece, graph_bytes, write_rows
from daskw2v.sequences.settings import EdgeList
from daskw2v.store.limits import refused, shown
from daskw2v.store.stage import Layout, OpenStage, Stage
from daskw2v.store.storage import MANIFEST, Store

PART_EDGES = 1 << 21  # edges in a part of the rows, about, or half as many
_MIN_PARTS = 8  # parts of a small graph, which may be partitioned, too
_GRAPH_SHARE = 0.5  # share of a worker's memory that an undivided graph may take; tasks need the rest
_PARTITIONS_SHARE = 0.3  # share that partitions may take, one for each thread; walkers and their trails take as much
_FORMAT = 2  # of the files; a graph in another format is built anew
_MAX_NODES = 1 << 31  # numbers of nodes are int32
LAYOUT = Layout("graphs/<key>", unused="graphs/<key>")


@dataclass(frozen=True)
class StoredGraph:
    """A finished graph in the store.

    Parameters
    ----------
    folder
        Folder of the graph.
    names
        Files of the names of all nodes, in ranges: node i has the i-th name.
    name_bytes
        Bytes that all names take in memory.
    rows
        All edges, in parts by source; the number of parts is a power of two.
    types
        Number of nodes of each type, by the type's name; empty without types.
    """

    folder: Store
    names: tuple[Names, ...]
    name_bytes: int
    rows: tuple[StoredEdges, ...]
    types: Mapping[str, int]

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return sum(part.size for part in self.names)

    @property
    def n_edges(self) -> int:
        """Number of edges; an edge of an undirected graph counts in both directions."""
        return sum(part.edges for part in self.rows)

    @property
    def n_types(self) -> int:
        """Number of types, which is the number of rows of each node; 1 without types."""
        return max(1, len(self.types))


def build_graph(
    inputs: Inputs, work: Store, edges: EdgeList, resources: Resources, client: GetClient, listener: Watching = "show"
) -> StoredGraph:
    """Build the graph of an edge list in the work directory, or return it if it was built before.

    Parallel edges are combined into one with the sum of their weights. Loops are kept. Nodes are all ends of edges.
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
        Options and timeout of the store, and bytes of a block.
    client
        Returns the client of the cluster; called only if the graph must be built.
    listener
        Called with the progress.

    Raises
    ------
    InputError
        If the files cannot be read as edges or have none; if a node has two types or its edges weigh too much, or there
        are too many nodes or types.
    ParameterError
        If `edges.strings` is set and all files are Parquet.
    MissingExtraError
        If pyarrow is not installed.
    """
    needed("pyarrow", "arrow")

    def build(stage: OpenStage) -> dict[str, Any]:
        with watching_clocks(client()):
            return _build(sources, edges, resources, stage)

    with listening(listener) as listen, waits_for_workers(resources, listen):
        sources = find_sources(inputs, None, resources.storage_options, work=work.url, listener=listen)
        folder = work / LAYOUT.folder / digest_inputs(sources, edges.described, _FORMAT)
        stage = Stage(work, folder, partial(connect_tasks, client, work), listen, "graph")
        manifest = stage.make(folder.read_manifest, build)
    return read_graph(folder, manifest)


def read_graph(folder: Store, manifest: dict[str, Any]) -> StoredGraph:
    """Return the graph in a folder that a manifest describes.

    Raises
    ------
    StoreError
        If an entry of the manifest is missing or of another type, or contradicts the number of nodes.
    """
    url = f"{folder.url}/{MANIFEST}"
    match manifest:
        case {"names": [*names], "rows": [*parts], "name_bytes": int(size)} if 0 <= size < 1 << 63:
            types = _check_types(manifest.get("types", {}), url)
            rows = tuple(parse_tuples(StoredEdges, parts, url))
            graph = StoredGraph(folder, tuple(parse_tuples(Names, names, url)), size, rows, types)
        case _:
            raise refused(url, f"describes no graph: {shown(manifest)}")
    if types and sum(types.values()) != graph.n_nodes:
        raise refused(url, f"holds types of {sum(types.values()):,} of {counted(graph.n_nodes, 'node')}")
    if not 0 < len(parts) <= graph.n_nodes or len(parts) & (len(parts) - 1):
        raise refused(url, f"holds {counted(len(parts), 'part')} of {counted(graph.n_nodes, 'node')}")
    return graph


def _check_types(types: Any, url: str) -> dict[str, int]:
    """Return the number of nodes of each type, sorted by type, from the entry `types` of the manifest at `url`.

    Raises a StoreError for another value.
    """
    counts = types.values() if isinstance(types, dict) else [None]
    if len(counts) > numbering.MAX_TYPES or not all(isinstance(count, int) and count > 0 for count in counts):
        raise refused(url, f"holds no types of nodes: {shown(types)}")
    return dict(sorted(types.items()))


def _build(sources: Sequence[Source], edges: EdgeList, resources: Resources, stage: OpenStage) -> dict[str, Any]:
    """Build the graph of an edge list in the folder of a stage; return its manifest."""
    folder = stage.folder
    task_folder = replace(folder, options={**resources.storage_options, **folder.options})
    kind = find_node_kind(sources, edges, resources.storage_options, resources.store_timeout)
    blocks = plan_blocks(sources, resources.block_bytes, resources.storage_options, resources.store_timeout)
    blocks_to_read = [(block, task_folder, edges, kind) for block in blocks]
    encoded = _run_step(stage, "read edges", numbering.encode_block, blocks_to_read)
    pieces = [piece for manifest in encoded for piece in numbering.parse_pieces(manifest)]
    if not pieces:
        problem = f"There are no edges in {counted(len(sources), 'file')}."
        raise InputError(problem, "Check the files and the names of their columns.")
    types = numbering.sort_types(name for piece in pieces for name in piece.types)
    jobs = [(folder, number, names, types) for number, names in enumerate(numbering.divide_names(pieces))]
    merged = _run_step(stage, "number nodes", numbering.merge_range, jobs)
    names = [part.names for part in merged]
    rows = _write_rows(names, pieces, edges, types, stage)
    manifest = {"names": names, "name_bytes": sum(part.size for part in merged), "rows": rows}
    if types:
        type_counts = map(sum, zip(*(part.type_counts for part in merged), strict=True))
        manifest["types"] = dict(zip(types, type_counts, strict=True))
    stage.finish(manifest, [part.path for part in (*names, *rows)])
    return manifest


def _run_step(stage: OpenStage, step: str, function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Run a function once for each job, with a progress of its own; return the results in the order of the jobs.

    The number of tasks of later steps is not known yet, so no progress covers all steps.
    """
    stage.expect(len(jobs), message=step)
    return stage.map(step, function, jobs)


def _write_rows(
    names: Sequence[Names], pieces: Sequence[EdgePiece], edges: EdgeList, types: Sequence[str], stage: OpenStage
) -> list[StoredEdges]:
    """Write the edges of all pieces as rows, sorted by source and target; return the parts of the rows.

    `names` are the ranges of the graph's nodes, `types` the types of nodes. Too many nodes raise InputError.
    """
    n_nodes = sum(part.size for part in names)
    if n_nodes >= _MAX_NODES:
        raise InputError(f"The edges have {n_nodes:,} nodes; at most {_MAX_NODES:,} are supported.", "Split the graph.")
    n_edges = sum(piece.edges for piece in pieces) * (1 if edges.directed else 2)
    n_parts = 1 << min(int(math.log2(n_nodes)), math.ceil(math.log2(max(_MIN_PARTS, n_edges / PART_EDGES))))
    layout = GraphLayout(stage.folder, n_nodes, n_parts, edges.directed, edges.weight is not None, tuple(types))
    jobs = [(layout, number, piece, len(pieces), names) for number, piece in enumerate(pieces)]
    edge_paths = _run_step(stage, "deal edges", distribute_piece, jobs)
    return _run_step(stage, "order edges", write_rows, [(layout, part, edge_paths) for part in range(n_parts)])


def choose_n_partitions(graph: StoredGraph, requested: int | None, client: Client) -> int:
    """Return the number of partitions into which a graph is divided for walks: 1 if each worker holds all of it.

    It is a power of two.

    Parameters
    ----------
    graph
        The graph.
    requested
        The number that the user wants, a power of two. None: as few as the workers' memory allows; if more than one, at
        least the number of the cluster's threads, as far as the graph has parts.
    client
        The cluster.

    Raises
    ------
    ClusterError
        If the workers have no room for the graph, or for its partitions.
    ParameterError
        If more partitions are requested than the graph has parts.
    """
    await_worker(client)
    workers, n_parts = workers_known(client).values(), len(graph.rows)
    memory = min((worker["memory_limit"] or math.inf for worker in workers), default=math.inf)
    if requested is not None and requested > n_parts:
        problem = f"partitions={requested}, but this graph has {n_parts} parts."
        raise ParameterError(problem, f"Give {n_parts}, or fewer.")
    threads = max((worker["nthreads"] for worker in workers), default=1)
    counts = [1 << k for k in range(1, n_parts.bit_length())]
    limits = {n: _partition_bytes(graph, n) * threads / _PARTITIONS_SHARE for n in counts}
    limits[1] = _partition_bytes(graph, 1) / _GRAPH_SHARE
    fitting = sorted(n for n, limit in limits.items() if limit <= memory)
    min_n = 1 if 1 in fitting else total_threads(client)
    n = requested or next((n for n in fitting if n >= min_n), max(fitting, default=n_parts))
    if limits[n] > memory:
        share = _GRAPH_SHARE if n == 1 else _PARTITIONS_SHARE
        raise ClusterError(
            f"The graph of {counted(graph.n_nodes, 'node')} and {counted(graph.n_edges, 'edge')}"
            f"{'' if n == 1 else f' in {n} partitions'} takes {format_bytes(int(limits[n] * share))} of each worker's "
            f"memory, but may take only {share:.0%} of {format_bytes(int(memory))}.",
            f"Give workers a memory_limit of {format_bytes(math.ceil(limits[n]))}: use fewer workers"
            f"{' with more threads each' if n == 1 else ''}.",
        )
    return n


def _partition_bytes(graph: StoredGraph, n: int) -> int:
    """Return the bytes in memory of the largest of `n` partitions of a graph.

    They include the types of the partition's nodes, and all nodes' names if `n` is 1.
    """
    edges, even = max(sum(part.edges for part in graph.rows[k::n]) for k in range(n)), all(p.even for p in graph.rows)
    nodes = -(-graph.n_nodes // n)
    types = nodes if graph.types else 0
    return graph_bytes(nodes * graph.n_types, edges, even=even) + types + (graph.name_bytes if n == 1 else 0)
