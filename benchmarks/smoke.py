"""Run all commands that this folder's README.md and RESULTS.md name in their smallest form, and look at the output.

A command passes if it ends with exit code 0 within its time, prints JSON with figures in it, none of them NaN or
infinite, no column that is empty in all rows of a table, and names all that it says it does (`benchmarks.options`). It
fails if it has no such form. Two run at a time on two cores: their figures say nothing.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness import LEFT_OUT, Smoke
from tests.support.quiet import PATIENT, QUIET

ROOT = Path(__file__).parents[1]
DOCUMENTS = (ROOT / "benchmarks" / "README.md", ROOT / "benchmarks" / "RESULTS.md")
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


def commands(documents: Sequence[Path] = DOCUMENTS) -> list[str]:
    """Return the commands that documents name, once each, but for this one."""
    named = dict.fromkeys(name for path in documents for name in COMMAND.findall(path.read_text()))
    return [name for name in named if name != Path(__file__).stem]


def runs_of(command: str) -> list[Run]:
    """Return the runs of a command.

    Raises
    ------
    ImportError, AttributeError
        If it cannot be imported, or has no smallest form.
    """
    place = "" if (ROOT / "benchmarks" / f"{command}.py").exists() else ".__main__"
    module = importlib.import_module(f"benchmarks.{command}{place}")
    smoke: Smoke = module.BENCHMARK.smoke if hasattr(module, "BENCHMARK") else module.SMOKE
    return [Run(command, way, smoke) for way in smoke.ways]


def tables_of(value: Any, place: str = "") -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the tables of a command's values, with where they stand: each is a list of mappings."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from tables_of(item, f"{place}/{name}")
    elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        several = defaultdict(list)
        for row in value:
            cells = row["cells"] if row.keys() >= {"table", "cells"} else row
            several[f"{place}/{row['table']}" if cells is not row else f"{place}: {', '.join(cells)}"].append(cells)
        yield from several.items()


def numbers_of(value: Any) -> Iterator[float]:
    """Yield all numbers of a command's values."""
    if isinstance(value, Mapping):
        value = [*value.values()]
    if isinstance(value, list):
        for item in value:
            yield from numbers_of(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def problems_of(values: Any, names: Sequence[str], printed: str) -> list[str]:
    """Return what is wrong with a command's values, and with all that it printed."""
    numbers = [*numbers_of(values)]
    problems = [] if numbers else ["no figures"]
    if wild := sum(not math.isfinite(number) for number in numbers):
        problems.append(f"{wild} of {len(numbers)} figures are not finite")
    for place, rows in tables_of(values):
        empty = [name for name in rows[0] if all(row.get(name) in (None, "", [], {}) for row in rows)]
        problems += [f"nothing in column {name!r} of {place}" for name in empty]
    problems += [f"{name!r} is not in the output" for name in names if name not in printed]
    return problems


def look(run: Run, code: int | None, out: str, errors: str) -> tuple[list[str], str]:
    """Return what is wrong with a run, and what was looked at."""
    if code:
        return [f"exit code {code}: {' | '.join(errors.strip().splitlines()[-3:])}"], ""
    try:
        values = json.loads(out)
    except ValueError as error:
        return [f"no JSON: {error}"], ""
    left_out = [line.removeprefix(LEFT_OUT) for line in errors.splitlines() if line.startswith(LEFT_OUT)]
    tables = dict(tables_of(values))
    seen = f"{len([*numbers_of(values)])} figures, {sum(map(len, tables.values()))} rows of {len(tables)} table(s)"
    names = (*run.smoke.names, *(word for word in run.way if not word.startswith("-")))
    problems = problems_of(values, names, json.dumps(values, ensure_ascii=False) + errors)
    return problems, "; ".join([seen, *(f"LEFT OUT {line}" for line in left_out)])


def call(run: Run, seconds: float) -> Found:
    """Run a command, and look at its output."""
    words = [sys.executable, "-m", f"benchmarks.{run.command}", *run.way, "--smoke", "--json"]
    environment, began = {**os.environ, **QUIET, **PATIENT, "PYTHONPATH": str(ROOT)}, time.monotonic()
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds, env=environment, check=False)
    except subprocess.TimeoutExpired:
        return Found(None, seconds, [f"not done within {seconds:.0f} s"], "")
    problems, seen = look(run, done.returncode, done.stdout, done.stderr)
    return Found(done.returncode, time.monotonic() - began, problems, seen)


def within(budget: float, call: Callable[[Run], Found]) -> Callable[[Run], Found | None]:
    """Return what calls a run, or returns None once the budget is spent."""
    end = time.monotonic() + budget
    return lambda run: call(run) if time.monotonic() < end else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="*", metavar="COMMAND", help="such as train_speed; all by default")
    parser.add_argument("--at-once", type=int, default=os.cpu_count() or 1, help="commands at a time")
    parser.add_argument("--seconds", type=float, default=120, help="that a command may take")
    parser.add_argument("--budget", type=float, default=math.inf, help="seconds after which no run begins")
    parser.add_argument("--first", type=int, default=0, help="number of the run to begin with, counted around")
    options = parser.parse_args()
    runs, lacking, began = list[Run](), list[str](), time.monotonic()
    for command in options.commands or commands():
        try:
            runs += runs_of(command)
        except (ImportError, AttributeError) as error:
            lacking.append(f"{command}: {error}")
    print("| command | exit | seconds | what was looked at |\n| --- | --- | --- | --- |")
    failed, left_out, at = len(lacking), list[str](), options.first % max(len(runs), 1)
    runs = runs[at:] + runs[:at]
    called = within(options.budget, partial(call, seconds=options.seconds))
    with ThreadPoolExecutor(options.at_once) as pool:
        for run, found in zip(runs, pool.map(called, runs), strict=True):
            if found is None:
                left_out.append(run.name)
                continue
            failed += bool(found.problems)
            seen = "; ".join(f"WRONG: {problem}" for problem in found.problems) or found.seen
            print(f"| {run.name} | {found.code} | {found.seconds:.1f} | {seen.replace('|', '/')} |", flush=True)
    for line in lacking:
        print(f"| {line.partition(':')[0]} | | | WRONG: no smallest form: {line} |")
    if left_out:
        print(f"\nLEFT OUT, as the budget was spent: {', '.join(left_out)}")
    n = len(runs) - len(left_out) + len(lacking)
    print(f"\n{n} runs in {time.monotonic() - began:.0f} s, {failed} of them wrong")
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
