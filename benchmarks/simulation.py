"""Simulated processes that change what a work directory serves: schedules drawn by a seed, with every kind of fault.

Each schedule runs two to four processes (nights, publishing, rollback, gc, tags, holds, readers) of the real code over
a fake store and clock, and checks the invariants of `tests/support/simulation.py`. A schedule that violates one is
shrunk, and printed as the list of numbers that repeats it. Then parts of the protocol are left out, one at a time: the
first schedule that finds it is named.

    python -m benchmarks.simulation [--schedules 100000] [--seed 0] [--processes 2] [--mutations NAME ...]
"""

import argparse
import multiprocessing
import time
from collections import Counter
from functools import partial
from typing import Any

from benchmarks.harness import Benchmark, Session, Smoke
from tests.support.choices import Choices, shrink
from tests.support.protocol_mutations import MUTATIONS, mutated
from tests.support.simulation import FAULTS, Violated, simulate, violation

_CHUNK = 250  # schedules of a task
_MOST = 10_000  # schedules in which what is left out has to be found


def run_chunk(start: int, stop: int) -> tuple[Counter[str], list[tuple[int, list[int]]]]:
    """Run the schedules of some seeds; return counts, and the numbers of schedules that violate an invariant."""
    counts, violated = Counter[str](), []
    for seed in range(start, stop):
        choices = Choices(seed=seed)
        try:
            world = simulate(choices)
        except Violated:
            violated.append((seed, choices.taken))
            continue
        counts["calls"] += world.calls
        counts["states"] += len(world.states)
        counts.update(kind for kind, _ in world.faults.values())
    return counts, violated


def first_found(name: str, seed: int) -> tuple[int | None, str]:
    """Leave a part of the protocol out; return how many schedules found it, None if none did, and what they found."""
    with mutated(name):
        for number in range(_MOST):
            try:
                simulate(Choices(seed=seed + number))
            except Violated as problem:
                return number + 1, str(problem)
    return None, ""


def measure(session: Session) -> None:
    options, counts = session.options, Counter[str]()
    session.text = "three versions of no words"
    began = time.monotonic()
    starts = range(options.seed, options.seed + options.schedules, _CHUNK)
    bounds = [(start, min(start + _CHUNK, options.seed + options.schedules)) for start in starts]
    violations = 0
    with multiprocessing.get_context("forkserver").Pool(options.processes) as pool:
        for found, violated in pool.starmap(run_chunk, bounds):
            counts += found
            violations += len(violated)
            for seed, numbers in violated[:1]:
                small = shrink(numbers, lambda shorter: violation(shorter) is not None)
                session.wrong(f"seed {seed}: {violation(small)}: Choices({small})")
        columns = ("schedules", "calls of the store", "states", "violations", "seconds", *FAULTS)
        table, seconds = session.table("Schedules, and faults in them", columns, ",.0f"), time.monotonic() - began
        done = options.schedules, counts["calls"], counts["states"], violations, seconds
        table.row("all", *done, *(counts[kind] for kind in FAULTS))
        if not options.mutations:
            return
        table = session.table("What is left out of the protocol", ("found after schedules",), ",.0f")
        for name, (after, _) in zip(
            options.mutations, pool.map(partial(first_found, seed=options.seed), options.mutations), strict=True
        ):
            table.row(name, after)
            if after is None:
                session.wrong(f"{name}: not found in {_MOST:,} schedules")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0, help="the first one; each schedule has its own")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--mutations", nargs="*", choices=list(MUTATIONS), default=list(MUTATIONS), metavar="NAME")


_SMOKE: dict[str, Any] = {"schedules": 500, "mutations": ["guards are not checked"]}
BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/store", "daskw2v/models/versions", "daskw2v/retraining"),
    Smoke(_SMOKE, ("Schedules", "die before", "left out", "guards are not checked")),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
