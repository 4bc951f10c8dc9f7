r"""Vectors of items from a log of events, in Python, and the items nearest to each of a few items.

    python pipelines/items.py 's3://bucket/events/*.parquet' --work s3://bucket/items \
        --user customer --item product --time at --session-gap '30 min' --similar 4711

`daskw2v items` is the command with all options; `daskw2v similar` shows the nearest items.
"""

import argparse

from daskw2v import Events, Resources, Sessions, items
from daskw2v.cli.exits import one_sentence


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="+", help="files, patterns or URLs of events: Parquet, or CSV with a header")
    parser.add_argument("--work", required=True, help="folder or URL that all workers share")
    parser.add_argument("--scheduler", help="address of the Dask scheduler; this machine alone when not given")
    parser.add_argument("--user", default="user", help="column of users")
    parser.add_argument("--item", default="item", help="column of items")
    parser.add_argument("--time", default="time", help="column of times")
    parser.add_argument("--session-gap", help="time without an event that ends a session, such as '30 min'")
    parser.add_argument("--epochs", type=int, default=Events.params.epochs)
    parser.add_argument(
        "--similar", nargs="*", default=[], help="items whose neighbours are shown; by default the five most frequent"
    )
    return parser.parse_args()


def main() -> None:
    options = arguments()
    vectors = items(
        options.inputs,
        work=options.work,
        sessions=Sessions(user=options.user, item=options.item, time=options.time, gap=options.session_gap),
        params=Events.params.replace(epochs=options.epochs),
        resources=Resources(scheduler=options.scheduler),
    )
    for item in options.similar or vectors.vocabulary.between(0, 5):
        print(item, *(f"{other} {cosine:.3f}" for other, cosine in vectors.most_similar(item)), sep="\t")
    print(vectors.url)


if __name__ == "__main__":
    with one_sentence():
        main()
