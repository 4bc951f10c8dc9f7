"""Items that nobody has seen yet, found by what a table says of them.

Made items: each has a style, and a table that says its category, its brand and its price: of these a share, `noise`, is
that of any style. Sessions hold items of one style, but for a third of their draws. Some items of each style are in no
session: their vectors are made of their features. The figure is the share of items of its own style among the ten
nearest items of the text, of those, of items of the text, and by chance.

Real words: categories of words (Battig's norms) are the table, and a fifth of these words is taken out of the text. The
figures are those of `benchmarks.unseen_words`, judged by a model that saw the words; beside those of the words' mean.

    python -m benchmarks.cold_start [--styles 20] [--noise 0.3] [--parts 10] [--epochs 3] [--seeds 1 2 3] [--json]
"""

import argparse
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client

from benchmarks.common import DATA, one_thread, print_rows, write_text
from benchmarks.options import Smoke, parsed
from benchmarks.unseen_words import Judge
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.models.vectors import Vectors
from daskw2v.training.pipeline import train

EACH, NEW, NEAREST, LENGTH, SESSIONS, BRANDS = 50, 10, 10, 8, 400, 5  # of a style: items, new ones, sessions, brands
ONE = Resources(threads=1)


class Row(NamedTuple):
    """A figure, mean and standard deviation over seeds, and each."""

    what: str
    figure: float
    spread: float
    by_seed: list[float]


def make_items(folder: Path, styles: int, noise: float) -> dict[str, list[Any]]:
    """Write sessions and the table of all items; return the table, new items last in each style."""
    random = np.random.default_rng(5)
    style = np.repeat(np.arange(styles), EACH + NEW)

    def told() -> Any:
        """Return the style that the table says of each item."""
        return np.where(random.random(len(style)) < noise, random.integers(0, styles, len(style)), style)

    names = [f"item{n}" for n in range(len(style))]
    table: dict[str, list[Any]] = {
        "item": names,
        "category": [f"category{n}" for n in told()],
        "brand": [f"brand{n}" for n in told() * BRANDS + random.integers(0, BRANDS, len(style))],
        "price": (told() + random.normal(0, 0.5, len(style))).tolist(),
    }
    pq.write_table(pa.table(table), folder / "items.parquet")
    with (folder / "sessions.txt").open("w") as f:
        for own in random.permutation(np.repeat(np.arange(styles), SESSIONS)):
            of = np.where(random.random(LENGTH) < 1 / 3, random.integers(0, styles, LENGTH), own)
            f.write(" ".join(names[n] for n in of * (EACH + NEW) + random.integers(0, EACH, LENGTH)) + "\n")
    return table


def share_of_style(vectors: Vectors, rows: Any, style: Any, known: Any, names: list[str]) -> float:
    """Return the share of their own style among the items of the text that are nearest to items, without these."""
    units = vectors[[names[n] for n in known]]
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    cosines = (rows / np.linalg.norm(rows, axis=1, keepdims=True)) @ units.T
    cosines[cosines > 0.999999] = -1.0  # the item itself
    nearest = np.argsort(-cosines, axis=1)[:, :NEAREST]
    return float((known[nearest] // (EACH + NEW) == style[:, None]).mean())


def made_items(folder: Path, options: argparse.Namespace, client: Client) -> Iterator[Row]:
    table = make_items(folder, options.styles, options.noise)
    names, places = table["item"], np.arange(len(table["item"]))
    is_new = places % (EACH + NEW) >= EACH
    known, new = places[~is_new], places[is_new]
    items = [{name: table[name][n] for name in ("category", "brand", "price")} for n in new]
    found: dict[str, list[float]] = {}
    for seed in options.seeds:
        params = Params(
            strategy="averaging", vector_size=32, window=LENGTH, shrink_windows=False, sample=0, min_count=1, epochs=3,
            features=str(folder / "items.parquet"), seed=seed, prior_count=options.prior_count,
        )  # fmt: skip
        vectors = train(folder / "sessions.txt", work=folder / "work", params=params, resources=ONE, client=client,
                        listener=None)  # fmt: skip
        plain = train(folder / "sessions.txt", work=folder / "work", resources=ONE, client=client, listener=None,
                      params=params.replace(features=None, prior_count=Params().prior_count))  # fmt: skip
        ways = {
            "made: new items, by their features": (vectors, vectors.of_features(items), new),
            "made: items of the text, with features": (vectors, vectors[[names[n] for n in known]], known),
            "made: items of the text, without features": (plain, plain[[names[n] for n in known]], known),
        }
        for what, (of, rows, which) in ways.items():
            share = share_of_style(of, rows, which // (EACH + NEW), known, names)
            found.setdefault(what, []).append(share)
    found["made: by chance"] = [1 / options.styles] * len(options.seeds)
    yield from (_row(what, values) for what, values in found.items())


def real_words(folder: Path, options: argparse.Namespace, client: Client) -> Iterator[Row]:
    """Train on text without some words of known categories."""
    lines = [line.split("\t") for line in (DATA / "eval" / "battig.tsv").read_text().splitlines()]
    pairs = {word: kind for word, kind in lines if " " not in word}
    text, part = write_text(folder / "all.txt", options.parts), folder / "part.txt"
    params = Params(strategy="averaging", epochs=options.epochs, alpha=0.05)
    asked = {"resources": ONE, "client": client, "listener": None}
    teacher = train(text, work=folder / "teacher", params=params.replace(seed=9), **asked)
    words = [word for word in pairs if word in teacher]
    held = np.random.default_rng(7).choice(words, len(words) // 5, replace=False).tolist()
    out = set(held)
    part.write_text("".join(" ".join(w for w in line.split() if w not in out) + "\n" for line in text.open()))
    pq.write_table(pa.table({"word": list(pairs), "category": list(pairs.values())}), folder / "categories.parquet")
    judge = Judge(teacher, held)
    found: dict[str, list[float]] = {}
    for seed in options.seeds:
        own = params.replace(features=str(folder / "categories.parquet"), seed=seed, prior_count=options.prior_count)
        vectors = train(part, work=folder / "words", params=own, **asked)
        rows = vectors.of_features([{"category": pairs[word]} for word in held])
        mean = np.tile(vectors[judge.pool].mean(axis=0), (len(held), 1))
        for what, given in ((f"{len(held)} words, by their category", rows), ("the mean of all words", mean)):
            overlap, rank = judge.judge(vectors, given)
            found.setdefault(f"real: {what}: overlap", []).append(overlap)
            found.setdefault(f"real: {what}: rank", []).append(rank)
    yield from (_row(what, values) for what, values in found.items())


def _row(what: str, values: list[float]) -> Row:
    return Row(what, statistics.mean(values), statistics.stdev(values) if len(values) > 1 else 0.0, values)


def line(row: Row) -> str:
    return f"{row.what:48} {row.figure:10.4f} ± {row.spread:.4f}"


SMOKE = Smoke({"styles": 3, "parts": 0.2, "epochs": 1, "seeds": [1]}, ("by their features", "by chance", "category"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--styles", type=int, default=20)
    parser.add_argument("--noise", type=float, default=0.3, help="share of an item's features that are of any style")
    parser.add_argument("--parts", type=float, default=10, help="tenths of the 100 MB corpus")
    parser.add_argument("--epochs", type=int, default=3, help="of the text with words")
    parser.add_argument("--prior-count", type=int, default=2000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    options = parsed(parser, SMOKE)
    with tempfile.TemporaryDirectory() as folder, one_thread() as client:

        def rows() -> Iterator[Row]:
            yield from made_items(Path(folder), options, client)
            yield from real_words(Path(folder), options, client)

        print_rows("Figure (mean, standard deviation over seeds)", rows(), line, as_json=options.json)


if __name__ == "__main__":
    main()
