"""Put faults into runs, and print what became of them: survived or not, seconds lost, the same bits or not.

A run is survived when the same command, given again as often as it ends with an error of ours, finishes within its
deadline with the bits of an undisturbed run; anything else is a failure: other bits, an error that is not ours, a run
that hangs. Of two commands at once the second may say that the first is at work, or give the same bits. Seconds
lost are those beyond an undisturbed run.

    python -m benchmarks.survival [--times 1] [--faults NAME ...] [--strategies NAME ...] [--stages NAME ...]
                                   [--seed 0] [--tokens 400000] [--soak SECONDS] [--json]
"""

import argparse
import itertools
import random
import signal
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from benchmarks.common import finish
from benchmarks.options import LEFT_OUT, Smoke, parsed
from benchmarks.survival.client import FAILED
from benchmarks.survival.cluster import Cluster
from benchmarks.survival.faults import FAULTS, Fault, small_disk, unmount
from benchmarks.survival.flaky import MOOD
from benchmarks.survival.s3 import ObjectStore
from benchmarks.survival.trial import Moment, Outcome, Trial, run

SHAPE = {"vector_size": 32, "min_count": 1, "epochs": 2}
AVERAGING = {**SHAPE, "strategy": "averaging", "n_replicas": 2, "rounds_per_epoch": 6, "frequent_rows": 100}
STRATEGIES: dict[str, dict[str, Any]] = {
    "averaging": AVERAGING,
    "averaging, phrases": {**AVERAGING, "phrases": 1, "phrase_min_count": 2, "phrase_threshold": 1.0},
    "averaging, hierarchical softmax": {**AVERAGING, "objective": "cbow_hs"},
    "averaging, several blocks": {**AVERAGING, "vector_size": 640, "epochs": 1},
    "rotation": {**SHAPE, "strategy": "rotation", "n_partitions": 4, "passes_per_epoch": 4},
    "columns": {**SHAPE, "objective": "context_matrix", "strategy": "columns", "context_size": 512},
    "columns, subwords": {**SHAPE, "objective": "subwords", "strategy": "columns", "context_size": 64},
}
RESOURCES = {"threads": 1, "block_size": "256 KiB", "checkpoint_seconds": 0.5, "store_timeout": 3}
MOMENTS = {
    "encode": Moment("encode", 0.3),
    "vocabulary": Moment("vocabulary", 0.3),
    "train, early": Moment("train", 0.1),
    "train, late": Moment("train", 0.7),
}
ROOT = Path(__file__).parents[2]
TOKENS = 400_000  # of the text
INDEXED = ("averaging",)
DISK = 2048  # megabytes; the largest of these runs takes 810


@dataclass
class Line:
    """A fault at a stage, in all runs."""

    tried: int = 0
    survived: int = 0
    missed: int = 0
    lost: list[float] = field(default_factory=list)


def write_text(path: Path, tokens: int = TOKENS) -> Path:
    """Write text of a twentieth as many words by Zipf's law."""
    rng = np.random.default_rng(0)
    words = (rng.zipf(1.2, tokens) % (tokens // 20)).astype(str)
    with path.open("w") as file:
        for start in range(0, tokens, 20):
            file.write(" ".join(words[start : start + 20]) + "\n")
    return path


class Bench:
    """A cluster, and what runs give where nothing disturbs them."""

    def __init__(self, folder: Path, cluster: Cluster, seed: int, out: TextIO, tokens: int = TOKENS) -> None:
        self._folder, self._cluster, self._mood, self._out = folder, cluster, folder / "mood", out
        self._text, self._numbers = write_text(folder / "text.txt", tokens), itertools.count()
        self.draws = random.Random(seed)
        self._whole: dict[str, Outcome] = {}
        self.lines: defaultdict[tuple[str, str], Line] = defaultdict(Line)
        self.disk = folder / "disk" if small_disk(folder / "disk", DISK) else None
        if self.disk is None:
            print(f"{LEFT_OUT}a full disk, which needs the right to mount one", file=out)

    def trial(self, strategy: str, fault: Fault | None = None) -> Trial:
        home = self.disk if fault and fault.full and self.disk else self._folder
        work, protocol = home / f"work{next(self._numbers)}", fault.protocol if fault else ""
        store = ObjectStore() if protocol == "s3" else None
        resources = RESOURCES if store is None else {**RESOURCES, "storage_options": store.options}
        url = f"s3://bucket/{work.name}" if store else f"{protocol}://{work}" if protocol else str(work)
        return Trial(
            self._cluster, str(self._text), work, url, STRATEGIES[strategy], resources, self.draws, self._mood, store,
            strategy in INDEXED, bool(fault and fault.adaptive),
        )  # fmt: skip

    def undisturbed(self, strategy: str) -> Outcome:
        """Return what a run gives, the second time: the first compiles kernels."""
        if strategy not in self._whole:
            for _ in range(2):
                trial = self.trial(strategy)
                self._whole[strategy] = run(trial)
                trial.end()
            if self._whole[strategy].digest is None:
                sys.exit(f"Nothing is wrong, and {strategy} says: {self._whole[strategy].said}")
        return self._whole[strategy]

    def strike(self, name: str, strategy: str, stage: str) -> None:
        """Do a run with a fault in it, and note what became of it."""
        whole, fault = self.undisturbed(strategy), FAULTS[name]
        if fault.full and self.disk is None:
            return
        moment = MOMENTS.get(stage) or Moment("", seconds=self.draws.uniform(1, whole.seconds))
        self._cluster.mend()
        trial = self.trial(strategy, fault)
        found = run(trial, fault.strike, moment)
        others = trial.end()
        if trial.store is not None:
            self._cluster.kill_workers()  # they keep a client, of 20 MB, of each object store that they met
        line = self.lines[name, stage]
        same = found.digest == whole.digest and all(said == whole.said or said.startswith(FAILED) for said in others)
        if not found.struck:
            line.missed += 1  # it was done before: nothing to survive
        else:
            line.tried += 1
            line.survived += same
            line.lost.append(max(0.0, found.seconds - whole.seconds))
        if not same:
            self._cluster.kill_all()  # what made it fail may be ill still
        verdict = "the same bits" if same else f"FAILED: {'; '.join([found.said, *others])}"
        verdict = verdict if found.struck else "not struck"
        said = f"{name} | {strategy} | {stage} | {found.commands} commands, {found.seconds:.1f} s | {verdict}"
        print(f"{said} | {'; '.join(trial.notes + others)}", file=self._out, flush=True)


@dataclass(frozen=True)
class Row:
    """What became of runs with a fault at a stage."""

    fault: str
    stage: str
    tried: int
    survived: int
    lost_median: float
    lost_most: float


def table(lines: dict[tuple[str, str], Line], out: TextIO | None = None) -> list[Row]:
    """Print a row for each fault and stage that was tried, and the sum of them."""
    rows = [
        Row(name, stage, line.tried, line.survived, statistics.median(line.lost), max(line.lost))
        for (name, stage), line in lines.items()
        if line.tried
    ]
    print("\n| fault | stage | tried | survived, the same bits | seconds lost, median | most |", file=out)
    print("| --- | --- | --- | --- | --- | --- |", file=out)
    for row in rows:
        lost = f"{row.lost_median:.1f} | {row.lost_most:.1f}"
        print(f"| {row.fault} | {row.stage} | {row.tried} | {row.survived} | {lost} |", file=out)
    print(f"| all | | {sum(row.tried for row in rows)} | {sum(row.survived for row in rows)} | | |", file=out)
    return rows


def soak(bench: Bench, seconds: float, strategies: list[str]) -> None:
    """Train, kill and go on, at random moments, until the time is over."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        bench.strike(bench.draws.choice(list(FAULTS)), bench.draws.choice(strategies), "any")


SMOKE = Smoke(
    {
        "faults": ["a worker is killed", "the client is killed"], "strategies": ["averaging"],
        "stages": ["train, early"], "tokens": 100_000,
    },
    ("tried", "survived"),
    ((), ("--soak", "1")),
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=1, help="runs for each fault, strategy and stage")
    parser.add_argument("--faults", nargs="+", choices=list(FAULTS), default=list(FAULTS))
    parser.add_argument("--strategies", nargs="+", choices=list(STRATEGIES), default=list(STRATEGIES))
    parser.add_argument("--stages", nargs="+", choices=[*MOMENTS, "any"], default=[*MOMENTS, "any"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tokens", type=int, default=TOKENS, help="of the text, which has a twentieth as many words")
    parser.add_argument("--soak", type=float, help="seconds of faults at random instead")
    options = parsed(parser, SMOKE)
    out = sys.stderr if options.json else sys.stdout
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the table is printed however it ends
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        environment = {MOOD: str(root / "mood"), "PYTHONPATH": str(ROOT)}
        with Cluster(root, environment=environment) as cluster:
            bench = Bench(root, cluster, options.seed, out, options.tokens)
            try:
                if options.soak:
                    soak(bench, options.soak, options.strategies)
                else:
                    for _ in range(options.times):
                        for name, strategy, stage in itertools.product(
                            options.faults, options.strategies, options.stages
                        ):
                            bench.strike(name, strategy, stage)
            finally:
                finish(table(bench.lines, out), out, as_json=options.json)
                if bench.disk is not None:
                    unmount(bench.disk)
    if any(line.survived < line.tried for line in bench.lines.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
