"""The estimate of memory against what worker processes really take, by stage.

Each setting has a cluster, a work directory and a cache of compiled kernels of its own: kernels are compiled as on a
new machine. A peak is the largest resident size of a worker process during the stage (VmHWM of Linux, set back before
each stage), of the worker that has most: it counts what the process shares with others too, as Dask's limit does.
Training is measured with the writing and the checks of the model. The estimate has the true numbers of the text.
Then each setting is run again with the estimate's largest stage and a quarter more as memory_limit.

--random N takes N settings that nobody chose: workers, threads, a strategy, an objective that it trains, sizes and
other Params are drawn.

    python -m benchmarks.memory [--types 1000000] [--setting NAME ... | --random N [--seed S]] [--parts 5]
"""

import argparse
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from distributed import Client, LocalCluster

from benchmarks.harness import Benchmark, Session, Smoke
from benchmarks.large_vocabulary import write_zipf
from benchmarks.texts import MB, name_of, write_text
from daskw2v.cluster.workers import peak_memory, usable_memory
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.errors import Daskw2vError
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.shards.encode import build_corpus
from daskw2v.store.storage import Store
from daskw2v.training.averaging.merge import MERGE_RULES
from daskw2v.training.estimates.memory import estimate
from daskw2v.training.pipeline import train_model
from daskw2v.training.preparation.request import check_choices
from daskw2v.training.sizes import Workers, known_text
from daskw2v.training.strategies import STRATEGIES
from daskw2v.vocabulary.count import build_vocabulary

TOKENS_PER_TYPE = 4
LIMIT = 1.25  # of the estimate


@dataclass(frozen=True)
class Setting:
    """What is run; `types` is a share of those asked for, None for Wikipedia; `memory` a limit that it must meet."""

    name: str
    params: dict[str, Any]
    types: float | None = 1.0
    workers: int = 1
    threads: int = 1
    memory: str | int = 0


AVERAGING = {"epochs": 1, "strategy": "averaging", "rounds_per_epoch": 3}
TWO = {"epochs": 1, "strategy": "averaging", "n_replicas": 2}
ROTATION = {"epochs": 1, "strategy": "rotation", "passes_per_epoch": 2}
COLUMNS = {"epochs": 1, "strategy": "columns", "objective": "context_matrix", "context_size": 256}
SETTINGS = [
    Setting("Wikipedia, sgns 100", AVERAGING, types=None),
    Setting("Wikipedia, sgns 100, 2 threads", AVERAGING, types=None, threads=2),
    Setting("sgns 100", AVERAGING),
    Setting("sgns 100, 2 threads", AVERAGING, threads=2),
    Setting("cbow_hs 300", {**AVERAGING, "objective": "cbow_hs", "vector_size": 300}, types=0.5),
    Setting("sgns 100, 2 workers", TWO, types=0.5, workers=2),
    Setting("sgns 300, 2 workers", {**TWO, "vector_size": 300}, types=0.25, workers=2),
    Setting("rotation 100", ROTATION),
    Setting("rotation 300, 2 workers", {**ROTATION, "vector_size": 300}, types=0.25, workers=2),
    Setting("rotation 100, work directory", {**ROTATION, "n_partitions": 16}, memory="1 GB"),
    Setting("context_matrix 100", COLUMNS, types=0.5),
    Setting("context_matrix 300, 2 workers", {**COLUMNS, "vector_size": 300}, types=0.25, workers=2),
]
# Of which a value is drawn each, and left out if no part reads it
DRAWN: dict[str, list[Any]] = {
    "window": [1, 3, 5, 8, 12],
    "shrink_windows": [False, True],
    "sample": [0.0, 1e-5, 1e-4, 1e-3],
    "negative": [1, 5, 15],
    "negative_sharing": ["shared", "pair"],
    "cbow_mean": [False, True],
    "context_size": [32, 64, 128, 256, 512],
    "centered": [False, True],
    "n_replicas": [1, 2, 3, 4],
    "rounds_per_epoch": [1, 3, 8],
    "merge": sorted(MERGE_RULES),
    "n_partitions": [2, 5, 12, 24],
    "passes_per_epoch": [1, 2, 4],
    "negative_rule": ["tns", "sns", "bns"],
}


def accepted(values: dict[str, Any], threads: int) -> bool:
    """Tell whether a run with these Params would begin."""
    try:
        check_choices(Params(**values), Resources(threads=threads))
    except Daskw2vError:
        return False
    return True


def draw_settings(n: int, seed: int) -> Iterator[Setting]:
    """Yield settings that nobody chose."""
    draw = random.Random(seed)
    for _ in range(n):
        workers, threads, types = draw.randint(1, 2), draw.randint(1, 2), 2 ** -draw.uniform(0, 5)
        base: dict[str, Any] = {"epochs": 1, "strategy": draw.choice(sorted(STRATEGIES))}
        known = sorted(set(OBJECTIVES) - {"subwords"})  # it takes hours for so many words
        objective = draw.choice([name for name in known if accepted({**base, "objective": name}, threads)])
        values = {**base, "objective": objective, "vector_size": round(16 * 2 ** draw.uniform(0, 4.5))}
        for name, choices in DRAWN.items():
            more = {**values, name: draw.choice(choices)}
            values = more if accepted(more, threads) else values
        name = f"{objective} {values['vector_size']} by {base['strategy']}, {types:.2f}, {workers} x {threads}"
        yield Setting(name, values, types, workers, threads)


class Text(NamedTuple):
    paths: list[str]
    params: dict[str, Any]


class Texts(dict[float | None, Text]):
    """Texts by share of the types, written once each; None is Wikipedia. Zipf's law has all types once at least."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self._folder, self._options = folder, options

    def __missing__(self, share: float | None) -> Text:
        if share is None:
            self[share] = Text([str(write_text(self._folder / "wiki.txt", self._options.parts))], {})
        else:
            n, place = int(share * self._options.types), self._folder / str(share)
            place.mkdir()
            paths, _ = write_zipf(place, n, TOKENS_PER_TYPE * n)
            self[share] = Text([*map(str, paths)], {"min_count": 1})
        return self[share]


@contextmanager
def cluster_of(setting: Setting, memory: str | int) -> Iterator[Client]:
    how = {"n_workers": setting.workers, "threads_per_worker": setting.threads, "memory_limit": memory}
    with LocalCluster(**how, dashboard_address=":0") as cluster, Client(cluster) as client:
        yield client


def _peak() -> int:
    """Return the largest resident size of this process since the last call, and begin anew."""
    peak = peak_memory()
    Path("/proc/self/clear_refs").write_text("5")
    return peak


def run(setting: Setting, text: Text, folder: Path, memory: str | int) -> tuple[dict[str, tuple[float, float]], int]:
    """Run all stages; return the estimate and the peak of each, in bytes, and how many workers were started again."""
    work, params = Store(str(folder)), Params(**text.params, **setting.params)
    resources, peaks = Resources(worker_timeout=30), dict[str, int]()
    with cluster_of(setting, memory) as client:
        pids = set(client.run(os.getpid).values())

        def measured(stage: str, function: Callable[..., Any], *args: Any) -> Any:
            client.run(_peak)
            result = function(*args, work, params, resources, client)
            peaks[stage] = max(client.run(_peak).values())
            return result

        corpus = measured("encode", build_corpus, text.paths)
        vocabulary = measured("vocabulary", build_vocabulary, corpus)
        measured("train", train_model, corpus, vocabulary)
        workers = Workers(setting.workers, setting.threads, usable_memory(client))
        found = estimate(params, resources, known_text(corpus, vocabulary, params), workers)
        restarts = len(set(client.run(os.getpid).values()) - pids)
    sizes = {stage.name: stage.bytes for stage in found.stages}
    sizes["train"] = max(sizes["train"], sizes.pop("publish"))
    return {name: (size, peaks[name]) for name, size in sizes.items()}, restarts


def measure(session: Session) -> None:
    options = session.options
    session.text = f"{name_of(options.parts)}; at most {options.types:,} types, four words each, drawn by Zipf's law"
    settings = SETTINGS if options.random is None else list(draw_settings(options.random, options.seed))
    texts, within, n, again = Texts(session.fresh("texts"), options), 0, 0, list[tuple[str, float, int]]()
    table = session.table("Memory of a worker", ("estimate, MB", "peak, MB", "estimate / peak"), ".4g")
    for setting in settings:
        if options.setting and not any(name in setting.name for name in options.setting):
            continue
        text, place = texts[setting.types], session.fresh("setting")
        os.environ["NUMBA_CACHE_DIR"] = str(place / "cache")
        stages, restarts = run(setting, text, place / "work", setting.memory)
        for stage, (estimated, peak) in stages.items():
            table.row(f"{setting.name}, {stage}", estimated / MB, peak / MB, estimated / peak)
            within, n = within + (0.8 <= estimated / peak <= 1.2), n + 1
        if restarts:
            session.wrong(f"{setting.name}: {restarts} workers were started again at {setting.memory}")
        limit = int(LIMIT * max(estimated for estimated, _ in stages.values()))
        again.append((setting.name, limit / MB, run(setting, text, place / "again", limit)[1]))
    limited = session.table("The same with a limit of 1.25 times the estimate", ("MB", "workers started again"), ".4g")
    for row in again:
        limited.row(*row)
    session.note(f"{within} of {n} within 20 %")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--types", type=int, default=1_000_000, help="of the largest text; 2,000,000 take 8 GB")
    parser.add_argument("--parts", type=float, default=5, help="of 10 MB of Wikipedia")
    parser.add_argument("--setting", action="append", help="only settings whose name holds this")
    parser.add_argument("--random", type=int, metavar="N", help="N settings that are drawn instead")
    parser.add_argument("--seed", type=int, default=1, help="of --random")


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/training/sizes.py", "daskw2v/training", "daskw2v/shards", "daskw2v/vocabulary"),
    Smoke({"types": 20_000, "setting": ["rotation 300, 2 workers"]}, ("encode", "vocabulary", "train")),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
