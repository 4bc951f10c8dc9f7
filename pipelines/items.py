r"""Vectors of items from a log of events: sessions of users, as item2vec has it, and training on them.

    python pipelines/items.py 's3://bucket/events/*.parquet' --work s3://bucket/items \
        --user customer --item product --time at --session-gap '30 min' --similar 4711

Events say who was at which item when: Parquet, or CSV with a header. In a session all items are contexts of all
others, whatever their order: so windows reach far, and are not shrunk as they are for text, where near words say more.
"""

import argparse

from daskw2v import Params, Resources, Store, show_progress, train
from daskw2v.cli.exits import one_sentence
from daskw2v.cluster import connect
from daskw2v.sequences.sessions import COLUMN, Sessions, write_sessions

PARAMS = Params(column=COLUMN, window=100, shrink_windows=False, min_count=5, sample=1e-3)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="+", help="files, patterns or URLs of events")
    parser.add_argument("--work", required=True, help="folder or URL that all workers share")
    parser.add_argument("--scheduler", help="address of the Dask scheduler; this machine alone when not given")
    parser.add_argument("--user", default="user", help="column of who")
    parser.add_argument("--item", default="item", help="column of what")
    parser.add_argument("--time", default="time", help="column of when")
    parser.add_argument("--session-gap", help="time without an event that ends a session, such as '30 min'")
    parser.add_argument("--least", type=int, default=2, help="items of a session, at least")
    parser.add_argument("--drop-repeats", action="store_true", help="an item that follows itself counts once")
    parser.add_argument("--window", type=int, default=PARAMS.window, help="most items between center and context")
    parser.add_argument("--min-count", type=int, default=PARAMS.min_count, help="rarest item kept, in events")
    parser.add_argument("--epochs", type=int, default=PARAMS.epochs)
    parser.add_argument("--similar", nargs="*", default=[], help="items whose neighbours are shown; else the commonest")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    sessions = Sessions(
        user=options.user,
        item=options.item,
        time=options.time,
        gap=options.session_gap,
        least=options.least,
        drop_repeats=options.drop_repeats,
    )
    resources = Resources(scheduler=options.scheduler)
    with connect(resources) as client, show_progress() as listener:
        files = write_sessions(options.inputs, Store(options.work), sessions, resources, client, listener)
        params = PARAMS.replace(window=options.window, min_count=options.min_count, epochs=options.epochs)
        vectors = train(files, work=options.work, params=params, resources=resources, client=client, listener=listener)
    for item in options.similar or vectors.vocabulary.between(0, 5):
        print(item, *(f"{other} {cosine:.3f}" for other, cosine in vectors.most_similar(item)), sep="\t")
    print(vectors.url)


if __name__ == "__main__":
    with one_sentence():
        main()
