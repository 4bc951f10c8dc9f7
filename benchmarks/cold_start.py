"""Items that nobody has seen yet, found by what a table says of them.

Each item has a style, and a table that says its category, its brand and its price: of these a share, `noise`, is that
of any style. Sessions hold items of one style, but for a third of their draws. Some items of each style are in no
session: their vectors are made of their features. The figure is the share of items of its own style among the ten
nearest items of the text, of those, of items of the text, and by chance; a mean of the seeds.

    python -m benchmarks.cold_start [--styles 20] [--noise 0.3] [--seeds 1 2 3]
"""

import argparse
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import Benchmark, Session, Smoke
from benchmarks.processes import one_thread
from benchmarks.tables import mean_of
from benchmarks.unseen_words import train_ours
from daskw2v.config.params import Params
from daskw2v.models.vectors import Vectors
from daskw2v.types import Int64Array

OLD, NEW, SESSIONS, BRANDS = 50, 10, 400, 5  # of each style
LENGTH, NEAREST = 8, 10
PARAMS = Params(
    strategy="averaging", vector_size=32, window=LENGTH, shrink_windows=False, sample=0, min_count=1, epochs=3
)


def make_items(folder: Path, styles: int, noise: float) -> dict[str, list[Any]]:
    """Write sessions and the table of all items; return the table, new items last in each style."""
    random = np.random.default_rng(5)
    style = np.repeat(np.arange(styles), OLD + NEW)

    def told() -> Any:
        """Return the style that the table says of each item."""
        return np.where(random.random(len(style)) < noise, random.integers(0, styles, len(style)), style)

    table: dict[str, list[Any]] = {
        "item": [f"item{n}" for n in range(len(style))],
        "category": [f"category{n}" for n in told()],
        "brand": [f"brand{n}" for n in told() * BRANDS + random.integers(0, BRANDS, len(style))],
        "price": (told() + random.normal(0, 0.5, len(style))).tolist(),
    }
    pq.write_table(pa.table(table), folder / "items.parquet")
    with (folder / "sessions.txt").open("w") as f:
        for own in random.permutation(np.repeat(np.arange(styles), SESSIONS)):
            of = np.where(random.random(LENGTH) < 1 / 3, random.integers(0, styles, LENGTH), own)
            f.write(" ".join(f"item{n}" for n in of * (OLD + NEW) + random.integers(0, OLD, LENGTH)) + "\n")
    return table


def share_of_style(vectors: Vectors, rows: Any, which: Int64Array, known: Int64Array) -> float:
    """Return the share of their own style among the items of the text that are nearest to items, without these."""
    units = vectors[[f"item{n}" for n in known]]
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    cosines = rows @ units.T
    cosines[which[:, None] == known] = -np.inf
    nearest = np.argsort(-cosines, axis=1)[:, :NEAREST]
    return float((known[nearest] // (OLD + NEW) == which[:, None] // (OLD + NEW)).mean())


def measure(session: Session) -> None:
    options, folder, shares = session.options, session.folder, defaultdict[str, list[float]](list)
    session.text = f"sessions of {LENGTH} items of {options.styles} planted styles, noise {options.noise}"
    table = make_items(folder, options.styles, options.noise)
    places = np.arange(len(table["item"]))
    is_new = places % (OLD + NEW) >= OLD
    known, new = places[~is_new], places[is_new]
    items = [{name: table[name][n] for name in ("category", "brand", "price")} for n in new]
    kept = [table["item"][n] for n in known]
    with one_thread() as client:
        for seed in options.seeds:
            params = PARAMS.replace(seed=seed)
            featured = params.replace(features=str(folder / "items.parquet"))
            text, work = folder / "sessions.txt", folder / "work"
            vectors, plain = (train_ours(text, work, one, client).vectors for one in (featured, params))
            ways = {
                "new items, by their features": (vectors, vectors.of_features(items), new),
                "items of the text, with features": (vectors, vectors[kept], known),
                "items of the text, without features": (plain, plain[kept], known),
            }
            for what, (of, rows, which) in ways.items():
                shares[what].append(share_of_style(of, rows, which, known))
    shown = session.table("Neighbours of items", ("of their own style",))
    for what, found in shares.items():
        shown.row(what, mean_of(found))
    shown.row("by chance", 1 / options.styles)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--styles", type=int, default=20)
    parser.add_argument("--noise", type=float, default=0.3, help="share of an item's features that are of any style")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/features", "daskw2v/objectives"),
    Smoke({"styles": 3, "seeds": [1]}, ("by their features", "without features", "by chance")),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
