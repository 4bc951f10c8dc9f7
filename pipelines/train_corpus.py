r"""Train on a cluster, measure, export: one nightly run as a script over the public API.

    python pipelines/train_corpus.py 's3://bucket/text/*.zst' --work s3://bucket/vectors \
        --scheduler tcp://scheduler:8786 --partitions 64 --similarity ws353.tsv --analogy questions-words.txt \
        --export vectors.bin

Your cluster's manager gives the scheduler's address: dask-jobqueue, dask-kubernetes, `dask scheduler`.
The same command resumes an interrupted run; with unchanged input it trains nothing.
"""

import argparse
import json

from daskw2v import Params, Resources, evaluate, export, train
from daskw2v.cli.exits import one_sentence

PARAMS = Params(vector_size=300, window=5, negative=5, epochs=3, min_count=10)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="+", help="files, patterns or URLs of text")
    parser.add_argument("--work", required=True, help="folder or URL that all workers share")
    parser.add_argument("--scheduler", required=True, help="address of the Dask scheduler")
    strategy = parser.add_mutually_exclusive_group()
    strategy.add_argument("--replicas", type=int, default=1, help="models trained side by side, at most one a worker")
    strategy.add_argument(
        "--partitions", type=int, help="parts of one model, which may be larger than a worker's memory"
    )
    parser.add_argument("--similarity", nargs="*", default=[], help="word pairs with human scores")
    parser.add_argument("--analogy", nargs="*", default=[], help="questions of four words a line")
    parser.add_argument("--export", help="file to write the vectors to, such as vectors.bin")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    if options.partitions is None:
        params = PARAMS.replace(n_replicas=options.replicas)
    else:
        params = PARAMS.replace(strategy="rotation", n_partitions=options.partitions)
    resources = Resources(scheduler=options.scheduler)
    vectors = train(options.inputs, work=options.work, params=params, resources=resources)
    print(json.dumps(evaluate(vectors, options.similarity, options.analogy).as_dict(), indent=1))
    if options.export:
        export(vectors, options.export)


if __name__ == "__main__":
    with one_sentence():
        main()
