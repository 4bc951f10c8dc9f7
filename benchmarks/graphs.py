"""Walks on a graph that is greater than a worker's memory: seconds, most memory of each worker, and the same bits.

The graph has degrees by a power law: a node of rank r is an end of an edge with a probability in proportion to
r^(-2/3), which gives an exponent of 2.5. Edges are drawn and written a million at a time. Each row is a run of its own
work directory and cluster, of worker processes of one thread; `digest` is that of all bytes of the walks. The last row
holds the whole graph in one worker, of more memory. A peak is the largest resident size of the worker that has most.

    python -m benchmarks.graphs [--edges 100000000] [--nodes 20000000] [--workers 2 1] [--memory '1.5 GB'] [--number 1]
        [--length 40] [--p 1] [--q 1] [--partitions N] [--work DIR] [--json]
"""

import argparse
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client

from benchmarks.common import Peaks, cluster_of, print_rows
from benchmarks.options import Smoke, parsed
from daskw2v.config.resources import Resources
from daskw2v.sequences.graph import build_graph, partitions_of
from daskw2v.sequences.kinds import EdgeList, Walks
from daskw2v.sequences.walks import write_walks
from daskw2v.store.storage import Store

DRAWN, FILE = 1 << 20, 10 << 20  # edges
SKEW, STRIDE = 3.0, 7_368_787  # node = rank * a prime modulo their number, so that neighbours in rank are not in name
WHOLE = "8 GB"  # of the worker that holds all of the graph


class Row(NamedTuple):
    """Seconds and peaks of memory, in MB, of building the graph and of walking."""

    run: str
    partitions: int
    graph_seconds: float
    graph_mb: list[int]
    walk_seconds: float
    walk_mb: list[int]
    million_steps_per_second: float
    digest: str


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


def pids(client: Client) -> list[int]:
    return list(client.run(os.getpid).values())


class Watched:
    """Seconds of a block, and peaks of processes in it."""

    def __init__(self, client: Client) -> None:
        self._peaks, self._began = Peaks(pids(client)), time.monotonic()

    def done(self) -> tuple[float, list[int]]:
        seconds = time.monotonic() - self._began
        self._peaks.stop()
        return seconds, [peak >> 20 for peak in self._peaks.rss.values()]


def digest_of(files: list[str]) -> str:
    found = hashlib.sha256()
    for file in files:
        found.update(Path(file).read_bytes())
    return found.hexdigest()[:8]


def run(name: str, edges: Path, walks: Walks, client: Client, work: Path) -> Row:
    resources, watched = Resources(), Watched(client)
    graph = build_graph(str(edges), Store(str(work)), EdgeList(), resources, client, None)
    graph_seconds, graph_mb = watched.done()
    watched = Watched(client)
    files = write_walks(str(edges), Store(str(work)), EdgeList(), walks, resources, client, None)
    seconds, mb = watched.done()
    n, steps = partitions_of(graph, walks.partitions, client), graph.n_nodes * walks.number * walks.length
    print(f"{graph.n_nodes:,} nodes, {graph.n_edges:,} edges both ways", file=sys.stderr)
    return Row(name, n, graph_seconds, graph_mb, seconds, mb, steps / seconds / 1e6, digest_of(files))


def compare(folder: Path, options: argparse.Namespace) -> Iterator[Row]:
    edges = folder / "edges"
    write_edges(edges, options.edges, options.nodes)
    walks = Walks(number=options.number, length=options.length, p=options.p, q=options.q, partitions=options.partitions)
    runs = [(f"{n} workers of {options.memory}", n, options.memory, walks) for n in options.workers]
    whole = Walks(number=options.number, length=options.length, p=options.p, q=options.q, partitions=1)
    for name, n, memory, kind in [*runs, ("in memory", 1, WHOLE, whole)]:
        with cluster_of(n, memory) as client:
            yield run(name, edges, kind, client, folder / name.replace(" ", "-"))
        shutil.rmtree(folder / name.replace(" ", "-"))


SMOKE = Smoke(
    {"edges": 20_000, "nodes": 4_000, "length": 5, "partitions": 2, "memory": "1 GB"},
    ("2 workers of 1 GB", "1 workers of 1 GB", "in memory"),
)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=100_000_000)
    parser.add_argument("--nodes", type=int, default=20_000_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--memory", default="1.5 GB", help="of each worker")
    parser.add_argument("--number", type=int, default=1, help="walks from each node")
    parser.add_argument("--length", type=int, default=40, help="nodes of a walk")
    parser.add_argument("--p", type=float, default=1.0)
    parser.add_argument("--q", type=float, default=1.0)
    parser.add_argument("--partitions", type=int, help="as many as memory needs when not given")
    parser.add_argument("--work", help="folder for files; a temporary one when not given")
    return parsed(parser, SMOKE)


def line(row: Row) -> str:
    return (
        f"{row.run:24} {row.partitions:3} {row.graph_seconds:8.0f} {row.graph_mb!s:14} {row.walk_seconds:8.0f} "
        f"{row.walk_mb!s:14} {row.million_steps_per_second:6.2f} {row.digest}"
    )


def main() -> None:
    options = parse()
    head = f"{'':24}   n  graph, s  most MB     walks, s  most MB      M steps/s  digest"
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        rows = print_rows(head, compare(Path(folder), options), line, as_json=options.json)
    if len({row.digest for row in rows}) > 1:
        sys.exit("The walks differ.")


if __name__ == "__main__":
    main()
