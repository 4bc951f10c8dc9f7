"""Random walks on a graph, as Parquet files of lists: sentences whose words are nodes (DeepWalk, node2vec)."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from distributed import Client

from daskw2v.cluster.console import listening
from daskw2v.cluster.tasks import run_tasks
from daskw2v.config.resources import Resources
from daskw2v.config.settings import is_number
from daskw2v.corpus.inputs import Inputs
from daskw2v.errors import ParameterError
from daskw2v.extras import Extra
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.progress import Watching
from daskw2v.sequences.edges import EdgeList
from daskw2v.sequences.graph import StoredGraph, build_graph
from daskw2v.sequences.lists import write_lists
from daskw2v.sequences.numbering import read_names
from daskw2v.sequences.rows import Graph, load_graph
from daskw2v.sequences.steps import nodes_of_part, walk
from daskw2v.shards.layout import digest
from daskw2v.store.stage import OpenStage, Stage
from daskw2v.store.storage import Store

pa = Extra("pyarrow", "arrow")

COLUMN = "walk"
_HOME = "walks"
_PART = 1 << 21  # nodes in the walks of a file, about, at most: 50 MB in a task's memory


@dataclass(frozen=True, kw_only=True)
class Walks:
    """Number and kind of random walks.

    Parameters
    ----------
    number
        Walks from each node.
    length
        Most nodes of a walk. It ends early at a node without edges.
    p, q
        A step back to the previous node has the bias 1/p, a step to a node without an edge from it 1/q (node2vec).
        With 1 and 1 only the weights of edges count (DeepWalk).
    seed
        Seed of all draws.

    Raises
    ------
    ParameterError
        If a value is out of range.
    """

    number: int = 10
    length: int = 80
    p: float = 1.0
    q: float = 1.0
    seed: int = 1

    def __post_init__(self) -> None:
        for name, low, high in (("number", 1, 1 << 20), ("length", 1, 1 << 20), ("seed", 0, 2**63 - 1)):
            value = getattr(self, name)
            if not (is_number(value, Integral) and low <= value <= high):
                raise ParameterError(f"{name}={value!r} is not an integer in {low}..{high}.", "Give one in this range.")
            object.__setattr__(self, name, int(value))  # equal values must have equal identities, whatever their type
        for name in ("p", "q"):
            value = getattr(self, name)
            if not (is_number(value, Real) and 1e-6 <= value <= 1e6):
                raise ParameterError(f"{name}={value!r} is not a number in 1e-6..1e6.", "Give one in this range.")
            object.__setattr__(self, name, float(value))


def write_walks(
    inputs: Inputs,
    work: Store,
    edges: EdgeList,
    walks: Walks,
    resources: Resources,
    client: Client,
    listener: Watching = "show",
) -> list[str]:
    """Walk on the graph of an edge list, and write the walks as lists of nodes, in the column `walk`.

    There are `walks.number` rounds with one walk from each node, in random order. Walks and their order depend only on
    the graph and on `walks`. Finished files are not written again. Each worker holds the graph, which workers of one
    host share, and the names of its nodes.

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
        How to read.
    client
        The cluster to run on.
    listener
        Called with the progress.

    Returns
    -------
    list of str
        URLs of Parquet files, in order, for `train` with `Params(column="walk")`.

    Raises
    ------
    InputError, ClusterError, MissingExtraError
        As `build_graph` does.
    """
    with listening(listener, client) as listen:
        graph = build_graph(inputs, work, edges, resources, client, listen)
        n_parts = max(1, math.ceil(graph.names.size * walks.length / _PART))
        files = [f"part-{number:06d}.parquet" for number in range(walks.number * n_parts)]
        home = work / _HOME / digest([graph.home.name, asdict(walks)])
        stage = Stage(work, home, partial(run_tasks, client), listen, "walk", "files")
        stage.make(home.read_manifest, partial(_write, graph, walks, files, client))
    return [(home / name).url for name in files]


def _write(graph: StoredGraph, walks: Walks, files: Sequence[str], client: Client, stage: OpenStage) -> dict[str, Any]:
    home = stage.home
    there = set(home.children())
    n_parts = len(files) // walks.number
    memory = client.submit(load_graph, graph.home, graph.names.size, graph.rows, pure=False, retries=2)
    names = client.submit(read_names, graph.home, graph.names, pure=False, retries=2)
    jobs = [
        (home, name, walks, *divmod(i, n_parts), n_parts, memory, names)
        for i, name in enumerate(files)
        if name not in there
    ]
    stage.expect(len(files), len(files) - len(jobs))
    stage.map("walk", _write_part, jobs)
    made = {"graph": graph.home.name, "nodes": graph.names.size, "files": list(files), **asdict(walks)}
    stage.finish(made, files)
    return made


def _write_part(
    home: Store, file: str, walks: Walks, number: int, part: int, n_parts: int, graph: Graph, names: Any
) -> None:
    """Task: write the walks of round `number` from the nodes of a part."""
    arrays = Graph(_plain(graph.starts), _plain(graph.targets), _plain(graph.weights))
    first = nodes_of_part(len(names), stream(walks.seed, Purpose.START, number), part, n_parts)
    found, lengths = np.empty((len(first), walks.length), np.int32), np.empty(len(first), np.int64)
    walk(arrays, first, stream(walks.seed, Purpose.WALK, number), walks.p, walks.q, found, lengths)
    nodes = found[np.arange(walks.length) < lengths[:, None]]
    write_lists(home, file, COLUMN, names.take(pa.array(nodes)), np.append(0, np.cumsum(lengths)))


def _plain(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a read-only view, so that one compiled kernel serves arrays made here and received ones."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view
