"""Races for the lease of a killed holder."""

import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.fencing.hosts import PROCESSES
from daskw2v.errors import BusyError
from daskw2v.store import lease
from daskw2v.store.storage import Store

MOST = 8


@dataclass(frozen=True)
class Races:
    """Races of a number of processes, and how many of them held the lease at once: the least and the most."""

    processes: int
    races: int
    least: int
    most: int


def race(folder: Path, races: int, seed: int) -> list[Races]:
    """Let 2 to 8 processes take over the lease of a killed one at the same moment, and count holders."""
    draws = random.Random(seed)
    runners = []
    for _ in range(MOST):
        here, there = PROCESSES.Pipe()
        process = PROCESSES.Process(target=_run, args=(there,), daemon=True)
        process.start()
        runners.append((here, process))
    held: dict[int, Counter[int]] = {n: Counter() for n in range(2, MOST + 1)}
    for number in range(races):
        name = f"race{number}"
        _die_holding(folder, name)
        chosen = draws.sample(runners, draws.randint(2, MOST))
        at = time.monotonic() + 0.01
        for pipe, _ in chosen:
            pipe.send((str(folder), name, at))
        held[len(chosen)][sum(pipe.recv() for pipe, _ in chosen)] += 1
        for pipe, _ in chosen:
            pipe.send(None)
    for pipe, process in runners:
        pipe.send(None)
        process.join()
    return [Races(n, counts.total(), min(counts), max(counts)) for n, counts in held.items() if counts]


def _run(pipe: Connection) -> None:
    """Take part in races, until there are no more; hold what was taken until all have answered."""
    random.seed(os.getpid())
    _slow_down()
    while (job := pipe.recv()) is not None:
        folder, name, at = job
        while time.monotonic() < at:
            pass
        holding = lease.hold(Store(folder), name, "the race")
        try:
            holding.__enter__()
        except BusyError:
            pipe.send(False)
            pipe.recv()
            continue
        pipe.send(True)
        pipe.recv()
        holding.__exit__(None, None, None)


def _slow_down() -> None:
    """Make calls of the store last some milliseconds, so that those of all processes mix."""
    for name in ("remove", "create_manifest", "read_manifest", "write_manifest", "children"):
        call = getattr(Store, name)

        def slow(*args: object, call=call, **options: object) -> object:  # type: ignore[no-untyped-def]
            time.sleep(random.random() * 0.004)
            return call(*args, **options)

        setattr(Store, name, slow)


def _die_holding(folder: Path, name: str) -> None:
    process = PROCESSES.Process(target=_hold, args=(folder, name))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def _hold(folder: Path, name: str) -> None:
    lease.hold(Store(str(folder)), name, "the race").__enter__()
    os.kill(os.getpid(), signal.SIGKILL)
