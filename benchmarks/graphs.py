"""Walks on a graph that is greater than a worker's memory: seconds, most memory of a worker, and the same bits.

The graph has degrees by a power law: a node of rank r is an end of an edge with a probability in proportion to
r^(-2/3), which gives an exponent of 2.5. Edges are drawn and written a million at a time. Each row is a run of its own
work directory and cluster, of worker processes of one thread; the digest is that of all bytes of the walks, and it is
an error if they differ. The last row holds the whole graph in one worker, of more memory. A peak is the largest
resident size of the worker that has most.

    python -m benchmarks.graphs [--edges 100000000] [--nodes 20000000] [--workers 2 1] [--memory '1.5 GB']
        [--length 40] [--partitions N]
"""

import argparse
import hashlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client

from benchmarks.harness import Benchmark, Session, Smoke
from benchmarks.processes import Peaks, cluster_of
from benchmarks.tables import Table
from benchmarks.texts import MB
from daskw2v.config.resources import Resources
from daskw2v.errors import counted
from daskw2v.sequences.graph import build_graph, choose_n_partitions
from daskw2v.sequences.settings import EdgeList, Walks
from daskw2v.sequences.walks import write_walks
from daskw2v.store.storage import Store

DRAWN, FILE = 1 << 20, 10 << 20  # edges
SKEW, STRIDE = 3.0, 7_368_787  # node = rank * a prime modulo their number, so that neighbours in rank are not in name
WHOLE = "8 GB"  # of the worker that holds all of the graph
Result = TypeVar("Result")


def write_edges(folder: Path, n_edges: int, n_nodes: int) -> None:
    """Write the edges of a graph as Parquet files."""
    random = np.random.default_rng(7)
    folder.mkdir()
    for file, begin in enumerate(range(0, n_edges, FILE)):
        schema = pa.schema({"source": pa.int64(), "target": pa.int64()})
        with pq.ParquetWriter(folder / f"{file:04d}.parquet", schema) as out:
            for at in range(begin, min(begin + FILE, n_edges), DRAWN):
                ranks = n_nodes * random.random((2, min(DRAWN, n_edges - at))) ** SKEW
                out.write_table(pa.table(list(ranks.astype(np.int64) * STRIDE % n_nodes), schema=schema))


def watched(call: Callable[[], Result], client: Client) -> tuple[Result, float, int]:
    """Return a result, the seconds that it took, and the MB of the worker that had most."""
    peaks, began = Peaks(list(client.run(os.getpid).values())), time.monotonic()
    result = call()
    seconds = time.monotonic() - began
    peaks.stop()
    return result, seconds, max(peaks.rss.values()) // MB


def run(name: str, edges: str, walks: Walks, client: Client, work: Store, table: Table) -> str:
    """Build the graph and walk; return the digest of the walks."""
    resources = Resources()
    graph, graph_seconds, graph_mb = watched(
        lambda: build_graph(edges, work, EdgeList(), resources, lambda: client, None), client
    )
    files, seconds, mb = watched(
        lambda: write_walks(edges, work, EdgeList(), walks, resources, lambda: client, None), client
    )
    digest = hashlib.sha256()
    for file in files:
        digest.update(Path(file).read_bytes())
    steps, n = graph.n_nodes * walks.number * walks.length, choose_n_partitions(graph, walks.partitions, client)
    found = digest.hexdigest()[:8]
    table.row(name, graph.n_edges, n, graph_seconds, graph_mb, seconds, mb, steps / seconds / 1e6, found)
    return found


def measure(session: Session) -> None:
    options, edges = session.options, session.folder / "edges"
    session.text = f"{options.edges:,} edges of {options.nodes:,} nodes, drawn by a power law"
    write_edges(edges, options.edges, options.nodes)
    columns = (
        "edges both ways",
        "partitions",
        "graph, s",
        "most MB",
        "walks, s",
        "most MB of walks",
        "M steps/s",
        "digest",
    )
    table, digests = session.table("Walks", columns, ".2f"), set[str]()
    runs = [(counted(n, "worker"), n, options.memory, options.partitions) for n in options.workers]
    for name, n, memory, partitions in [*runs, ("in memory, 1 worker", 1, WHOLE, 1)]:
        walks = Walks(number=1, length=options.length, partitions=partitions)
        work = Store(str(session.fresh("work")))
        with cluster_of(n, memory) as client:
            digests.add(run(f"{name} of {memory}", str(edges), walks, client, work, table))
        work.remove()
    if len(digests) > 1:
        sys.exit("The walks differ.")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--edges", type=int, default=100_000_000)
    parser.add_argument("--nodes", type=int, default=20_000_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--memory", default="1.5 GB", help="of each worker")
    parser.add_argument("--length", type=int, default=40, help="nodes of a walk; one from each node")
    parser.add_argument("--partitions", type=int, help="as many as memory needs when not given")


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/sequences",),
    Smoke(
        {"edges": 20_000, "nodes": 4_000, "length": 5, "partitions": 2, "memory": "1 GB"},
        ("2 workers of 1 GB", "1 worker of 1 GB", "in memory"),
    ),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
