"""Whole runs on one worker and on several, by strategy: does another worker pay?

Each run is `daskw2v train` in a process of its own and an empty folder, with compiled kernels. All run in turn, and are
compared with the plain run: one replica on one worker of one thread. With averaging there are as many replicas as
workers, and threads of a worker train one replica without locks (Hogwild); with rotation there are `--partitions` on
any number. The digest is that of the vectors of seed 1. Vectors of drawn text are not judged.

Processor seconds are those of client, scheduler and workers; those of training are the workers' alone. Other than
training is the part of the workers' time, while the model is trained, in which they deal pairs, merge, send or wait.

    python -m benchmarks.scaling [--texts wiki zipf] [--parts 30] [--types 1000000] [--words 50000000] [--sizes 100 300]
        [--objective sgns] [--strategies averaging rotation] [--workers 1 2] [--threads 1] [--partitions 8]
        [--epochs 1] [--times 5]
"""

import argparse
import hashlib
import itertools
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import Benchmark, Session, Smoke, alternate
from benchmarks.large_vocabulary import write_zipf
from benchmarks.processes import run_process
from benchmarks.quality import judged
from benchmarks.tables import Spread, mean_of
from benchmarks.texts import MB, name_of, write_text
from benchmarks.whole_runs import SCORES
from daskw2v.config.params import Params
from daskw2v.errors import counted
from daskw2v.models.queries.vectors import Vectors
from daskw2v.training.warm_up import warm_up

PLAIN = "plain"
WIKI, ZIPF = "wiki", "zipf"
STRATEGIES = ("averaging", "rotation")
COLUMNS = (
    "s",
    "speed-up",
    "processor s",
    "of plain",
    "training s",
    "speed-up of training",
    "processor s of training",
    "of plain's training",
    "other than training, %",
    "sent, MB",
    "digest",
)


class Run(NamedTuple):
    """What a run took: seconds and processor seconds of all of it, and of training; and what else is in its row."""

    times: tuple[float, float, float, float]
    other: float
    sent: float
    digest: str
    scores: dict[str, float]


def settings_of(options: argparse.Namespace) -> Iterator[tuple[str, dict[str, str | int]]]:
    """Yield the options of each run by its name, the plain one first."""
    yield PLAIN, {"workers": 1, "threads": 1, "strategy": "averaging"}
    for strategy, n, threads in itertools.product(options.strategies, options.workers, options.threads):
        if strategy == "averaging" and n * threads == 1:
            continue  # the plain run
        how = {"n-partitions": options.partitions} if strategy == "rotation" else {"n-replicas": n}
        name = f"{strategy}, {counted(n, 'worker')}{f' of {threads} threads' if threads > 1 else ''}"
        yield name, {"workers": n, "threads": threads, "strategy": strategy, **how}


def run(text: Sequence[Path], setting: Mapping[str, str | int], judge: bool, seeds: list[int]) -> Run:
    """Train with the next seed; see what it took, and judge the vectors if asked to."""
    with tempfile.TemporaryDirectory(dir=text[0].parent) as output:
        given = [f"--{name}={value}" for name, value in {**setting, "work": output, "seed": seeds.pop(0)}.items()]
        command = [sys.executable, "-m", "daskw2v", "train", *map(str, text), *given]
        usage = run_process(command, {}, memory=False)
        vectors = Vectors.open(output)
        found = vectors.metadata["metrics"]
        workers = found["workers"]
        used = sum(worker["processor_seconds"] for worker in workers)
        busy = sum(worker["seconds"] for worker in workers) / (found["seconds"] * int(setting["workers"]))
        return Run(
            (usage.seconds, usage.processor_seconds, found["seconds"], used),
            100 * (1 - busy),
            sum(worker["sent"] for worker in workers) / MB,
            hashlib.sha256(vectors.vectors[:].tobytes()).hexdigest()[:6],
            judged(vectors) if judge else {},
        )


def compare(session: Session, name: str, text: Sequence[Path], more: Mapping[str, str | int]) -> None:
    """Run all settings in turn on a text; print a table."""
    options = session.options
    more = {**more, "objective": options.objective, "epochs": options.epochs}
    runs = {
        key: partial(run, text, {**setting, **more}, name == WIKI, [*range(1, options.times + 1)])
        for key, setting in settings_of(options)
    }
    scores = SCORES if name == WIKI else ()
    title = f"{name}, {options.objective}, d={more['vector-size']}, epochs: {options.epochs}"
    table = session.table(title, (*COLUMNS, *scores))
    found = alternate(runs, options.times)
    plain = [statistics.median(values) for values in zip(*(one.times for one in found[PLAIN]), strict=True)]
    for key, these in found.items():
        all_, used, training, used_training = map(Spread.of, zip(*(one.times for one in these), strict=True))
        table.row(
            key,
            all_,
            plain[0] / all_.middle,
            used,
            used.middle / plain[1],
            training,
            plain[2] / training.middle,
            used_training,
            used_training.middle / plain[3],
            round(statistics.median(one.other for one in these)),
            statistics.median(one.sent for one in these),
            these[0].digest,
            *(mean_of(one.scores[score] for one in these) for score in scores),
        )


def measure(session: Session) -> None:
    options, texts = session.options, dict[str, tuple[str, list[Path], dict[str, str | int]]]()
    warm_up()
    if WIKI in options.texts:
        texts[WIKI] = name_of(options.parts), [write_text(session.folder / WIKI, options.parts)], {}
    if ZIPF in options.texts:
        files, _ = write_zipf(session.fresh(ZIPF), options.types, options.words)
        texts[ZIPF] = f"{options.words:,} words, drawn by Zipf's law of {options.types:,}", files, {"min-count": 1}
    session.text = "; ".join(about for about, _, _ in texts.values())
    for name, (_, paths, more) in texts.items():
        for d in options.sizes:
            compare(session, name, paths, {**more, "vector-size": d})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--texts", nargs="+", choices=(WIKI, ZIPF), default=[WIKI, ZIPF])
    parser.add_argument("--parts", type=float, default=30, help="of 10 MB")
    parser.add_argument("--types", type=int, default=1_000_000, help="words of the text that is drawn")
    parser.add_argument("--words", type=int, default=50_000_000, help="its tokens")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 300], help="vector_size")
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, default=list(STRATEGIES))
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="numbers of workers")
    parser.add_argument("--threads", type=int, nargs="+", default=[1], help="of each worker")
    parser.add_argument("--objective", choices=("sgns", "sg_hs", "cbow_ns", "cbow_hs"), default=Params.objective)
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--times", type=int, default=5, help="a seed each")


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/training", "daskw2v/cluster", "daskw2v/kernels", "daskw2v/objectives", "daskw2v/sampling"),
    Smoke(
        {
            "parts": 0.05,
            "types": 2000,
            "words": 20_000,
            "sizes": [16],
            "workers": [2],
            "threads": [2],
            "times": 1,
        },
        (WIKI, ZIPF, PLAIN, "averaging, 2 workers of 2 threads", "rotation, 2 workers of 2 threads"),
    ),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
