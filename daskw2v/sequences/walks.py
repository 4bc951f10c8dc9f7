"""Walks on a graph, as Parquet files of lists: sentences whose words are nodes (DeepWalk, node2vec)."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from distributed import Client

from daskw2v.checked import is_number
from daskw2v.console import listening
from daskw2v.corpus.inputs import Inputs
from daskw2v.errors import ParameterError
from daskw2v.params import Resources
from daskw2v.progress import Listener, Progress, Watching
from daskw2v.sampling.rng import Purpose, stream
from daskw2v.sequences.edges import EdgeList
from daskw2v.sequences.graph import StoredGraph, build_graph
from daskw2v.sequences.lists import write_lists
from daskw2v.sequences.numbering import read_names
from daskw2v.sequences.rows import Graph, load_graph
from daskw2v.sequences.stages import stage
from daskw2v.sequences.steps import nodes_of_part, walk
from daskw2v.shards.tasks import run_tasks
from daskw2v.storage import Store

try:
    import pyarrow as pa
except ImportError:  # build_graph tells the user
    pa = None

COLUMN = "walk"
_HOME = "walks"
_PART = 1 << 21  # nodes in the walks of a file, at most about: a task holds some 50 MB of them


@dataclass(frozen=True, kw_only=True)
class Walks:
    """How many walks there are, and how they go.

    Parameters
    ----------
    number
        Walks from each node.
    length
        Nodes of a walk, at most: it ends earlier where no edge leads on.
    p, q
        A step back to where the walk came from weighs 1/p, one to a node that has no edge from there 1/q (node2vec);
        with 1 and 1 only edges' weights count (DeepWalk).
    seed
        Of all draws.

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
                raise ParameterError(f"{name}={value!r} is no integer in {low}..{high}.", f"Give {name} such a one.")
            object.__setattr__(self, name, int(value))  # equal walks are written alike, whatever they were given as
        for name in ("p", "q"):
            value = getattr(self, name)
            if not (is_number(value, Real) and 1e-6 <= value <= 1e6):
                raise ParameterError(f"{name}={value!r} is no number in 1e-6..1e6.", f"Give {name} such a one.")
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

    One from each node, in an order that is drawn, and so again `walks.number` times. Walks and their order depend on
    the graph and on `walks`, and on nothing else; those that a run before has written are not drawn again. Each worker
    holds the graph, whose memory the workers of a host share, and the names of its nodes.

    Parameters
    ----------
    inputs
        URLs, paths, folders or patterns of the edges.
    work
        The work directory, which all workers can reach.
    edges
        How edges stand in these files.
    walks
        How to walk.
    resources
        How to read.
    client
        Where to run.
    listener
        Is told the tasks done.

    Returns
    -------
    list of str
        URLs of Parquet files, in order: what `train` reads with `Params(column="walk")`.

    Raises
    ------
    InputError, ClusterError, MissingExtraError
        As `build_graph` does.
    """
    with listening(listener, client) as listen:
        graph = build_graph(inputs, work, edges, resources, client, listen)
        n_parts = max(1, math.ceil(graph.names.size * walks.length / _PART))
        files = [f"part-{number:06d}.parquet" for number in range(walks.number * n_parts)]
        made = {"graph": graph.home.name, "nodes": graph.names.size, "files": files, **asdict(walks)}
        with stage(work, _HOME, [graph.home.name, asdict(walks)], listen) as (home, guarded):
            if home.read_manifest() is None:
                _write(home, graph, walks, files, client, guarded)
                home.write_manifest(made)
    return [(home / name).url for name in files]


def _write(
    home: Store, graph: StoredGraph, walks: Walks, files: Sequence[str], client: Client, listener: Listener
) -> None:
    there = set(home.children())
    n_parts = len(files) // walks.number
    memory = client.submit(load_graph, graph.home, graph.names.size, graph.rows, pure=False, retries=2)
    names = client.submit(read_names, graph.home, graph.names, pure=False, retries=2)
    jobs = {
        name: (home, name, walks, *divmod(i, n_parts), n_parts, memory, names)
        for i, name in enumerate(files)
        if name not in there
    }
    for done, _ in enumerate(run_tasks(client, "walk", _write_part, jobs), len(files) - len(jobs) + 1):
        listener(Progress("walk", done, len(files), "files"))


def _write_part(
    home: Store, file: str, walks: Walks, number: int, part: int, n_parts: int, graph: Graph, names: "pa.Array"
) -> None:
    """Task: write one walk, the `number`-th, from each node of a part."""
    arrays = Graph(_plain(graph.starts), _plain(graph.targets), _plain(graph.weights))
    first = nodes_of_part(len(names), stream(walks.seed, Purpose.START, number), part, n_parts)
    found, lengths = np.empty((len(first), walks.length), np.int32), np.empty(len(first), np.int64)
    walk(arrays, first, stream(walks.seed, Purpose.WALK, number), walks.p, walks.q, found, lengths)
    nodes = found[np.arange(walks.length) < lengths[:, None]]
    write_lists(home, file, COLUMN, names.take(pa.array(nodes)), np.append(0, np.cumsum(lengths)))


def _plain(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array to read only: one kernel is compiled for what was made here and what was sent."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view
