"""This checkout against another commit: bits of vectors, and what becomes of its work directories.

The commit's package is taken from git into a temporary folder. Both trees run the same script, which knows public names
only, in the same environment, each with kernels it has compiled itself.

* Bits: small models of all objectives by all strategies, of one seed; are their tables equal? What one tree refuses,
  the other has to refuse.
* Work directories that the commit made: `daskw2v similar` answers as it did there; a training that was killed goes on
  from its checkpoint and comes to the same bits; `retrain` on a text that grew publishes a second version.

    python -m benchmarks.against COMMIT [--tables bits work] [--objectives sgns "sgns, pair" ...]
"""

import argparse
import io
import json
import os
import random
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness import Benchmark, Session, Smoke
from benchmarks.records import ROOT

CHILD = Path(__file__).with_name("child.py")
KILLED = 77  # exit code of a training that ends itself
SMALL: dict[str, Any] = {"vector_size": 20, "min_count": 1, "epochs": 2, "sample": 1e-2, "seed": 3}
OBJECTIVES: dict[str, dict[str, Any]] = {
    "sgns": {},
    "sgns, pair": {"negative_sharing": "pair"},
    "cbow_ns": {},
    "cbow_ns, pair": {"negative_sharing": "pair"},
    "sg_hs": {},
    "cbow_hs": {},
    "context_matrix": {"context_size": 64},
    "subwords": {"context_size": 64},
}
STRATEGIES: dict[str, dict[str, Any]] = {
    "averaging": {},
    "averaging, 3 replicas": {"n_replicas": 3},
    "averaging, 3 replicas, mean": {"n_replicas": 3, "merge": "mean"},
    "rotation, tns": {"n_partitions": 4, "passes_per_epoch": 2},
    "rotation, sns": {"n_partitions": 4, "passes_per_epoch": 2, "negative_rule": "sns"},
    "rotation, bns": {"n_partitions": 4, "passes_per_epoch": 2, "negative_rule": "bns"},
    "rotation, 3 groups": {"n_partitions": 6, "n_groups": 3, "passes_per_epoch": 2},
    "columns": {},
}


class Tree(NamedTuple):
    """A checkout, and the name it goes by."""

    name: str
    folder: Path

    def start(self, *arguments: str, **options: Any) -> "subprocess.Popen[str]":
        """Start a Python process that imports this tree's package."""
        environment, pipe = {**os.environ, "PYTHONPATH": str(self.folder)}, subprocess.PIPE
        return subprocess.Popen(
            [sys.executable, *arguments], stdin=pipe, stdout=pipe, text=True, env=environment, cwd="/", **options
        )

    def run(self, *arguments: str, code: int = 0) -> str:
        """Return what such a process prints.

        Raises
        ------
        RuntimeError
            If it does not end with that exit code.
        """
        with self.start(*arguments, stderr=subprocess.PIPE) as process:
            out, errors = process.communicate()
        if process.returncode != code:
            said = "\n".join([f"{self.name}: {arguments} ended with {process.returncode}, not {code}:", errors[-2000:]])
            raise RuntimeError(said)
        return str(out)

    def answer(self, out: str) -> Any:
        """Return the answer of the child, in the last line of what it printed."""
        said = json.loads(out.splitlines()[-1])
        if Path(said["package"]) != self.folder:
            raise RuntimeError(f"{self.name}: daskw2v was imported from {said['package']}, not from {self.folder}")
        return said["answer"]

    def child(self, task: str, text: Path, work: Path, setting: Any) -> Any:
        return self.answer(self.run(*words_of(task, text, work, setting)))


def words_of(task: str, text: Path, work: Path, setting: Any) -> list[str]:
    """Return the command line of the child, after Python's name."""
    return [str(CHILD), task, str(text), str(work), json.dumps(setting)]


def take(commit: str, folder: Path) -> Tree:
    """Take a commit's package out of git."""
    words = ["git", "-C", str(ROOT), "archive", "--format=tar", commit, "daskw2v"]
    archive = subprocess.run(words, capture_output=True, check=False)
    if archive.returncode:
        sys.exit(f"git has no commit {commit}: {archive.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as found:
        found.extractall(folder, filter="data")
    return Tree("before", folder)


def draw_text(path: Path, lines: int, seed: int) -> Path:
    """Write lines of twelve words, some of them frequent, at the end of a file."""
    draws = random.Random(seed)
    with path.open("a") as out:
        for _ in range(lines):
            print(*(f"w{min(299, int(draws.expovariate(1 / 40)))}" for _ in range(12)), file=out)
    return path


def settings(objectives: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return Params of objectives by all strategies; some are refused."""
    return {
        f"{objective} by {strategy}": {
            **SMALL,
            "objective": objective.partition(",")[0],
            "strategy": strategy.partition(",")[0],
            **OBJECTIVES[objective],
            **STRATEGIES[strategy],
        }
        for objective, strategy in product(objectives, STRATEGIES)
    }


def compare_bits(before: Tree, now: Tree, session: Session) -> None:
    """Train the same models in both trees."""
    table = session.table(f"Bits, {session.options.commit} and now", ("found", "digest"))
    text, chosen = draw_text(session.folder / "bits.txt", 1500, 1), settings(session.options.objectives)
    theirs, ours = (tree.child("digests", text, session.fresh("bits"), chosen) for tree in (before, now))
    counts = dict.fromkeys(("equal", "different", "refused by both"), 0)
    for name, their in theirs.items():
        refused = [digest.startswith("refused") for digest in (their, ours[name])]
        if all(refused):
            table.row(name, "refused by both", None)
            counts["refused by both"] += 1
            continue
        equal = their == ours[name]
        counts["equal" if equal else "different"] += 1
        table.row(name, "equal" if equal else f"DIFFERENT: {their} / {ours[name]}", ours[name][:12])
        if not equal:
            session.wrong(f"{name} has other bits")
    session.table("Models", list(counts)).row("all", *counts.values())


def compare_work(before: Tree, now: Tree, session: Session) -> None:
    """Go on in this tree with what the commit began."""
    table = session.table(f"Work directories of {session.options.commit}", ("found",))
    text, whole, cut = draw_text(session.folder / "work.txt", 3000, 2), session.fresh("whole"), session.fresh("cut")
    setting = {**SMALL, "epochs": 4}

    def tell(step: str, found: str, *, right: bool) -> None:
        table.row(step, found)
        if not right:
            session.wrong(f"{step}: {found}")

    finished = before.child("run", text, whole, setting)
    query = ("-m", "daskw2v", "similar", str(whole), "w1")
    theirs, ours = before.run(*query), now.run(*query)
    tell("similar", "the same answer" if theirs == ours else f"{theirs} / {ours}", right=theirs == ours)
    before.run(*words_of("run", text, cut, setting), "--stop", code=KILLED)
    resumed = now.child("run", text, cut, setting)
    equal, went_on = resumed["digest"] == finished["digest"], resumed["first"] > 0.25
    said = f"{'went on' if went_on else 'BEGAN ANEW'}, first report at {resumed['first']:.0%}"
    tell("resume after a kill", f"{said}; {'equal' if equal else 'DIFFERENT'} bits", right=equal and went_on)
    draw_text(text, 1000, 5)
    answer = now.child("retrain", text, whole, setting)
    said = ", ".join(f"{name} {value}" for name, value in answer.items())
    tell("retrain", said, right=answer["outcome"] == "published")
    tell("similar after it", f"{len(lines := now.run(*query).splitlines())} lines", right=len(lines) > 1)


TABLES = {"bits": compare_bits, "work": compare_work}


def measure(session: Session) -> None:
    options = session.options
    session.text = "a few thousand lines that are drawn at random"
    before, now = take(options.commit, session.fresh("tree")), Tree("now", ROOT)
    for name in options.tables:
        TABLES[name](before, now, session)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("commit", nargs="?", default="HEAD", help="what git calls it")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--objectives", nargs="+", choices=OBJECTIVES, default=list(OBJECTIVES))


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v",),
    Smoke({"objectives": ["sgns"]}, ("equal", "went on", "sgns")),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
