r"""Vectors of a graph's nodes: walks from an edge list, as DeepWalk and node2vec have it, and training on them.

    python pipelines/walks.py 's3://bucket/edges/*.parquet' --work s3://bucket/graph --weight weight \
        --p 0.5 --q 2 --scheduler tcp://scheduler:8786

Parquet and CSV have columns `source` and `target` unless told otherwise; any other text has two or three columns parted
by blanks. What was cut short goes on where it stopped; the vectors' words are the nodes' names.
"""

import argparse

from daskw2v import Params, Resources, Store, show_progress, train
from daskw2v.cli.exits import one_sentence
from daskw2v.cluster import connect
from daskw2v.sequences.edges import EdgeList
from daskw2v.sequences.walks import COLUMN, Walks, write_walks

# Every node has a vector, and no node is so frequent that it says nothing
PARAMS = Params(column=COLUMN, vector_size=128, window=10, min_count=1, sample=0)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="+", help="files, patterns or URLs of edges")
    parser.add_argument("--work", required=True, help="folder or URL that all workers share")
    parser.add_argument("--scheduler", help="address of the Dask scheduler; this machine alone when not given")
    parser.add_argument("--source", default="source", help="column of the node that an edge leaves")
    parser.add_argument("--target", default="target", help="column of the node that it leads to")
    parser.add_argument("--weight", help="column of its weight; any name where text has no header")
    parser.add_argument("--directed", action="store_true", help="edges lead only from source to target")
    parser.add_argument("--strings", action="store_true", help="nodes of text are named by strings")
    parser.add_argument("--walks", type=int, default=10, help="walks from each node")
    parser.add_argument("--length", type=int, default=80, help="nodes of a walk, at most")
    parser.add_argument("--p", type=float, default=1.0, help="a step back weighs 1/p")
    parser.add_argument("--q", type=float, default=1.0, help="a step away from where the walk came from weighs 1/q")
    parser.add_argument("--epochs", type=int, default=PARAMS.epochs)
    parser.add_argument("--seed", type=int, default=1, help="of walks and of training")
    parser.add_argument("--similar", nargs="*", default=[], help="nodes whose neighbours are shown")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    edges = EdgeList(
        source=options.source,
        target=options.target,
        weight=options.weight,
        directed=options.directed,
        strings=options.strings,
    )
    walks = Walks(number=options.walks, length=options.length, p=options.p, q=options.q, seed=options.seed)
    resources = Resources(scheduler=options.scheduler)
    with connect(resources) as client, show_progress() as listener:
        files = write_walks(options.inputs, Store(options.work), edges, walks, resources, client, listener)
        params = PARAMS.replace(epochs=options.epochs, seed=options.seed)
        vectors = train(files, work=options.work, params=params, resources=resources, client=client, listener=listener)
    for node in options.similar:
        print(node, *(f"{other} {cosine:.3f}" for other, cosine in vectors.most_similar(node)), sep="\t")
    print(vectors.url)


if __name__ == "__main__":
    with one_sentence():
        main()
