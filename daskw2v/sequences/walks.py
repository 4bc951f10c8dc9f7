"""Random walks on a graph, as Parquet files of lists: sentences whose words are nodes (DeepWalk, node2vec)."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from distributed import Client

from daskw2v.cluster.connecting import GetClient
from daskw2v.cluster.console import listening
from daskw2v.cluster.tasks import connect_tasks
from daskw2v.config.resources import Resources
from daskw2v.corpus.inputs import Inputs
from daskw2v.extras import Extra
from daskw2v.progress import Watching
from daskw2v.sequences.files import make_list_table, write_table
from daskw2v.sequences.graph import LAYOUT as GRAPHS
from daskw2v.sequences.graph import build_graph, choose_n_partitions
from daskw2v.sequences.numbering import read_names, read_types
from daskw2v.sequences.rounds import NumberedWalks, WalkFiles, divide_graph, run_rounds, write_group
from daskw2v.sequences.rows import GraphRows, as_readonly, load_graph
from daskw2v.sequences.settings import EdgeList, Walks, check_types
from daskw2v.sequences.steps import encode_metapath, shuffle_part, walk
from daskw2v.shards.layout import digest
from daskw2v.store.stage import Layout, OpenStage, Stage
from daskw2v.store.storage import Store
from daskw2v.types import Int32Array, Int64Array, UInt8Array

pa = Extra("pyarrow", "arrow")

COLUMN = "walk"
LAYOUT = Layout("walks/<key>", unused="walks/<key>")
FILE_NODES = 1 << 21  # nodes in the walks of a file, about, at most: 50 MB in a task's memory


def write_walks(
    inputs: Inputs,
    work: Store,
    edges: EdgeList,
    walks: Walks,
    resources: Resources,
    client: GetClient,
    listener: Watching = "show",
    column: str = COLUMN,
) -> list[str]:
    """Walk on the graph of an edge list, and write the walks as lists of nodes.

    There are `walks.number` walks from each node, or with a metapath from each node of its first type: all first walks
    in random order, then all second ones, and on. Walks and their order depend only on the graph and on `walks`.
    Finished files are not written again. Each worker holds the graph, which workers of one host share, and the names of
    its nodes; if a worker has no room for them, walks travel through partitions of the graph.

    Parameters
    ----------
    inputs
        URLs, paths, folders or patterns of the edges.
    work
        The work directory, which all workers can reach.
    edges
        Layout of edges in these files.
    walks
        Number and kind of walks.
    resources
        Options and timeout of the store, and bytes of a block.
    client
        Returns the client of the cluster; called only if files must be written.
    listener
        Called with the progress.
    column
        Name of the column of lists.

    Returns
    -------
    list of str
        URLs of Parquet files, in order, for `train` with `Params(column=column)`.

    Raises
    ------
    InputError, MissingExtraError
        As `build_graph` does.
    ClusterError
        As `choose_n_partitions` does.
    ParameterError
        As `build_graph` and `choose_n_partitions` do; or if there is a metapath, but edges have no types, or no node
        has one of its types; or if there are types, but no metapath.
    """
    check_types(edges, walks)
    with listening(listener) as listen:
        graph = build_graph(inputs, work, edges, resources, client, listen)
        encode_metapath(walks, graph.types)  # refuses unknown types
        n_walks = graph.types[walks.metapath[0]] if walks.metapath else graph.n_nodes
        n_files = max(1, math.ceil(n_walks * walks.length / FILE_NODES))
        numbers = min(walks.number, max(1, FILE_NODES // max(1, n_walks * walks.length)))
        # Files of one number came first: they keep their names
        shared = [numbers] if numbers > 1 else []
        folder = work / LAYOUT.folder / digest([graph.folder.name, walks.described, column, *shared])
        files = WalkFiles(folder, graph, walks, column, n_files, numbers)
        stage = Stage(work, folder, partial(connect_tasks, client, work), listen, "walk", "files")
        stage.make(partial(_read_manifest, folder), partial(_write, files, client))
    return [(folder / files.name(*key)).url for key in files.keys]


def _read_manifest(folder: Store) -> dict[str, Any] | None:
    """Return the manifest of finished walks; None if it is missing, or a file is missing or has another size."""
    manifest = folder.read_manifest()
    return manifest if manifest is None or manifest["files"].items() <= folder.sizes().items() else None


def _write(files: WalkFiles, get_client: GetClient, stage: OpenStage) -> dict[str, Any]:
    """Write the files of walks that are missing, and the manifest; return the manifest without its files."""
    files, sizes = files._replace(folder=stage.folder), stage.folder.sizes()
    recorded = (stage.folder.read_manifest() or {"files": {}})["files"]
    finished = {name for name, size in sizes.items() if recorded.get(name, size) == size}
    missing = [key for key in files.keys if files.name(*key) not in finished]
    client = get_client()
    n_partitions = choose_n_partitions(files.graph, files.walks.partitions, client)
    stage.expect(len(files.keys), len(files.keys) - len(missing))
    if n_partitions == 1:
        _walk_in_memory(files, missing, client, stage)
    else:
        _walk_in_partitions(files, n_partitions, missing, stage)
    sizes, names = stage.folder.sizes(), [files.name(*key) for key in files.keys]
    described = {"graph": files.graph.folder.name, "nodes": files.graph.n_nodes, **files.walks.described}
    stage.finish({**described, "files": {name: sizes[name] for name in names}}, names)
    return described


def _walk_in_memory(files: WalkFiles, missing: Sequence[tuple[int, int]], client: Client, stage: OpenStage) -> None:
    """Write files of walks on workers that each hold the graph; `missing` are keys of `WalkFiles.keys`."""
    graph = files.graph
    memory = client.submit(load_graph, graph.folder, graph.n_nodes, graph.rows, graph.n_types, pure=False, retries=2)
    names = client.submit(read_names, graph.folder, graph.names, pure=False, retries=2)
    types = client.submit(read_types, graph.folder, graph.names, pure=False, retries=2) if graph.types else None
    stage.map("walk", _fill_file, [(files, number, part, memory, names, types) for number, part in missing])


def _fill_file(files: WalkFiles, first: int, part: int, graph: GraphRows, names: Any, types: UInt8Array | None) -> None:
    """Task: write a file of walks from the nodes of a part, of all numbers of the file; `first` is the first number.

    `names` are all nodes' names, an Arrow array; `types` are the codes of their types, None without types.
    """
    walks = [_make_walks(files, number, part, graph, names, types) for number in files.numbers_from(first)]
    nodes, lengths = (np.concatenate(arrays) for arrays in zip(*walks, strict=True))
    offsets = np.append(0, np.cumsum(lengths))
    table = make_list_table(files.column, names.take(pa.array(nodes)), offsets)
    write_table(files.folder, files.name(first, part), table)


def _make_walks(
    files: WalkFiles, number: int, part: int, graph: GraphRows, names: Any, types: UInt8Array | None
) -> tuple[Int32Array, Int64Array]:
    """Return the walks of a number from the nodes of a part.

    Returns
    -------
    nodes
        Nodes of all walks, one walk after the other.
    lengths
        Number of nodes of each walk, shape (walks,).
    """
    rule, length = files.rule(number), files.walks.length
    first = shuffle_part(len(names), files.start(number), part, files.n)
    if types is not None:
        first = first[types[first] == rule.path.types[0]]
    nodes, lengths = np.empty((len(first), length), np.int32), np.empty(len(first), np.int64)
    walk(as_readonly(graph), first, rule, nodes, lengths)
    return nodes[np.arange(length) < lengths[:, None]], lengths


def _walk_in_partitions(files: WalkFiles, n: int, missing: Sequence[tuple[int, int]], stage: OpenStage) -> None:
    """Write files by walks through `n` partitions, one number after the other; `missing` are keys of files."""
    partitions = divide_graph(stage, files.graph, n)
    for first in range(0, files.walks.number, files.numbers):
        parts = {part for number, part in missing if number == first}
        if parts:
            journeys = [NumberedWalks(files, number, partitions) for number in files.numbers_from(first)]
            outputs = [(journey, run_rounds(stage, journey)) for journey in journeys]
            groups = [k for k, group in enumerate(journeys[0].groups) if not parts.isdisjoint(group)]
            stage.map(f"write walk {first}", write_group, [(outputs, k) for k in groups], len(parts))
            for journey in journeys:
                journey.folder.remove()


def find_graph(work: Store, name: str) -> Iterator[str]:
    """Yield the path of the graph that a file of walks was made of; nothing if `name` is not the path of such a file.

    Both paths are relative to the work directory `work`.
    """
    folder = LAYOUT.unused_part(name)
    manifest = None if folder is None else (work / folder).read_manifest()
    if manifest is not None:
        yield f"{GRAPHS.folder}/{manifest['graph']}"
