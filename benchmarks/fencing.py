"""Lose leases in every way: races for a dead holder's lease, and holders that are paused at a write and go on later.

Races: 2 to 8 processes take over the lease of a killed holder at the same moment. Pauses: a process is stopped before
each of its writes and deletions, and between the check of its lease and the write. Another process, which takes it for
one of another machine, takes over the lease and works to its end. Then the first goes on. A lease expires after 1 s
here, not after 60.

    python -m benchmarks.fencing [--races 1000] [--seed 0] [--every 1] [--scenes NAME ...]
"""

import argparse
import multiprocessing
import os
import random
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from benchmarks.harness import Benchmark, Session, Smoke
from benchmarks.processes import one_thread
from daskw2v.cli.exits import one_sentence
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.errors import BusyError
from daskw2v.models.index.vectors import build_index
from daskw2v.models.versions.finished import parse_number
from daskw2v.models.versions.versions import Versions
from daskw2v.retraining.gates import Gates
from daskw2v.retraining.outcome import Outcome
from daskw2v.retraining.policy import Policy
from daskw2v.retraining.retrain import retrain
from daskw2v.store import lease
from daskw2v.store.storage import Store
from tests.support.days import write_day

MOST = 8  # processes of a race
NIGHTS = 3  # before a host is paused
FAST = {"BEAT": 0.1, "EXPIRY": 1.0, "POLL": 0.02}  # seconds, instead of 10, 60 and 1
PARAMS = Params(vector_size=8, min_count=2, epochs=1, rounds_per_epoch=1, alpha=0.05)
RESOURCES = Resources(threads=1, block_size="64 KiB")
SCENES = (  # what the host does that is paused, and the other
    ("night", "night"),
    ("night", "later night"),
    ("night", "rollback"),
    ("publish 1", "publish 2"),
    ("rollback", "publish 1"),
    ("tag 1", "gc"),
    ("gc", "tag 1"),
    ("gc", "publish 1"),
    ("index", "index"),
)
KINDS = ("refused, exit code 2", "had finished", "other ends", "older version served", "something lost")
# Forked from a process without threads: a lock that a thread holds would stay held in its copy for ever
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["benchmarks.fencing"])


def race(folder: Path, races: int, seed: int) -> dict[int, Counter[int]]:
    """Let processes take over the lease of a killed one; return how often so many of them held it, by their number."""
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
        dying = PROCESSES.Process(target=_die_holding, args=(str(folder), name))
        dying.start()
        dying.join()
        assert dying.exitcode == -signal.SIGKILL
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
    return {n: counts for n, counts in held.items() if counts}


def _die_holding(folder: str, name: str) -> None:
    lease.hold(Store(folder), name, "the race").__enter__()
    os.kill(os.getpid(), signal.SIGKILL)


def _run(pipe: Connection) -> None:
    """Take part in races, until there are no more; hold what was taken until all have answered."""
    random.seed(os.getpid())
    for call in ("remove", "create_manifest", "read_manifest", "write_manifest", "children"):
        setattr(Store, call, _slowed(getattr(Store, call)))
    while (job := pipe.recv()) is not None:
        folder, name, at = job
        while time.monotonic() < at:
            pass
        try:
            with lease.hold(Store(folder), name, "the race"):
                pipe.send(True)
                pipe.recv()
        except BusyError:
            pipe.send(False)
            pipe.recv()


def _slowed(call: Callable[..., Any]) -> Callable[..., Any]:
    """Make a call last some milliseconds, so that those of all processes mix."""

    def slow(*args: Any, **options: Any) -> Any:
        time.sleep(random.random() * 0.004)
        return call(*args, **options)

    return slow


class State(NamedTuple):
    """What is in a work directory: the served version, all versions, those that must stay, damage, and all files."""

    served: str
    versions: set[str]
    needed: set[str]
    damage: set[str]
    files: set[str]


def state_of(work: Path) -> State:
    versions = Versions(Store(str(work)))
    every = versions.all()
    return State(
        versions.find("LATEST").name,
        {version.name for version in every},
        {version.name for version in every if version.served or version.tags},
        set(versions.damaged(full=True)),
        {path for path in versions.work.sizes() if "leases/" not in path and "/." not in f"/{path}"},
    )


def kinds_of(second: str, code: int | None, told: str, before: State, after: State) -> list[str]:
    """Return how the first host ended, and what it did, by the states before it went on and at its end."""
    refused = code == 2 and "has taken over" in told
    kinds = [KINDS[0] if refused else KINDS[1] if code in (0, 3, 6) else KINDS[2]]
    if second == "rollback" and code == 0:  # it takes over the lease of versions: the night goes on, and may end later
        older, lost = parse_number(after.served) < parse_number(before.served), before.needed - after.versions
    else:
        older, lost = after.served != before.served, before.files - after.files
    return kinds + [kind for kind, is_so in zip(KINDS[3:], (older, lost or after.damage), strict=True) if is_so]


class Trials:
    """A work directory after some nights, of which each trial has a copy."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._text, self._later = folder / "text", folder / "later"
        for day in range(NIGHTS + 2):
            write_day(self._later if day > NIGHTS else self._text, day)
            if day < NIGHTS:
                assert night(folder / "work", [self._text]) == 0

    def trial(self, first: str, second: str, point: int) -> tuple[list[str], str] | None:
        """Stop the first host at its n-th point; return what it did, in kinds and in words, or None after its last."""
        work = self._folder / "trial"
        shutil.copytree(self._folder / "work", work)
        paused = self._start(first, "first", work, point)
        try:
            if not _has_stopped(paused):
                return None
            other = self._start(second, "second", work, 0)
            other.join()
            before = state_of(work)
            psutil.Process(paused.pid).send_signal(signal.SIGCONT)
            paused.join()
            told, code = self._said("first"), paused.exitcode
            kinds = kinds_of(second, code, told, before, state_of(work))
        finally:
            paused.kill()
            paused.join()
            shutil.rmtree(work)
        if other.exitcode not in ((0, 2) if first == "gc" else (0, 3)):  # what gc deletes, nobody can publish
            kinds.append(KINDS[2])
            told += self._said("second")
        return kinds, f"exit code {code}: {told}"

    def _start(self, operation: str, host: str, work: Path, point: int) -> BaseProcess:
        process = PROCESSES.Process(target=self._act, args=(operation, host, work, point))
        process.start()
        return process

    def _said(self, host: str) -> str:
        return (self._folder / f"{host}.said").read_text()

    def _act(self, operation: str, host: str, work: Path, point: int) -> None:
        """Do an operation as a command of another machine does, and write what it says to a file."""
        for name, value in {**FAST, "_get_machine": lambda: host}.items():
            assert hasattr(lease, name), name
            setattr(lease, name, value)
        stop_at(point)
        said = (self._folder / f"{host}.said").open("w")
        with said as out, redirect_stdout(out), redirect_stderr(out), one_sentence():
            raise SystemExit(self._do(operation, work))

    def _do(self, operation: str, work: Path) -> int:
        versions = Versions(Store(str(work)))
        names = [version.name for version in versions.all()]
        match operation.split():
            case ["night"]:
                return night(work, [self._text])
            case ["later", "night"]:
                return night(work, [self._text, self._later])
            case ["publish", number]:
                versions.publish(names[int(number) - 1])
            case ["rollback"]:
                versions.rollback()
            case ["tag", number]:
                versions.tag(names[int(number) - 1], "stable")
            case ["gc"]:
                versions.gc(keep=1, min_age=0)
            case ["index"]:
                build_index(str(work), threads=1)
        return 0


def _has_stopped(process: BaseProcess) -> bool:
    """Wait until a process has stopped itself; return False if it has ended."""
    while process.is_alive():
        with suppress(psutil.NoSuchProcess):
            if psutil.Process(process.pid).status() == psutil.STATUS_STOPPED:
                return True
        time.sleep(0.01)
    return False


def stop_at(point: int) -> None:
    """Stop this process at a point: before a write or deletion, or after the check of its lease."""
    passed, change = 0, Store._change

    def reach() -> None:
        nonlocal passed
        passed += 1
        if passed == point:
            # To this thread: a signal to the process may stop another one first, while this one goes on and writes
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)

    def stopping(self: Store, function: Callable[..., Any], *args: Any, name: str = "") -> Any:
        if "/leases" in self.url:
            return change(self, function, *args, name=name)

        def late(*args: Any) -> Any:
            reach()
            return function(*args)

        reach()
        return change(self, late, *args, name=name)

    Store._change = stopping  # type: ignore[method-assign]


def night(work: Path, folders: list[Path]) -> int:
    """Retrain on the files of folders; return the exit code."""
    inputs = [f"{folder}/*.txt" for folder in folders]
    with one_thread() as client:
        summary = retrain(
            inputs,
            work=work,
            params=PARAMS,
            resources=RESOURCES,
            client=client,
            listener=None,
            policy=Policy(keep=2),
            gates=Gates(min_stability=None, min_kept=None),
        )
    if summary.outcome not in (Outcome.PUBLISHED, Outcome.NOTHING_NEW):
        print(summary.message)
    return int(summary.outcome)


def measure(session: Session) -> None:
    options = session.options
    session.text = "days of 150 sentences of ten words of five topics, drawn at random"
    table = session.table("Races for the lease of a killed holder", ("races", "holders at once, least", "most"))
    for n, counts in race(session.fresh("races"), options.races, options.seed).items():
        table.row(f"{n} processes", counts.total(), min(counts), max(counts))
        if counts.keys() != {1}:
            session.wrong(f"{n} processes had not one holder: {dict(counts)}")
    table = session.table("Hosts that were paused while another one took over", ("pauses", *KINDS))
    trials = Trials(session.fresh("pauses"))
    for first, second in SCENES:
        if options.scenes and first.split()[0] not in options.scenes:
            continue
        points, found, point = 0, Counter[str](), 1
        while (ended := trials.trial(first, second, point)) is not None:
            points, (kinds, told) = points + 1, ended
            found.update(kinds)
            if {*kinds} & {*KINDS[2:]}:
                session.wrong(f"{first} paused at point {point} by {second}: {kinds}, {told}")
            point += options.every
        table.row(f"{first}, the other: {second}", points, *(found[kind] for kind in KINDS))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--races", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=1, help="pause at every n-th point only")
    first = sorted({first.split()[0] for first, _ in SCENES})
    parser.add_argument("--scenes", nargs="*", default=[], choices=first, help="what the paused host does; all if none")


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/store", "daskw2v/models", "daskw2v/retraining"),
    Smoke({"races": 8, "every": 6, "scenes": ["publish", "gc"]}, ("processes", "paused")),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
