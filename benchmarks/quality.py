"""Quality against gensim with the same parameters, on 100 MB of Wikipedia.

Scores are Spearman's rank correlation with people's similarities, and 3CosAdd accuracy over all words; the same code
judges both tools. Each variant is trained once a seed; the mean of the scores stands with their extremes, and beside
the mean's distance from the first variant's.

    python -m benchmarks.quality [--objectives sgns cbow_ns] [--tools gensim daskw2v "daskw2v, pair"] [--alpha 0.05]
                                [--seeds 1 2 3] [--threads 1] [--epochs 5] [--parts 10] [--cache DIR]

gensim takes 4 to 7 minutes a training, ours about one. What --cache holds is not trained again: gensim's scores by its
version and arguments, ours by the Params and the package's code. Give another folder after a change of the evaluation.
"""

import argparse
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.cache import CODE, Scores, kept, means
from benchmarks.harness import Benchmark, Session, Smoke
from benchmarks.peers import ABOUT, KINDS, PAIR, gensim_arguments, train_gensim
from benchmarks.texts import ANALOGY, SIMILARITY, name_of, write_text
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.evaluation import evaluate
from daskw2v.models.queries.vectors import Vectors
from daskw2v.objectives.registry import settle_params, start_alpha
from daskw2v.shards.layout import digest
from daskw2v.store.storage import Store
from daskw2v.training.pipeline import train

NAMES = ("ws353", "simlex999", "google_analogy")  # of scores


def judged(vectors: Vectors) -> Scores:
    """Return the score of each set, and of the groups of analogies."""
    result = evaluate(vectors, SIMILARITY, ANALOGY).as_dict()
    scores = {name: figures["spearman"] for name, figures in result["similarity"].items()}
    for questions, figures in result["analogy"].items():
        groups = {name: count["right"] / count["questions"] for name, count in figures["groups"].items()}
        scores |= {questions: figures["accuracy"], **groups}
    return scores


class Place(NamedTuple):
    """The text, where models go, where scores are kept, how a training is done as in Resources, and what judges it."""

    text: Path
    work: Path
    cache: Store
    threads: int
    judge: Callable[[Vectors], Scores] = judged
    device: str = "cpu"
    max_in_flight: int | None = None


def train_ours(params: Params, place: Place) -> Vectors:
    of = params.strategy.flat()
    side_by_side = of.get("n_partitions") or of.get("n_replicas") or 1
    in_flight = {} if place.max_in_flight is None else {"max_in_flight": place.max_in_flight}
    resources = Resources(device=place.device, threads=place.threads, workers=min(2, side_by_side), **in_flight)
    return train(place.text, work=place.work, params=params, resources=resources)


def train_theirs(params: Params, place: Place) -> Vectors:
    return train_gensim(place.text, params, place.threads)


TRAINERS: dict[str, Callable[[Params, Place], Vectors]] = {"gensim": train_theirs, "daskw2v": train_ours}


def identity(tool: str, params: Params, place: Place) -> str:
    """Return a name that stands for all that changes a training's result, and for what judges it."""
    size = place.text.stat().st_size
    if tool == "gensim":
        made: list[Any] = [metadata.version("gensim"), gensim_arguments(params, place.threads)]
    else:
        made = [CODE, params.as_dict(), place.threads]
    made += [] if place.judge is judged else [place.judge.__name__]
    made += [] if place.device == "cpu" else [place.device, place.max_in_flight]
    return f"{tool}-{params.objective.name}-seed{params.seed}-{digest([size, made])}.json"


def is_known(tool: str, params: Params, place: Place) -> bool:
    """Tell whether a training's scores are kept."""
    return place.cache.read_manifest(identity(tool, params, place)) is not None


def score(tool: str, params: Params, place: Place) -> Scores:
    """Train and evaluate, unless that was done before."""

    def make() -> Scores:
        began = time.perf_counter()
        vectors = TRAINERS[tool](params, place)
        seconds = time.perf_counter() - began
        return {**place.judge(vectors), "seconds": seconds}

    about = {"tool": tool, "params": params.as_dict()}
    return kept(place.cache, identity(tool, params, place), about, make)


def variants_of(objective: str, options: argparse.Namespace) -> dict[str, tuple[str, Params]]:
    """Return the tools and Params that are compared; the first is what the others are measured by."""
    params = settle_params(Params(objective=objective, alpha=options.alpha, epochs=options.epochs))
    known = {tool: (tool, params) for tool in TRAINERS}
    if not KINDS[objective].tree:
        known[PAIR] = ("daskw2v", params.replace(negative_sharing="pair"))
    return {tool: known[tool] for tool in options.tools if tool in known}


def measure(session: Session) -> None:
    """Train all variants of each objective; print a row for each."""
    options, folder = session.options, session.folder
    session.text = name_of(options.parts)
    if "gensim" in options.tools:
        session.peers["gensim"] = ABOUT["gensim"]
    place = Place(
        write_text(folder / "wiki.txt", options.parts),
        folder / "work",
        Store(str(options.cache or folder / "cache")),
        options.threads,
    )
    heads = (head for name in NAMES for head in (name, f"{name}: over the first's"))
    table = session.table("Quality", ("alpha", *heads, "s"))
    for objective in options.objectives or KINDS:
        first = dict[str, float]()
        for variant, (tool, params) in variants_of(objective, options).items():
            found = means([score(tool, params.replace(seed=seed), place) for seed in options.seeds])
            cells = list[Any]()
            for name in NAMES:
                base = first.setdefault(name, found[name].middle)
                cells += [found[name], f"{found[name].middle / base - 1:+.1%}" if base else "of 0"]
            table.row(f"{objective}, {variant}", start_alpha(params), *cells, round(found["seconds"].middle))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--objectives", nargs="+", choices=KINDS, help="all")
    parser.add_argument("--tools", nargs="+", choices=(*TRAINERS, PAIR), default=list(TRAINERS))
    parser.add_argument("--alpha", type=float, help="learning rate at the start, of both; else the objective's own")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--threads", type=int, default=1, help="of a training; with one, each tool repeats itself")
    parser.add_argument("--epochs", type=int, default=Params.epochs)
    parser.add_argument("--parts", type=float, default=10, help="of 10 MB")
    parser.add_argument("--cache", type=Path, help="folder that keeps the scores, so that a run can go on")


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/objectives", "daskw2v/sampling", "daskw2v/kernels", "daskw2v/training"),
    Smoke({"seeds": [1], "parts": 0.05, "epochs": 1}, ("sgns", *NAMES)),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
