"""Node classification by vectors of walks, against chance and against gensim on the same walks.

The graph is networkx's LFR benchmark (Lancichinetti, Fortunato and Radicchi 2008): degrees and sizes of communities
follow power laws, and a share `mixing` of each node's edges leads out of its community, which is its label. Half of the
nodes, drawn ten times with their share of each label, train a logistic regression on unit vectors, the others test it.
Chance is the most frequent label, and labels drawn by their frequencies. Each tool trains once a seed, on one thread,
with the same parameters and the same walks.

    python -m benchmarks.node_classification [--nodes 3000] [--mixing 0.6] [--p 1] [--q 1] [--seeds 1 2 3]
        [--partitions N] [--json]
"""

import argparse
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import networkx
import numpy as np
import pyarrow.parquet as pq
from distributed import Client
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedShuffleSplit

from benchmarks.common import one_thread, print_rows
from benchmarks.options import Smoke, parsed
from benchmarks.peers import train_gensim
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.models.vectors import Vectors
from daskw2v.sequences.kinds import EdgeList, Walks
from daskw2v.sequences.walks import COLUMN, write_walks
from daskw2v.store.storage import Store
from daskw2v.training.pipeline import train

PARAMS = Params(column=COLUMN, vector_size=64, window=5, min_count=1, sample=0, alpha=0.025, epochs=3)
SPLITS = 10


class Row(NamedTuple):
    """F1 of a judge, mean and standard deviation over all splits and seeds, and means of each seed."""

    name: str
    micro: float
    micro_spread: float
    macro: float
    macro_spread: float
    micro_by_seed: list[float]


def lfr_graph(nodes: int, mixing: float, path: Path) -> np.ndarray:
    """Write a graph's edges; return each node's label."""
    graph = networkx.LFR_benchmark_graph(
        nodes, tau1=2.5, tau2=1.5, mu=mixing, average_degree=12, max_degree=100, min_community=50, max_community=300,
        max_iters=1000, seed=7,
    )  # fmt: skip
    networkx.write_edgelist(graph, path, data=False)
    communities = {frozenset(graph.nodes[node]["community"]) for node in graph}
    labels = np.empty(nodes, np.int64)
    for label, members in enumerate(sorted(communities, key=min)):
        labels[list(members)] = label
    return labels


def scores(features: np.ndarray, labels: np.ndarray, judge: Callable[[], Any]) -> Iterator[tuple[float, float]]:
    """Yield micro and macro F1 of each split."""
    splits = StratifiedShuffleSplit(SPLITS, test_size=0.5, random_state=0)
    for learn, test in splits.split(features, labels):
        found = judge().fit(features[learn], labels[learn]).predict(features[test])
        yield tuple(f1_score(labels[test], found, average=average, zero_division=0) for average in ("micro", "macro"))


def units(vectors: Vectors, nodes: int) -> np.ndarray:
    """Return the unit vectors of all nodes."""
    found = vectors[[str(node) for node in range(nodes)]]
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def row_of(name: str, by_seed: list[list[tuple[float, float]]]) -> Row:
    micro, macro = zip(*(pair for seed in by_seed for pair in seed), strict=True)
    means = [statistics.mean(micro for micro, _ in seed) for seed in by_seed]
    return Row(
        name, statistics.mean(micro), statistics.stdev(micro), statistics.mean(macro), statistics.stdev(macro), means
    )


def compare(folder: Path, options: argparse.Namespace, client: Client) -> Iterator[Row]:
    edges = folder / "edges.txt"
    labels = lfr_graph(options.nodes, options.mixing, edges)
    walks = Walks(number=10, length=40, p=options.p, q=options.q, partitions=options.partitions)
    files = write_walks(edges, Store(str(folder)), EdgeList(), walks, Resources(), client)
    text = folder / "walks.txt"
    with text.open("w") as out:
        for file in files:
            out.writelines(" ".join(map(str, row)) + "\n" for row in pq.read_table(file).column(COLUMN).to_pylist())
    nothing = np.zeros((len(labels), 1))
    for strategy in ("most_frequent", "stratified"):
        by_chance = list(scores(nothing, labels, lambda: DummyClassifier(strategy=strategy, random_state=0)))  # noqa: B023
        yield row_of(f"chance, {strategy}", [by_chance])
    tools = {
        "daskw2v": lambda params: train(
            files, work=folder, params=params, resources=Resources(threads=1), client=client
        ),
        "gensim": lambda params: train_gensim(text, params, 1),
    }
    for name, tool in tools.items():
        models = (tool(PARAMS.replace(seed=seed)) for seed in options.seeds)
        found = [
            list(scores(units(model, len(labels)), labels, lambda: LogisticRegression(C=10, max_iter=1000)))
            for model in models
        ]
        yield row_of(name, found)


SMOKE = Smoke({"nodes": 600, "seeds": [1]}, ("chance, most_frequent", "chance, stratified", "daskw2v", "gensim"))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=3000)
    parser.add_argument("--mixing", type=float, default=0.6, help="share of edges that lead out of a community")
    parser.add_argument("--p", type=float, default=1.0)
    parser.add_argument("--q", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--partitions", type=int, help="of the graph, through which walks travel; none by default")
    return parsed(parser, SMOKE)


def line(row: Row) -> str:
    seeds = " ".join(f"{value:.3f}" for value in row.micro_by_seed)
    return (
        f"{row.name:24} {row.micro:.3f} ± {row.micro_spread:.3f}   {row.macro:.3f} ± {row.macro_spread:.3f}   {seeds}"
    )


def main() -> None:
    options = parse()
    head = f"{'':24} micro F1        macro F1        micro F1 of each seed"
    with tempfile.TemporaryDirectory() as folder, one_thread() as client:
        print_rows(head, compare(Path(folder), options, client), line, as_json=options.json)


if __name__ == "__main__":
    main()
