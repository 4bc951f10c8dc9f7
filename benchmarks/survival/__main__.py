"""Faults put into runs, and what became of them: survived or not, seconds lost, the same bits or not.

A run is survived when the same command, given again as often as it ends with an error of ours, finishes within its
deadline with the bits of an undisturbed run; anything else is a failure: other bits, an error that is not ours, a run
that hangs. Of two commands at once the second may say that the first is at work, or give the same bits. Seconds
lost are those beyond an undisturbed run. Of nights the second is struck, each in a copy of what the first one left;
the name of its version has to be the same, too.

    python -m benchmarks.survival [--times 1] [--faults NAME ...] [--strategies NAME ...] [--stages NAME ...]
                                   [--seed 0] [--tokens 400000] [--soak SECONDS]
"""

import argparse
import itertools
import random
import shutil
import signal
import statistics
import sys
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark, Session, Smoke
from benchmarks.records import ROOT
from benchmarks.survival.client import FAILED, Job
from benchmarks.survival.cluster import Cluster
from benchmarks.survival.faults import FAULTS
from benchmarks.survival.flaky import MOOD
from benchmarks.survival.trial import Moment, ObjectStore, Outcome, Trial, run

SHAPE = {"vector_size": 32, "min_count": 1, "epochs": 2}
AVERAGING = {**SHAPE, "strategy": "averaging", "n_replicas": 2, "rounds_per_epoch": 6, "frequent_rows": 100}
NIGHT = "a night"
STRATEGIES: dict[str, dict[str, Any]] = {
    "averaging": AVERAGING,
    "averaging, phrases": {**AVERAGING, "phrases": 1, "phrase_min_count": 2, "phrase_threshold": 1.0},
    "averaging, hierarchical softmax": {**AVERAGING, "objective": "cbow_hs"},
    "averaging, several blocks": {**AVERAGING, "vector_size": 640, "epochs": 1},
    "rotation": {**SHAPE, "strategy": "rotation", "n_partitions": 4, "passes_per_epoch": 4},
    "columns": {**SHAPE, "objective": "context_matrix", "strategy": "columns", "context_size": 512},
    "columns, subwords": {**SHAPE, "objective": "subwords", "strategy": "columns", "context_size": 64},
    NIGHT: AVERAGING,
}
RESOURCES = {"threads": 1, "block_size": "256 KiB", "checkpoint_seconds": 0.5, "store_timeout": 3}
MOMENTS = {
    "encode": Moment("encode", 0.3),
    "vocabulary": Moment("vocabulary", 0.3),
    "train, early": Moment("train", 0.1),
    "train, late": Moment("train", 0.7),
    "judge": Moment("judge"),
    "publish": Moment("publish"),
}
OF_NIGHTS = ("judge", "publish")
INDEXED = ("averaging",)


def write_text(path: Path, tokens: int, seed: int = 0) -> Path:
    """Write text of a twentieth as many words by Zipf's law."""
    words = (np.random.default_rng(seed).zipf(1.2, tokens) % (tokens // 20)).astype(str)
    with path.open("w") as file:
        for start in range(0, tokens, 20):
            file.write(" ".join(words[start : start + 20]) + "\n")
    return path


class Bench:
    """A cluster, and what runs give where nothing disturbs them."""

    def __init__(self, session: Session, cluster: Cluster, mood: Path) -> None:
        self._session, self._cluster, self._mood = session, cluster, mood
        self._folder, self._numbers = session.folder, itertools.count()
        self.draws = random.Random(session.options.seed)
        self._whole: dict[str, Outcome] = {}
        self._runs: defaultdict[str, list[tuple[bool, float]]] = defaultdict(list)  # survived, and seconds lost
        for day in (1, 2):
            (self._folder / f"days-{day}").mkdir()
            for seed in range(day):
                write_text(self._folder / f"days-{day}" / f"{seed}.txt", session.options.tokens, seed)

    def _trial(self, strategy: str, protocol: str = "") -> Trial:
        work = self._folder / f"work{next(self._numbers)}"
        store = ObjectStore() if protocol == "s3" else None
        resources = RESOURCES if store is None else {**RESOURCES, "storage_options": store.options}
        url = f"s3://bucket/{work.name}" if store else f"{protocol}://{work}" if protocol else str(work)
        text = f"{self._folder}/days-{2 if strategy == NIGHT else 1}/*.txt"
        job = Job(text, url, "", STRATEGIES[strategy], resources, strategy == NIGHT, strategy in INDEXED)
        if strategy == NIGHT:
            shutil.copytree(self._first_night(), work)
        return Trial(self._cluster, job, work, self.draws, self._mood, store)

    def _first_night(self) -> Path:
        work = self._folder / "first night"
        if not work.exists():
            job = Job(f"{self._folder}/days-1/*.txt", str(work), "", STRATEGIES[NIGHT], RESOURCES, night=True)
            self._undisturbed(Trial(self._cluster, job, work, self.draws, self._mood))
        return work

    def _undisturbed(self, trial: Trial) -> Outcome:
        found = run(trial)
        if found.bits is None:
            sys.exit(f"Nothing is wrong, and {trial.job} says: {found.said}")
        return found

    def undisturbed(self, strategy: str) -> Outcome:
        """Return what a run gives, the second time: the first compiles kernels."""
        if strategy not in self._whole:
            for _ in range(2):
                trial = self._trial(strategy)
                self._whole[strategy] = self._undisturbed(trial)
                trial.end()
        return self._whole[strategy]

    def strike(self, name: str, strategy: str, stage: str) -> None:
        """Do a run with a fault in it, and note what became of it."""
        whole, fault = self.undisturbed(strategy), FAULTS[name]
        if strategy == NIGHT and fault.protocol:  # the first one is on a disk
            return
        moment = MOMENTS.get(stage) or Moment(seconds=self.draws.uniform(1, whole.seconds))
        self._cluster.mend()
        trial = self._trial(strategy, fault.protocol)
        found = run(trial, fault.strike, moment)
        others = trial.end()
        if trial.store is not None:
            self._cluster.kill_workers()  # they keep a client, of 20 MB, of each object store that they met
        same = found.bits == whole.bits and all(said == whole.said or said.startswith(FAILED) for said in others)
        if found.struck:  # else it was done before: nothing to survive
            self._runs[f"{name}, {stage}"].append((same, max(0.0, found.seconds - whole.seconds)))
        said = f"{name} | {strategy} | {stage} | {found.commands} commands, {found.seconds:.1f} s"
        if not same:
            self._session.wrong(f"{said} | {'; '.join([found.said, *trial.notes, *others])}")
            self._cluster.kill_all()  # what made it fail may be ill still
            return
        verdict = "the same bits" if found.struck else "not struck"
        print(f"{said} | {verdict} | {'; '.join([*trial.notes, *others])}", file=self._session.out, flush=True)

    def tabulate(self) -> None:
        """Print what became of all."""
        table = self._session.table("Faults", ("tried", "survived, the same bits", "s lost, median", "most"), ".1f")
        for name, runs in self._runs.items():
            survived, lost = zip(*runs, strict=True)
            table.row(name, len(runs), sum(survived), statistics.median(lost), max(lost))
        every = [survived for runs in self._runs.values() for survived, _ in runs]
        table.row("all", len(every), sum(every), None, None)


def measure(session: Session) -> None:
    options = session.options
    session.text = f"{options.tokens:,} words, drawn by Zipf's law"
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the table is printed however it ends
    mood = session.folder / "mood"
    with Cluster(session.folder, {MOOD: str(mood), "PYTHONPATH": str(ROOT)}) as cluster, suppress(KeyboardInterrupt):
        bench = Bench(session, cluster, mood)
        if options.soak:
            end = time.monotonic() + options.soak
            while time.monotonic() < end:
                bench.strike(bench.draws.choice(list(FAULTS)), bench.draws.choice(options.strategies), "any")
        chosen = itertools.product(range(options.times), options.faults, options.strategies, options.stages)
        for _, name, strategy, stage in () if options.soak else chosen:
            if strategy == NIGHT or stage not in OF_NIGHTS:
                bench.strike(name, strategy, stage)
    bench.tabulate()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--times", type=int, default=1, help="runs for each fault, strategy and stage")
    parser.add_argument("--faults", nargs="+", choices=list(FAULTS), default=list(FAULTS))
    parser.add_argument("--strategies", nargs="+", choices=list(STRATEGIES), default=list(STRATEGIES))
    parser.add_argument("--stages", nargs="+", choices=[*MOMENTS, "any"], default=[*MOMENTS, "any"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tokens", type=int, default=400_000, help="of the text, which has a twentieth as many words")
    parser.add_argument("--soak", type=float, help="seconds of faults at random instead")


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/store", "daskw2v/cluster", "daskw2v/training", "daskw2v/retraining"),
    Smoke(
        {
            "faults": ["a worker is killed", "the client is killed"],
            "strategies": ["averaging"],
            "stages": ["train, early"],
            "tokens": 100_000,
        },
        ("tried", "survived"),
        ((), ("--soak", "1"), ("--strategies", NIGHT, "--faults", "client and cluster are killed")),
    ),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
