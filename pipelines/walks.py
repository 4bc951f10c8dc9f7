r"""Vectors of a graph's nodes from an edge list, in Python, and the nodes nearest to each of a few nodes.

    python pipelines/walks.py 's3://bucket/edges/*.parquet' --work s3://bucket/graph --weight weight \
        --p 0.5 --q 2 --scheduler tcp://scheduler:8786

`daskw2v walks` is the command with all options; `daskw2v similar` shows the nearest nodes.
"""

import argparse

from daskw2v import EdgeList, Graph, Resources, Walks, walks
from daskw2v.cli.exits import one_sentence


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "inputs", nargs="+", help="files, patterns or URLs of edges: Parquet, CSV, or text without header"
    )
    parser.add_argument("--work", required=True, help="folder or URL that all workers share")
    parser.add_argument("--scheduler", help="address of the Dask scheduler; this machine alone when not given")
    parser.add_argument("--weight", help="column of weights; any name where text has no header")
    parser.add_argument("--strings", action="store_true", help="nodes of text are named by strings")
    parser.add_argument("--length", type=int, default=80, help="nodes of a walk, at most")
    parser.add_argument("--p", type=float, default=1.0, help="a step back weighs 1/p")
    parser.add_argument("--q", type=float, default=1.0, help="a step away from the previous node weighs 1/q")
    parser.add_argument("--epochs", type=int, default=Graph.params.epochs)
    parser.add_argument("--similar", nargs="*", default=[], help="nodes whose neighbours are shown")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    vectors = walks(
        options.inputs,
        work=options.work,
        edges=EdgeList(weight=options.weight, strings=options.strings),
        walks=Walks(length=options.length, p=options.p, q=options.q),
        params=Graph.params.replace(epochs=options.epochs),
        resources=Resources(scheduler=options.scheduler),
    )
    for node in options.similar:
        print(node, *(f"{other} {cosine:.3f}" for other, cosine in vectors.most_similar(node)), sep="\t")
    print(vectors.url)


if __name__ == "__main__":
    with one_sentence():
        main()
