"""One run with one fault in it: begun, disturbed, begun again where it stopped, and compared."""

import json
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from benchmarks.survival.client import ADAPTIVE, DONE, FAILED
from benchmarks.survival.cluster import Cluster
from benchmarks.survival.flaky import MOOD
from benchmarks.survival.s3 import ObjectStore

DEADLINE = 600.0  # seconds for a run with all that is done again; Dask gives up a silent worker after 300
TRIES = 6  # that the same command is given


@dataclass(frozen=True)
class Moment:
    """When a fault comes: at a share of a stage, as it is told; or after so many seconds of the run."""

    stage: str
    share: float = 0.0
    seconds: float | None = None


@dataclass
class Trial:
    """What a fault needs to know.

    Parameters
    ----------
    cluster, text, work
        Where the run is, what it reads, and where it writes: a folder, and its URL as the run is given it.
    params, resources
        As JSON values.
    draws
        What the fault decides by.
    store
        The object store that the work lies in.
    index, adaptive
        Whether an index is built, and whether the run starts an adaptive cluster of its own.
    """

    cluster: Cluster
    text: str
    work: Path
    url: str
    params: dict[str, Any]
    resources: dict[str, Any]
    draws: random.Random
    mood: Path
    store: ObjectStore | None = None
    index: bool = False
    adaptive: bool = False
    process: "subprocess.Popen[str] | None" = None
    killed: bool = False
    others: "list[subprocess.Popen[str]]" = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    going_on: list[threading.Thread] = field(default_factory=list)

    def kill_client(self) -> None:
        assert self.process is not None
        self.killed = True
        self.process.send_signal(signal.SIGKILL)

    def files(self) -> list[Path]:
        """Return what the run has written, but for what is being written."""
        found = [Path(folder) / name for folder, _, names in os.walk(self.work) for name in names]
        return sorted(path for path in found if path.name[0] != "." and not {"leases", "models"} & set(path.parts))

    def meanwhile(self, function: Callable[[], None]) -> None:
        """Call what goes on with a fault while the run goes on; the trial does not end before it does."""
        self.going_on.append(threading.Thread(target=function, daemon=True))
        self.going_on[-1].start()

    def end(self) -> list[str]:
        """Return what the commands say at last that a fault gave besides; remove what the run wrote."""
        said = []
        for thread in self.going_on:  # or it would disturb the trial after this one, too
            thread.join()
        for process in self.others:
            try:
                out, errors = process.communicate(timeout=DEADLINE)
                said.append((out or errors or " ").strip().splitlines()[-1])
            except subprocess.TimeoutExpired:
                process.kill()
                said.append("hung")
        shutil.rmtree(self.work, ignore_errors=True)
        self.mood.unlink(missing_ok=True)
        if self.store is not None:
            self.store.end()
        return said

    def command(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [
                sys.executable, "-m", "benchmarks.survival.client", ADAPTIVE if self.adaptive else self.cluster.address,
                self.text, self.url, json.dumps(self.params), json.dumps(self.resources), *["index"] * self.index,
            ],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, MOOD: str(self.mood)},
        )  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What became of a run: its digest, or what it said at last; seconds in all; commands given."""

    digest: str | None
    said: str
    seconds: float
    commands: int
    struck: bool


def run(trial: Trial, fault: Callable[[Trial], None] | None = None, moment: Moment | None = None) -> Outcome:
    """Give the same command until it is done, with a fault in the first."""
    began, struck = time.monotonic(), fault is None
    said = ""
    for number in range(1, TRIES + 1):
        trial.process, trial.killed = trial.command(), False
        errors: list[str] = []
        lines = _lines(trial.process, errors)
        while True:
            left = DEADLINE - (time.monotonic() - began)
            wait = left
            if not struck and moment is not None and moment.seconds is not None:
                wait = min(left, max(0.0, moment.seconds - (time.monotonic() - began)))
            line = _next(lines, wait)
            if line is None and left - wait <= 0:
                trial.kill_client()
                return Outcome(None, f"hung; last: {said}", time.monotonic() - began, number, struck)
            if line == "":
                break
            said = line or said
            if not struck and moment is not None and _is_due(moment, line, time.monotonic() - began):
                struck = True
                assert fault is not None
                fault(trial)
        trial.process.wait()
        if said.startswith(DONE):
            return Outcome(said.split()[1], said, time.monotonic() - began, number, struck)
        if not said.startswith(FAILED) and not trial.killed:
            return Outcome(None, f"died: {''.join(errors)[-400:]}", time.monotonic() - began, number, struck)
        trial.notes.append(said)
        trial.cluster.mend()
    return Outcome(None, f"failed {TRIES} times: {said}", time.monotonic() - began, TRIES, struck)


def _is_due(moment: Moment, line: str | None, seconds: float) -> bool:
    if moment.seconds is not None:
        return seconds >= moment.seconds
    if line is None or line.startswith((DONE, FAILED)):
        return False
    stage, share = line.split()[:2]
    return stage == moment.stage and float(share) >= moment.share


def _lines(process: "subprocess.Popen[str]", errors: list[str]) -> "queue.Queue[str]":
    """Return a queue of what a process says; "" is its end."""
    found: queue.Queue[str] = queue.Queue()

    def listen(stream: IO[str]) -> Iterator[str]:
        yield from iter(stream.readline, "")

    def read() -> None:
        assert process.stdout is not None
        for line in listen(process.stdout):
            found.put(line.strip() or " ")
        found.put("")

    def read_errors() -> None:
        assert process.stderr is not None
        errors.extend(listen(process.stderr))

    for target in (read, read_errors):
        threading.Thread(target=target, daemon=True).start()
    return found


def _next(lines: "queue.Queue[str]", seconds: float) -> str | None:
    try:
        return lines.get(timeout=max(0.01, seconds))
    except queue.Empty:
        return None
