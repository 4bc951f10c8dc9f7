"""Node classification by vectors of walks, against chance and against gensim on the same walks.

The graph is networkx's LFR benchmark (Lancichinetti, Fortunato and Radicchi 2008): degrees and sizes of communities
follow power laws, and a share `mixing` of each node's edges leads out of its community, which is its label. Half of the
nodes, drawn ten times with their share of each label, train a logistic regression on unit vectors, the others test it.
Chance is the most frequent label, and labels drawn by their frequencies. Each tool trains once a seed, on one thread,
with the same parameters and the same walks. Figures are means over the splits; their spread is that of the seeds.

    python -m benchmarks.node_classification [--nodes 3000] [--mixing 0.6] [--seeds 1 2 3] [--partitions N]
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pyarrow.parquet as pq
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedShuffleSplit

from benchmarks.harness import Benchmark, Session, Smoke
from benchmarks.peers import ABOUT, train_gensim
from benchmarks.processes import one_thread
from benchmarks.tables import mean_of
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.models.queries.vectors import Vectors
from daskw2v.sequences.settings import EdgeList, Walks
from daskw2v.sequences.walks import COLUMN, write_walks
from daskw2v.store.storage import Store
from daskw2v.training.pipeline import train

PARAMS = Params(column=COLUMN, vector_size=64, window=5, min_count=1, sample=0, alpha=0.025, epochs=3)
SPLITS = StratifiedShuffleSplit(10, test_size=0.5, random_state=0)
AVERAGES = ("micro", "macro")


def lfr_graph(nodes: int, mixing: float, path: Path) -> np.ndarray:
    """Write a graph's edges; return each node's label."""
    graph = networkx.LFR_benchmark_graph(
        nodes,
        tau1=2.5,
        tau2=1.5,
        mu=mixing,
        average_degree=12,
        max_degree=100,
        min_community=50,
        max_community=300,
        max_iters=1000,
        seed=7,
    )
    networkx.write_edgelist(graph, path, data=False)
    communities = {frozenset(graph.nodes[node]["community"]) for node in graph}
    labels = np.empty(nodes, np.int64)
    for label, members in enumerate(sorted(communities, key=min)):
        labels[list(members)] = label
    return labels


def scores(features: np.ndarray, labels: np.ndarray, judge: Any) -> list[float]:
    """Return micro and macro F1, each the mean of all splits."""
    found = []
    for learn, test in SPLITS.split(features, labels):
        said = judge.fit(features[learn], labels[learn]).predict(features[test])
        found.append([f1_score(labels[test], said, average=average, zero_division=0) for average in AVERAGES])
    return [float(mean) for mean in np.mean(found, axis=0)]


def units(vectors: Vectors, nodes: int) -> np.ndarray:
    """Return the unit vectors of all nodes."""
    found = vectors[[str(node) for node in range(nodes)]]
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def measure(session: Session) -> None:
    options, folder = session.options, session.folder
    session.text = f"10 walks of 40 nodes from each of {options.nodes:,} nodes of an LFR graph, mixing {options.mixing}"
    session.peers = {"gensim": ABOUT["gensim"]}
    edges, text = folder / "edges.txt", folder / "walks.txt"
    labels = lfr_graph(options.nodes, options.mixing, edges)
    table = session.table("F1 of classes", AVERAGES)
    for strategy in ("most_frequent", "stratified"):
        judge = DummyClassifier(strategy=strategy, random_state=0)
        table.row(f"chance, {strategy}", *scores(np.zeros((len(labels), 1)), labels, judge))
    with one_thread() as client:
        walks = Walks(number=10, length=40, partitions=options.partitions)
        files = write_walks(edges, Store(str(folder)), EdgeList(), walks, Resources(), lambda: client, None)
        with text.open("w") as out:
            for file in files:
                rows = pq.read_table(file).column(COLUMN).to_pylist()
                out.writelines(" ".join(map(str, row)) + "\n" for row in rows)
        one = Resources(threads=1)
        tools: dict[str, Callable[[Params], Vectors]] = {
            "daskw2v": lambda params: train(
                files, work=folder, params=params, resources=one, client=client, listener=None
            ),
            "gensim": lambda params: train_gensim(text, params, 1),
        }
        for tool, trained in tools.items():
            models = (trained(PARAMS.replace(seed=seed)) for seed in options.seeds)
            judge = LogisticRegression(C=10, max_iter=1000)
            found = [scores(units(model, len(labels)), labels, judge) for model in models]
            table.row(tool, *map(mean_of, zip(*found, strict=True)))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=int, default=3000)
    parser.add_argument("--mixing", type=float, default=0.6, help="share of edges that lead out of a community")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--partitions", type=int, help="of the graph, through which walks travel; none by default")


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/sequences", "daskw2v/objectives"),
    Smoke({"nodes": 600, "seeds": [1]}, ("chance, most_frequent", "chance, stratified", "daskw2v", "gensim")),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
