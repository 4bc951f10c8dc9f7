"""Negatives from the market of a word, on sessions with planted styles: what they tell apart within a market.

Items stand in cities, and in each city in styles. A session has items of one city, most of them of one style: 8 draws,
of which a share, `noise`, is of any style. The figure is the share of items of its own style among the ten that are
nearest to an item in its city; by chance it is about 1 / styles. Each row trains once a seed, on one thread: with few
negatives of all words, with as many more of all words, and with as many more of the city. Figures are means of seeds.

    python -m benchmarks.markets [--cities 2 20 100] [--objectives sgns cbow_ns] [--sessions 200] [--noise 0.6]
        [--seeds 1 2 3]
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import Benchmark, Session, Smoke
from benchmarks.processes import one_thread
from benchmarks.tables import mean_of
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.models.vectors import Vectors
from daskw2v.training.pipeline import train

ITEMS, STYLES, LENGTH, NEAREST = 20, 2, 8, 10  # items of each style in each city; draws of a session
FEW = 5
PARAMS = Params(
    strategy="averaging", vector_size=16, window=LENGTH, shrink_windows=False, sample=0, min_count=1, epochs=4,
    negative=FEW,
)  # fmt: skip


def name_of(city: int, style: int, item: int) -> str:
    return f"{city}-{style}-{item}"


def write_sessions(folder: Path, cities: int, sessions: int, noise: float) -> None:
    """Write sessions of cities and styles as text, `sessions` of each, and the table of cities."""
    random = np.random.default_rng(5)
    lines = []
    for city, style in np.ndindex(cities, STYLES):
        other = random.random((sessions, LENGTH)) < noise
        styles = np.where(other, random.integers(0, STYLES, other.shape), style)
        items = random.integers(0, ITEMS, other.shape)
        lines += [" ".join(map(name_of, [city] * LENGTH, *row)) for row in zip(styles, items, strict=True)]
    random.shuffle(lines)
    (folder / "text.txt").write_text("\n".join(lines) + "\n")
    places = list(np.ndindex(cities, STYLES, ITEMS))
    table = {"item": [name_of(*place) for place in places], "market": [str(city) for city, _, _ in places]}
    pq.write_table(pa.table(table), folder / "cities.parquet")


def share_of_style(vectors: Vectors, cities: int) -> float:
    """Return the share of items of their own style among the nearest to an item in its city."""
    styles, found = np.repeat(np.arange(STYLES), ITEMS), []
    for city in range(cities):
        rows = vectors[[name_of(city, *place) for place in np.ndindex(STYLES, ITEMS)]]
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        nearest = np.argsort(2 * np.eye(len(rows)) - rows @ rows.T, axis=1)[:, :NEAREST]
        found.append((styles[nearest] == styles[:, None]).mean())
    return float(np.mean(found))


def measure(session: Session) -> None:
    options = session.options
    session.text = f"{options.sessions} sessions of {LENGTH} items of each style in each city, noise {options.noise}"
    table, resources = session.table("Negatives", ("of its style, of the ten nearest",)), Resources(threads=1)
    with one_thread() as client:
        for cities in options.cities:
            place = session.fresh("cities")
            write_sessions(place, cities, options.sessions, options.noise)
            ways: dict[str, dict[str, Any]] = {
                f"{FEW}": {},
                f"{2 * FEW}": {"negative": 2 * FEW},
                f"{FEW} + {FEW} of the city": {"market_negative": FEW, "markets": str(place / "cities.parquet")},
            }

            def share(params: Params, cities: int = cities, place: Path = place) -> float:
                how = {"resources": resources, "client": client, "listener": None}
                return share_of_style(train(place / "text.txt", work=place / "work", params=params, **how), cities)

            for objective in options.objectives:
                for name, changes in ways.items():
                    params = PARAMS.replace(objective=objective, **changes)
                    shares = [share(params.replace(seed=seed)) for seed in options.seeds]
                    table.row(f"{objective}, {cities} cities, {name}", mean_of(shares))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cities", type=int, nargs="+", default=[2, 20, 100])
    parser.add_argument("--objectives", nargs="+", default=["sgns", "cbow_ns"])
    parser.add_argument("--sessions", type=int, default=200, help="of each style of each city")
    parser.add_argument("--noise", type=float, default=0.6, help="share of a session's items that are of any style")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/objectives",),
    Smoke({"cities": [3], "sessions": 40, "seeds": [1]}, ("sgns", "cbow_ns", "of the city")),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
