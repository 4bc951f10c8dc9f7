"""This checkout against another commit: bits of vectors, speed, and what becomes of its work directories.

The commit's package is taken from git into a temporary folder. Both trees run the same script, which knows public names
only, in the same environment, each with kernels it has compiled itself.

* Bits: small models of all objectives by all strategies, of one seed; are their tables equal? What one tree refuses,
  the other has to refuse.
* Speed: words a second, one worker of one thread. Both trees train side by side, one round at a time in turn, so that
  each round has a partner that did the same work a moment before or after; the median ratio of partners. Two processes
  of the same code differ by some 2 % (`python -m benchmarks.against HEAD`), since their tables lie elsewhere in memory:
  so several pairs of processes are taken.
* Work directories that the commit made: `daskw2v similar` answers as it did there; a training that was killed goes on
  from its checkpoint and comes to the same bits; `retrain` on a text that grew publishes a second version.

    python -m benchmarks.against COMMIT [--tables bits speed work] [--objectives sgns "sgns, pair" ...] [--parts 1]
        [--times 5] [--json]
"""

import argparse
import io
import json
import os
import random
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from benchmarks.common import finish, write_text
from benchmarks.options import Smoke, parsed

HERE = Path(__file__).parents[2]
CHILD = Path(__file__).with_name("child.py")
KILLED = 77  # exit code of a training that ends itself
TABLES = ("bits", "speed", "work")

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
    "averaging, 3 replicas, momentum": {"n_replicas": 3, "merge": "momentum"},
    "averaging, 3 replicas, mean": {"n_replicas": 3, "merge": "mean"},
    "rotation, tns": {"n_partitions": 4, "passes_per_epoch": 2},
    "rotation, sns": {"n_partitions": 4, "passes_per_epoch": 2, "negative_rule": "sns"},
    "rotation, bns": {"n_partitions": 4, "passes_per_epoch": 2, "negative_rule": "bns"},
    "rotation, 3 groups": {"n_partitions": 6, "n_groups": 3, "passes_per_epoch": 2},
    "columns": {},
}
TIMED: dict[str, Any] = {"epochs": 20, "rounds_per_epoch": 2}


class Tree(NamedTuple):
    """A checkout, and the name it goes by."""

    name: str
    folder: Path

    def run(self, *arguments: str, code: int = 0) -> str:
        """Return what a Python process prints that imports this tree's package.

        Raises
        ------
        RuntimeError
            If it does not end with that exit code.
        """
        with self._start(arguments, stderr=subprocess.PIPE) as process:
            out, err = process.communicate()
        if process.returncode != code:
            end = "\n".join(err.splitlines()[-20:])
            raise RuntimeError(
                f"{self.name}: {' '.join(arguments)} ended with {process.returncode}, not {code}:\n{end}"
            )
        return str(out)

    def _start(self, arguments: Sequence[str], **options: Any) -> "subprocess.Popen[str]":
        environment, pipe = {**os.environ, "PYTHONPATH": str(self.folder)}, subprocess.PIPE
        return subprocess.Popen(
            [sys.executable, *arguments], stdin=pipe, stdout=pipe, text=True, env=environment, cwd="/", **options
        )

    def child(self, task: str, text: Path, work: Path, argument: Any, *options: str, code: int = 0) -> Any:
        """Return what the child answers."""
        out = self.run(str(CHILD), task, str(text), str(work), json.dumps(argument), *options, code=code)
        return None if code else self.answer(out)

    def begin(self, task: str, text: Path, work: Path, argument: Any) -> "subprocess.Popen[str]":
        """Start the child, to talk with it."""
        return self._start([str(CHILD), task, str(text), str(work), json.dumps(argument)])

    def answer(self, out: str) -> Any:
        """Return the answer in the last line of what the child printed."""
        said = json.loads(out.splitlines()[-1])
        if Path(said["package"]) != self.folder:
            raise RuntimeError(f"{self.name}: daskw2v was imported from {said['package']}, not from {self.folder}")
        return said["answer"]


@dataclass(frozen=True)
class Bits:
    """Whether a model is the same: "equal", "refused by both" or what differs."""

    setting: str
    found: str
    digest: str


@dataclass(frozen=True)
class Speed:
    """Million words a second of each tree's median round; the median over pairs of processes of the ratio of this
    tree's to the commit's, the lowest and the highest.
    """

    setting: str
    before: float
    now: float
    ratio: float
    ratios: str


@dataclass(frozen=True)
class Work:
    """What became of a work directory of the commit's."""

    step: str
    found: str


def settings(objectives: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return Params of objectives by all strategies; some are refused."""
    return {
        f"{objective} by {strategy}": {
            **SMALL, "objective": objective.partition(",")[0], "strategy": strategy.partition(",")[0],
            **OBJECTIVES[objective], **STRATEGIES[strategy],
        }
        for objective in objectives
        for strategy in STRATEGIES
    }  # fmt: skip


def zipf_text(path: Path, lines: int, seed: int) -> Path:
    """Write lines of twelve words, some of them frequent."""
    draws = random.Random(seed)
    words = [f"w{min(299, int(draws.expovariate(1 / 40)))}" for _ in range(12 * lines)]
    path.write_text("".join(" ".join(words[12 * line : 12 * line + 12]) + "\n" for line in range(lines)))
    return path


def compare_bits(before: Tree, now: Tree, folder: Path, objectives: Sequence[str]) -> list[Bits]:
    """Train the same models in both trees."""
    text, chosen, rows = zipf_text(folder / "bits.txt", 1500, 1), settings(objectives), []
    theirs, ours = (tree.child("digests", text, folder / tree.name, chosen) for tree in (before, now))
    for name, their in theirs.items():
        refused = [digest.startswith("refused") for digest in (their, ours[name])]
        if all(refused):
            rows.append(Bits(name, "refused by both", ""))
        elif any(refused):
            rows.append(Bits(name, f"DIFFERENT: {their} / {ours[name]}", ""))
        else:
            rows.append(Bits(name, "equal" if their == ours[name] else "DIFFERENT", ours[name][:12]))
    return rows


def compare_speed(
    before: Tree, now: Tree, folder: Path, objectives: Sequence[str], parts: float, times: int
) -> list[Speed]:
    """Train in both trees, one round at a time in turn."""
    text = write_text(folder / "speed.txt", parts)
    rows = []
    for name, options in OBJECTIVES.items():
        if name in objectives and "context_size" not in options:  # rounds of those have no words
            setting = {**TIMED, "objective": name.partition(",")[0], **options}
            speeds, ratios = list[tuple[float, float]](), list[float]()
            for _ in range(times):
                found = _in_turn((before, now), text, folder, setting)
                pairs = [(theirs, ours) for theirs, ours in zip(*found, strict=True) if theirs and ours]
                speeds += pairs
                ratios.append(statistics.median(ours / theirs for theirs, ours in pairs))
            theirs, ours = (statistics.median(each) / 1e6 for each in zip(*speeds, strict=True))
            span = f"{min(ratios):.3f} to {max(ratios):.3f}"
            rows.append(Speed(name, theirs, ours, statistics.median(ratios), span))
    return rows


def _in_turn(trees: Sequence[Tree], text: Path, folder: Path, setting: Mapping[str, Any]) -> list[list[float | None]]:
    """Return the speed of each round, None if it compiled."""
    with ExitStack() as ending:
        talks = []
        for tree in trees:
            work = ending.enter_context(tempfile.TemporaryDirectory(dir=folder))
            child = ending.enter_context(tree.begin("speeds", text, Path(work), setting))
            assert child.stdin is not None
            assert child.stdout is not None
            talks.append((child.stdin, child.stdout))
        said = [answers.readline() for _, answers in talks]
        while "round\n" in said:
            for number, (questions, answers) in enumerate(talks):  # while the others wait for their line
                if said[number] == "round\n":
                    questions.write("\n")
                    questions.flush()
                    said[number] = answers.readline()
    return [tree.answer(line) for tree, line in zip(trees, said, strict=True)]


def compare_work(before: Tree, now: Tree, folder: Path) -> list[Work]:
    """Go on in this tree with what the commit began."""
    text, whole, cut = zipf_text(folder / "work.txt", 3000, 2), folder / "whole", folder / "cut"
    setting = {**SMALL, "epochs": 4}
    finished = before.child("run", text, whole, setting)
    query = ("-m", "daskw2v", "similar", str(whole), "w1")
    theirs, ours = before.run(*query), now.run(*query)
    rows = [Work("similar", "the same answer" if theirs == ours else f"DIFFERENT:\n{theirs}\n{ours}")]

    before.child("run", text, cut, setting, "--stop", code=KILLED)
    resumed = now.child("run", text, cut, setting)
    equal = "equal bits" if resumed["digest"] == finished["digest"] else "DIFFERENT bits"
    began = "went on" if resumed["first"] > 0.25 else "BEGAN ANEW"
    rows.append(Work("resume after a kill", f"{began}, first report at {resumed['first']:.0%}; {equal}"))

    zipf_text(folder / "more.txt", 1000, 5)
    with text.open("a") as out:
        out.write((folder / "more.txt").read_text())
    answer = now.child("retrain", text, whole, setting)
    rows.append(Work("retrain", ", ".join(f"{name} {value}" for name, value in answer.items())))
    rows.append(Work("similar after it", _answers(now, query)))
    return rows


def _answers(tree: Tree, query: Sequence[str]) -> str:
    return f"{len(tree.run(*query).splitlines())} lines"


def report(title: str, rows: Sequence[Any], out: TextIO) -> None:
    """Print a table."""
    names = list(rows[0].__dataclass_fields__)
    print(f"\n{title}\n\n| {' | '.join(names)} |\n|{' --- |' * len(names)}", file=out)
    for row in rows:
        cells = (getattr(row, name) for name in names)
        print(f"| {' | '.join(f'{c:.3f}' if isinstance(c, float) else str(c) for c in cells)} |", file=out, flush=True)


def take(commit: str, folder: Path) -> Tree:
    """Take a commit's package out of git."""
    archive = subprocess.run(
        ["git", "-C", str(HERE), "archive", "--format=tar", commit, "daskw2v"], capture_output=True, check=False
    )
    if archive.returncode:
        sys.exit(f"git has no commit {commit}: {archive.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as found:
        found.extractall(folder, filter="data")
    return Tree("before", folder)


SMOKE = Smoke({"commit": "HEAD", "objectives": ["sgns"], "parts": 0.02, "times": 1}, ("equal", "went on", "sgns"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?", default="HEAD", help="what git calls it")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--objectives", nargs="+", choices=OBJECTIVES, default=list(OBJECTIVES))
    parser.add_argument("--parts", type=float, default=1, help="tenths of the 100 MB corpus, of speed")
    parser.add_argument("--times", type=int, default=5, help="pairs of processes, of speed")
    options = parsed(parser, SMOKE)
    out, found = sys.stderr if options.json else sys.stdout, dict[str, Sequence[Any]]()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        before, now = take(options.commit, folder / "tree"), Tree("now", HERE)
        tables: dict[str, Callable[[], Sequence[Any]]] = {
            "bits": partial(compare_bits, before, now, folder, options.objectives),
            "speed": partial(compare_speed, before, now, folder, options.objectives, options.parts, options.times),
            "work": partial(compare_work, before, now, folder),
        }
        for name in options.tables:
            found[name] = tables[name]()
            report(f"{name}, {options.commit} and now", found[name], out)
    finish(found, out, as_json=options.json)
    if any("DIFFERENT" in row.found for name in ("bits", "work") for row in found.get(name, ())):
        sys.exit(1)


if __name__ == "__main__":
    main()
