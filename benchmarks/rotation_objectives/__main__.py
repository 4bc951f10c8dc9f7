"""Rotation of objectives other than `sgns`: what can be split over partitions, at what quality and cost.

trees: ways to split the Huffman tree. A pair of a context and a center is in as many buckets as its path has
partitions; strategy `rotation` takes the last way, with 64 trees or more.

cost: what a window takes in the kernels, in processor time, against the kernel for whole windows. CBOW's parts are of
`rotation_objectives.kernels`, in one process; dealing comes on top, which takes about as long for each of them.

quality: one worker against `rotation` of `sg_hs`, and against CBOW of which a bucket has

* the contexts of a window that are in its input partition, as a window of their own;
* these, with the sum of the window's others as their buckets left it: a vector for each part of a window is sent;
* whole windows, with copies of all the input rows that they need, merged after each pass by the mean of the changes.

    python -m benchmarks.rotation_objectives [--tables trees cost quality] [--objectives sg_hs cbow_ns cbow_hs]
        [--partitions 2 8] [--splits parts sums fetched] [--seeds 1 2 3] [--epochs 5] [--parts 10] [--times 3]
        [--cache DIR] [--json]
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from benchmarks.cache import CODE, Scores, kept
from benchmarks.common import finish
from benchmarks.options import Smoke, parsed
from benchmarks.quality import Place, judged, score
from benchmarks.rotation_objectives.costs import ONE, PAIRS, costs
from benchmarks.rotation_objectives.emulation import FETCHED, PARTS, SUMS, Emulation, splits_of
from benchmarks.rotation_objectives.trees import splits
from benchmarks.texts import Text, encode
from daskw2v.config.params import Params
from daskw2v.objectives.registry import find_objective, settled
from daskw2v.sampling.segments import keep_thresholds
from daskw2v.shards.layout import digest
from daskw2v.store.storage import Store
from daskw2v.training.rotation.pass_schedule import passes_of_epoch

OBJECTIVES = ("sg_hs", "cbow_ns", "cbow_hs")
TABLES = ("trees", "cost", "quality")
SPLITS = {"parts": PARTS, "sums": SUMS, "fetched": FETCHED}
OFTEN = 8  # passes with copies that are merged, for one without: as often as averaging merges eight replicas


@dataclass(frozen=True)
class Quality:
    """One score over all seeds; `relative` is its mean over the first variant's, less 1."""

    objective: str
    variant: str
    partitions: int
    score: str
    mean: float
    low: float
    high: float
    relative: float | None


class Variant(NamedTuple):
    """A training: its name, its partitions, and what returns the scores of a seed."""

    name: str
    partitions: int
    scores: Callable[[int], Scores]


def emulated(text: Text, params: Params, split: str, cache: Store) -> Scores:
    """Train by an emulation, and judge the vectors."""

    def make() -> Scores:
        emulation = Emulation(text, params, split)
        for _ in emulation.passes():
            pass
        return judged(emulation.vectors())

    about = {"split": split, "params": params.as_dict()}
    made = digest([text.path.stat().st_size, CODE, split, params.as_dict()])
    return kept(cache, f"emulated-{params.objective}-seed{params.seed}-{made}.json", about, make)


def variants_of(objective: str, text: Text, place: Place, options: argparse.Namespace) -> list[Variant]:
    """Return the trainings to compare; the first is what the others are measured by."""
    params = settled(Params(objective=objective, epochs=options.epochs))

    def real(params: Params, seed: int) -> Scores:
        scores = score("daskw2v", params.replace(seed=seed), place)
        return {name: value for name, value in scores.items() if name != "seconds"}

    def split(params: Params, way: str, seed: int) -> Scores:
        return emulated(text, params.replace(seed=seed), way, place.cache)

    found = [Variant(ONE, 1, partial(real, params))]
    for p in options.partitions:
        turned = params.replace(strategy="rotation", n_partitions=p)
        often = turned.replace(passes_per_epoch=OFTEN * passes_of_epoch(turned))
        kind = find_objective(objective)
        if kind.bucket_trainers:
            found.append(Variant(PAIRS, p, partial(real, turned)))
            continue
        ways = splits_of(kind, [SPLITS[name] for name in options.splits])
        found += [Variant(way, p, partial(split, often if way == FETCHED else turned, way)) for way in ways]
    return found


def qualities(objective: str, variants: list[Variant], seeds: list[int]) -> list[Quality]:
    """Train all variants; return a row for each of them and each score."""
    rows, first = list[Quality](), dict[str, float]()
    for name, partitions, scores in variants:
        results = [scores(seed) for seed in seeds]
        for key in results[0]:
            values = [result[key] for result in results]
            mean = statistics.mean(values)
            base = first.setdefault(key, mean)
            relative = mean / base - 1 if base else None
            rows.append(Quality(objective, name, partitions, key, mean, min(values), max(values), relative))
    return rows


def report(rows: list[Any], out: TextIO) -> None:
    """Print a line for each row."""
    for row in rows:
        cells = ((f"{value:.4g}" if isinstance(value, float) else value, name) for name, value in asdict(row).items())
        print(", ".join(f"{name} {value}" for value, name in cells), file=out, flush=True)


SMOKE = Smoke(
    {"partitions": [2], "seeds": [1], "epochs": 1, "parts": 0.1, "times": 1},
    (ONE, PAIRS, PARTS, SUMS, FETCHED, "trees of each partition's own words", "google_analogy"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument("--objectives", nargs="+", choices=OBJECTIVES, default=OBJECTIVES)
    parser.add_argument(
        "--splits", nargs="+", choices=SPLITS, default=[*SPLITS], help="of CBOW; sums with negatives only"
    )
    parser.add_argument("--partitions", type=int, nargs="+", default=[2, 8])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--parts", type=float, default=10, help="tenths of the 100 MB corpus")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--cache", type=Path, help="folder that keeps the scores, so that a run can go on")
    options = parsed(parser, SMOKE)
    out, rows = sys.stderr if options.json else sys.stdout, list[Any]()

    def add(found: list[Any]) -> None:
        report(found, out)
        rows.extend(found)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = encode(folder, options.parts)
        place = Place(text.path, folder / "trained", Store(str(options.cache or folder / "cache")), 1)
        counts = text.vocabulary.load().counts
        kept_words = counts * (keep_thresholds(counts, Params().sample) / 2.0**32)
        if "trees" in options.tables:
            for p in options.partitions:
                add(splits(counts, kept_words / kept_words.sum(), p))
        for objective in options.objectives:
            if "cost" in options.tables:
                ways = [SPLITS[name] for name in options.splits]
                add(costs(objective, text, options.partitions, ways, options.times))
            if "quality" in options.tables:
                add(qualities(objective, variants_of(objective, text, place, options), options.seeds))
    finish(rows, out, as_json=options.json)


if __name__ == "__main__":
    main()
