"""Run all commands that the README.md of this folder names in their smallest form, and look at the output.

A command passes if it ends with exit code 0 within its time, prints rows as JSON with figures in them, none of them NaN
or infinite, no column that is empty in all rows of a table, and names all that its `Smoke` says. Two run at a time on
two cores: their figures say nothing.

    python -m benchmarks.smoke [COMMAND ...] [--at-once 2] [--seconds 120] [--budget 2000 --first 17]

After a budget of seconds no run begins. What is left out is named, and another first run leaves out others.
"""

import argparse
import importlib
import json
import math
import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from benchmarks.harness import LEFT_OUT, Smoke
from benchmarks.records import ROOT
from tests.support.quiet import PATIENT, QUIET

COMMAND = re.compile(r"python -m benchmarks\.([a-z_]+)")


class Run(NamedTuple):
    """A command, and the options that lead through some of its code."""

    command: str
    way: tuple[str, ...]
    smoke: Smoke

    @property
    def name(self) -> str:
        return " ".join((self.command, *self.way))


class Found(NamedTuple):
    """What became of a run: exit code, None if it was stopped; what is wrong; and what was looked at."""

    code: int | None
    seconds: float
    problems: list[str]
    seen: str


def commands() -> list[str]:
    """Return the commands that the table of README.md names, once each."""
    lines = (ROOT / "benchmarks" / "README.md").read_text().splitlines()
    texts = [line for line in lines if line.startswith("|")]
    return list(dict.fromkeys(command for text in texts for command in COMMAND.findall(text)))


def runs_of(command: str) -> list[Run]:
    """Return the runs of a command.

    Raises
    ------
    ImportError, AttributeError
        If it cannot be imported, or is no benchmark.
    """
    place = "" if (ROOT / "benchmarks" / f"{command}.py").exists() else ".__main__"
    smoke: Smoke = importlib.import_module(f"benchmarks.{command}{place}").BENCHMARK.smoke
    return [Run(command, way, smoke) for way in smoke.ways]


def figures_of(cell: Any) -> list[float]:
    """Return the numbers of a cell, those of a spread too."""
    values = cell if isinstance(cell, list) else (cell,)
    return [value for value in values if isinstance(value, int | float)]


def look(run: Run, code: int, out: str, errors: str) -> tuple[list[str], str]:
    """Return what is wrong with a run, and what was looked at."""
    if code:
        return [f"exit code {code}: {' | '.join(errors.strip().splitlines()[-3:])}"], ""
    try:
        rows = json.loads(out)
    except ValueError as error:
        return [f"no JSON: {error}"], ""
    tables = defaultdict[str, list[dict[str, Any]]](list)
    for row in rows:
        tables[row["table"]].append(row["cells"])
    figures = [figure for row in rows for cell in row["cells"].values() for figure in figures_of(cell)]
    problems = [] if figures else ["no figures"]
    if wild := sum(not math.isfinite(figure) for figure in figures):
        problems.append(f"{wild} of {len(figures)} figures are not finite")
    for title, cells in tables.items():
        empty = [column for column in cells[0] if all(row[column] in (None, "") for row in cells)]
        problems += [f"nothing in column {column!r} of {title!r}" for column in empty]
    printed, words = json.dumps(rows, ensure_ascii=False) + errors, (word for word in run.way if word[0] != "-")
    problems += [f"{name!r} is not in the output" for name in (*run.smoke.names, *words) if name not in printed]
    left_out = [line.replace(LEFT_OUT, "LEFT OUT ") for line in errors.splitlines() if line.startswith(LEFT_OUT)]
    return problems, "; ".join([f"{len(figures)} figures, {len(rows)} rows of {len(tables)} table(s)", *left_out])


def call(run: Run, seconds: float) -> Found:
    """Run a command, and look at its output."""
    words = [sys.executable, "-m", f"benchmarks.{run.command}", *run.way, "--smoke", "--json"]
    environment, began = {**os.environ, **QUIET, **PATIENT, "PYTHONPATH": str(ROOT)}, time.monotonic()
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds, env=environment, check=False)
    except subprocess.TimeoutExpired:
        return Found(None, seconds, [f"not done within {seconds:.0f} s"], "")
    return Found(done.returncode, time.monotonic() - began, *look(run, done.returncode, done.stdout, done.stderr))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="*", metavar="COMMAND", help="such as train_speed; all by default")
    parser.add_argument("--at-once", type=int, default=os.cpu_count() or 1, help="commands at a time")
    parser.add_argument("--seconds", type=float, default=120, help="that a command may take")
    parser.add_argument("--budget", type=float, default=math.inf, help="seconds after which no run begins")
    parser.add_argument("--first", type=int, default=0, help="number of the run to begin with, counted around")
    options = parser.parse_args(arguments)
    runs, lacking, began = list[Run](), list[str](), time.monotonic()
    for command in options.commands or commands():
        try:
            runs += runs_of(command)
        except (ImportError, AttributeError) as error:
            lacking.append(f"| {command} | | | WRONG: no smallest form: {error} |")
    at, end = options.first % max(len(runs), 1), began + options.budget
    runs = runs[at:] + runs[:at]

    def called(run: Run) -> Found | None:
        return call(run, options.seconds) if time.monotonic() < end else None

    print("| command | exit | seconds | what was looked at |\n| --- | --- | --- | --- |", *lacking, sep="\n")
    failed, left_out = len(lacking), list[str]()
    with ThreadPoolExecutor(options.at_once) as pool:
        for run, found in zip(runs, pool.map(called, runs), strict=True):
            if found is None:
                left_out.append(run.name)
                continue
            failed += bool(found.problems)
            seen = "; ".join(f"WRONG: {problem}" for problem in found.problems) or found.seen
            print(f"| {run.name} | {found.code} | {found.seconds:.1f} | {seen.replace('|', '/')} |", flush=True)
    if left_out:
        print(f"\nLEFT OUT, as the budget was spent: {', '.join(left_out)}")
    n = len(runs) - len(left_out) + len(lacking)
    print(f"\n{n} runs in {time.monotonic() - began:.0f} s, {failed} of them wrong")
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
