"""One run with one fault in it: begun, disturbed, begun again where it stopped, and compared."""

import json
import math
import os
import random
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import fsspec

from benchmarks.records import ROOT
from benchmarks.survival.client import DONE, FAILED, Job
from benchmarks.survival.cluster import Cluster, free_port
from benchmarks.survival.flaky import MOOD

DEADLINE = 600.0  # seconds for a run with all that is done again; Dask gives up a silent worker after 300
TRIES = 6  # that the same command is given
_EVERY = 0.05  # seconds between looks at what a command says


class Command:
    """A client, and the file of what it says."""

    def __init__(self, job: Job, mood: Path, said: Path) -> None:
        self._said, self._errors, self.killed = said, said.with_suffix(".errors"), False
        words = [sys.executable, "-m", "benchmarks.survival.client", json.dumps(asdict(job))]
        environment = {**os.environ, MOOD: str(mood), "PYTHONPATH": str(ROOT)}
        with said.open("wb") as out, self._errors.open("wb") as errors:
            self._process = subprocess.Popen(words, stdout=out, stderr=errors, env=environment)

    def lines(self) -> list[str]:
        """Return all whole lines that it has said."""
        return self._said.read_text().rpartition("\n")[0].splitlines()

    def errors(self) -> str:
        return self._errors.read_text()[-400:]

    def runs(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self.killed = True
        self._process.kill()
        self._process.wait()

    def end(self, deadline: float) -> str:
        """Wait for its end; return its last line."""
        try:
            self._process.wait(deadline)
        except subprocess.TimeoutExpired:
            self.kill()
            return "hung"
        return (self.lines() or [f"died: {self.errors()}"])[-1]


class Moment(NamedTuple):
    """When a fault comes: at a share of a stage, as it is told; or after so many seconds of the run."""

    stage: str = ""
    share: float = 0.0
    seconds: float = math.inf

    def has_come(self, lines: list[str], seconds: float) -> bool:
        told = (line.split()[:2] for line in lines if not line.startswith((DONE, FAILED)))
        return seconds >= self.seconds or any(
            stage == self.stage and float(share) >= self.share for stage, share in told
        )


class ObjectStore:
    """An object store for one run: moto's server, which fails as it is told (`tests/hosts/object_store.py`)."""

    def __init__(self) -> None:
        port = free_port()
        self._url = f"http://127.0.0.1:{port}"
        program = [sys.executable, str(ROOT / "tests" / "hosts" / "object_store.py"), str(port)]
        self._process = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.options: dict[str, Any] = {
            "key": "a-key",
            "secret": "a-secret",
            "endpoint_url": self._url,
            "config_kwargs": {"connect_timeout": 3, "read_timeout": 3, "retries": {"total_max_attempts": 1}},
        }
        until = time.monotonic() + 60
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"No object store: {' '.join(program)} does not answer. Is moto[server] installed?")
            time.sleep(0.2)
        fsspec.filesystem("s3", **self.options, skip_instance_cache=True).mkdir("bucket")

    def _answers(self) -> bool:
        try:
            urllib.request.urlopen(self._url, timeout=10).close()
        except OSError:
            return False
        return True

    def be(self, kind: str, seconds: float) -> None:
        """Make a fault of `object_store.Fault`, for some seconds from the next request on."""
        fault = json.dumps({"kind": kind, "seconds": seconds}).encode()
        request = urllib.request.Request(f"{self._url}/-/faults", fault, method="PUT")
        urllib.request.urlopen(request, timeout=10).close()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


@dataclass
class Trial:
    """What a fault needs to know.

    Parameters
    ----------
    cluster, job
        Where the run is, and what it does.
    work
        The folder that it writes to.
    draws
        What the fault decides by.
    mood
        The file that `flaky` reads.
    store
        The object store that the work lies in.
    """

    cluster: Cluster
    job: Job
    work: Path
    draws: random.Random
    mood: Path
    store: ObjectStore | None = None
    commands: list[Command] = field(default_factory=list)
    others: list[Command] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    going_on: list[threading.Thread] = field(default_factory=list)

    def begin(self, kind: str = "said") -> Command:
        """Give the command."""
        said = self.mood.with_name(f"{self.work.name}-{kind}{len(self.commands)}.txt")
        return Command(replace(self.job, scheduler=self.cluster.address), self.mood, said)

    def kill_client(self) -> None:
        self.commands[-1].kill()

    def files(self) -> list[Path]:
        """Return what the run has written, but for what is being written."""
        found = [Path(folder) / name for folder, _, names in os.walk(self.work) for name in names]
        return sorted(path for path in found if path.name[0] != "." and not {"leases", "models"} & set(path.parts))

    def meanwhile(self, function: Callable[[], object]) -> None:
        """Call what goes on with a fault while the run goes on; the trial does not end before it does."""
        self.going_on.append(threading.Thread(target=function, daemon=True))
        self.going_on[-1].start()

    def end(self) -> list[str]:
        """Return what the commands say at last that a fault gave besides; remove what the run wrote."""
        for thread in self.going_on:  # or it would disturb the trial after this one, too
            thread.join()
        said = [other.end(DEADLINE) for other in self.others]
        shutil.rmtree(self.work, ignore_errors=True)
        self.mood.unlink(missing_ok=True)
        if self.store is not None:
            self.store.end()
        return said


class Outcome(NamedTuple):
    """What became of a run: its bits, None if it failed; what it said at last; seconds in all; commands given."""

    bits: str | None
    said: str
    seconds: float
    commands: int
    struck: bool


def run(trial: Trial, fault: Callable[[Trial], None] | None = None, moment: Moment | None = None) -> Outcome:
    """Give the same command until it is done, with a fault in the first."""
    began, struck, said = time.monotonic(), fault is None, "nothing"

    def outcome(bits: str | None, said: str) -> Outcome:
        return Outcome(bits, said, time.monotonic() - began, len(trial.commands), struck)

    for _ in range(TRIES):
        trial.commands.append(command := trial.begin())
        while command.runs():
            seconds = time.monotonic() - began
            if seconds > DEADLINE:
                command.kill()
                return outcome(None, f"hung; last: {(command.lines() or [said])[-1]}")
            if fault and moment and not struck and moment.has_come(command.lines(), seconds):
                struck = True
                fault(trial)
            time.sleep(_EVERY)
        said = (command.lines() or [said])[-1]
        if said.startswith(DONE):
            return outcome(said.split()[1], said)
        if not said.startswith(FAILED) and not command.killed:
            return outcome(None, f"died: {command.errors()}")
        trial.notes.append(said)
        trial.cluster.mend()
    return outcome(None, f"failed {TRIES} times: {said}")
