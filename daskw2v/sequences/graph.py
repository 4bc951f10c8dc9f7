"""From an edge list to a graph: its nodes numbered, its rows written, on the cluster."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dask.utils import format_bytes
from distributed import Client

from daskw2v.cluster import await_worker, check_cluster, gather, waits_for_workers, workers_known
from daskw2v.console import listening
from daskw2v.corpus.inputs import Inputs
from daskw2v.corpus.sources import Source, find_sources, plan_blocks
from daskw2v.errors import ClusterError, InputError
from daskw2v.extras import needed
from daskw2v.params import Resources
from daskw2v.progress import Listener, Progress, Watching
from daskw2v.sequences.edges import EdgeList
from daskw2v.sequences.numbering import Names, Piece, encode_block, merge_names, pieces_of, read_names
from daskw2v.sequences.rows import Layout, Rows, deal_piece, fill_rows, graph_bytes
from daskw2v.sequences.stages import contents_of, stage
from daskw2v.shards.tasks import remove_losers, run_tasks
from daskw2v.storage import Store
from daskw2v.wording import counted

_PART = 1 << 21  # edges of a part of the rows, about
_MERGED = 8  # parts whose names one task merges
_NAME = 16  # bytes a node's name takes in the tables by which it is looked up, besides itself
_SHARE = 0.5  # of a worker's memory that a graph may take: tasks need some too
_MOST = 1 << 31  # nodes: their numbers have 32 bits
_HOME = "graphs"


@dataclass(frozen=True)
class StoredGraph:
    """A finished graph.

    Parameters
    ----------
    home
        Its folder.
    names
        Its nodes.
    rows
        Its edges, in parts.
    """

    home: Store
    names: Names
    rows: tuple[Rows, ...]

    @property
    def n_edges(self) -> int:
        """Edges, each of an undirected graph in both directions."""
        return sum(part.edges for part in self.rows)


def build_graph(
    inputs: Inputs,
    work: Store,
    edges: EdgeList,
    resources: Resources,
    client: Client,
    listener: Watching = "show",
) -> StoredGraph:
    """Make the graph of an edge list: its nodes numbered, its edges in order; one that is there already is returned.

    Parallel edges become one that weighs as much as they do together; an edge from a node to itself is one way to stay.
    Nodes are those that edges name. Every block is read once; a build that was cut short does not read it again.

    Parameters
    ----------
    inputs
        URLs, paths, folders or patterns of the edges.
    work
        The work directory, which all workers can reach.
    edges
        How edges stand in these files.
    resources
        How to read.
    client
        Where to run.
    listener
        Is told the tasks done.

    Raises
    ------
    InputError
        If the files cannot be read as edges, hold none, or name nodes by integers and by strings.
    ClusterError
        If a worker's memory has no room for the graph.
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
    with stage(work, _HOME, [contents_of(sources), asdict(edges)], listener) as (home, guarded):
        manifest = home.read_manifest() or _build(home, sources, edges, resources, client, guarded)
        names, rows = Names(*manifest["names"]), tuple(Rows(*part) for part in manifest["rows"])
        graph = StoredGraph(home, names, rows)
        for temporary in ("blocks", "dealt"):
            (home / temporary).remove()
        remove_losers(home, {"names": {names.path.rpartition("/")[2]}})
    size = graph_bytes(names.size, graph.n_edges, even=all(part.even for part in rows)) + manifest["name_bytes"]
    _check_room(client, size, f"The graph of {counted(names.size, 'node')} and {counted(graph.n_edges, 'edge')}")
    return graph


def _build(
    home: Store, sources: Sequence[Source], edges: EdgeList, resources: Resources, client: Client, listener: Listener
) -> dict[str, Any]:
    def call(stage: str, function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]]) -> list[Any]:
        results: dict[int, Any] = {}
        for number, result in run_tasks(client, stage, function, dict(enumerate(jobs))):
            results[number] = result
            listener(Progress("graph", len(results), len(jobs), "tasks", message=stage))
        return [results[number] for number in range(len(jobs))]

    place = Store(home.url, {**resources.storage_options, **home.options}, home.patience)
    blocks = plan_blocks(sources, resources.block_bytes, resources.storage_options)
    encoded = call("read edges", encode_block, [(block, place, edges) for block in blocks])
    pieces = [piece for manifest in encoded for piece in pieces_of(manifest, edges)]
    if not pieces:
        raise InputError(
            f"There is no edge in {counted(len(sources), 'file')}.", "Check the files, and how their columns are named."
        )
    if len({manifest["strings"] for manifest in encoded if manifest["pieces"]}) > 1:
        raise InputError("Some files name nodes by integers, others by strings.", "Write all in one way.")
    parts = [piece.names for piece in pieces]
    while True:
        groups = [parts[i : i + _MERGED] for i in range(0, len(parts), _MERGED)]
        parts = call("merge names", merge_names, [(home, group) for group in groups])
        if len(parts) == 1:
            return _fill(home, parts[0], pieces, edges, client, call)


def _fill(
    home: Store,
    names: Names,
    pieces: Sequence[Piece],
    edges: EdgeList,
    client: Client,
    call: Callable[[str, Callable[..., Any], Sequence[tuple[Any, ...]]], list[Any]],
) -> dict[str, Any]:
    """Put all edges in order of their nodes, and write the manifest."""
    if names.size >= _MOST:
        raise InputError(f"The edges name {names.size:,} nodes, where {_MOST:,} are the most.", "Cut the graph.")
    nodes = client.submit(read_names, home, names, pure=False)
    (name_bytes,) = gather(client, [client.submit(_bytes_of, nodes, pure=False)], "Reading the nodes")
    n_edges = sum(piece.edges for piece in pieces) * (1 if edges.directed else 2)
    _check_room(client, name_bytes + _NAME * names.size, f"The table of {counted(names.size, 'node')}")
    n_parts = min(names.size, max(1, math.ceil(n_edges / _PART)))
    layout = Layout(home, names.size, n_parts, edges.directed, edges.weight is not None)
    dealt = call("deal edges", deal_piece, [(layout, i, piece, nodes) for i, piece in enumerate(pieces)])
    rows = call("order edges", fill_rows, [(layout, part, dealt) for part in range(n_parts)])
    manifest = {"names": names, "rows": rows, "name_bytes": name_bytes}
    home.write_manifest(manifest)
    return manifest


def _bytes_of(nodes: Any) -> int:
    return int(nodes.nbytes)


def _check_room(client: Client, size: int, what: str) -> None:
    """Refuse what each worker has to hold and cannot."""
    await_worker(client)
    workers = workers_known(client).values()
    limit = min((worker["memory_limit"] or math.inf for worker in workers), default=math.inf)
    if size > _SHARE * limit:
        raise ClusterError(
            f"{what} takes {format_bytes(size)} in each worker's memory, of which it may have "
            f"{_SHARE:.0%} of {format_bytes(int(limit))}.",
            f"Give workers a memory_limit of {format_bytes(math.ceil(size / _SHARE))}: fewer of them, with more "
            "threads each.",
        )
