"""A second night that is killed at each stage and at random moments, and called again: the same version, bit by bit?"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.nightly.nights import Report
from benchmarks.survival.client import digest
from daskw2v.models.vectors import Vectors
from daskw2v.models.versions import Versions
from daskw2v.retraining.outcome import Outcome

STAGES = ("encode", "vocabulary", "train", "judge", "publish")
DEADLINE = 300.0  # seconds of a command
TRIES = 3
ROOT = Path(__file__).parents[2]
DONE = (Outcome.PUBLISHED, Outcome.NOTHING_NEW)


class Moment(NamedTuple):
    """When a command is killed, and whether its workers are: as it says that a stage begins, or after some seconds."""

    stage: str | None
    workers: bool
    seconds: float = DEADLINE

    @property
    def name(self) -> str:
        when = "at random" if self.stage is None else self.stage
        return f"{when}, {'with its workers' if self.workers else 'alone'}"


class Fate(NamedTuple):
    """What became of a night: seconds until it was killed, None if it ended before; its last line; exit codes after."""

    seconds: float | None
    said: str
    codes: list[int]


def crashes(
    folder: Path,
    texts: tuple[bytes, bytes],
    values: Mapping[str, Any],
    report: Report,
    stages: Iterable[str] = STAGES,
    moments: int = 6,
) -> None:
    """Kill second nights, each in a copy of what the first one left.

    Parameters
    ----------
    folder
        Where text and work directories lie.
    texts
        Of the first and of the second day.
    values
        What the commands' TOML file says; its tables last.
    report
        Where rows go, and what is not as it should be.
    stages
        At each of these two nights are killed: one with its workers, one without.
    moments
        How many more are killed at random moments.
    """
    bench = Bench(folder, texts, values)
    whole, seconds = bench.undisturbed()
    draws = random.Random(0)
    struck = [Moment(stage, workers) for stage in stages for workers in (True, False)]
    struck += [Moment(None, number % 2 == 0, draws.uniform(0, seconds)) for number in range(moments)]
    table = report.table(
        f"Nights that were killed and called again (one that was not took {seconds:.1f} s)",
        ("s until killed", "last line", "exit codes of the calls after", "same version", "same bits"),
    )
    for moment in struck:
        fate, found = bench.strike(moment)
        same = [a == b for a, b in zip(found, whole, strict=True)]
        said = [" ".join(map(str, fate.codes)), *("yes" if one else "NO" for one in same)]
        table.row(moment.name, fate.seconds, fate.said, *said)
        missed = fate.seconds is None and moment.stage is not None  # by chance a night may have ended before
        if missed or fate.codes[-1] not in DONE or not all(same):
            report.problems.append(f"killed {moment.name}: {said}")


class Bench:
    """A first night, and copies of what it left."""

    def __init__(self, folder: Path, texts: tuple[bytes, bytes], values: Mapping[str, Any]) -> None:
        self._text, self._first, self._second = (folder / name for name in ("text", "first", "second"))
        self._said, self._config = folder / "said.txt", folder / "night.toml"
        self._config.write_text("".join(_toml(values)))
        self._text.mkdir()
        for day, text in enumerate(texts):
            (self._text / f"{day}.txt").write_bytes(text)
            if not day:
                self._call(self._first)

    def undisturbed(self) -> tuple[tuple[str, str], float]:
        """Return name and digest of what a second night serves, and its seconds."""
        began = time.monotonic()
        with self._copy() as work:
            code = self._call(work)
            if code:
                sys.exit(f"Nothing was killed, and the exit code is {code}: {self._last_line()}")
            return _served(work), time.monotonic() - began

    def strike(self, moment: Moment) -> tuple[Fate, tuple[str, str]]:
        """Kill a night, call it again until it is done, and return what became of it and what is served."""
        with self._copy() as work:
            began, codes = time.monotonic(), list[int]()
            with self._started(work) as process:
                self._await(process, moment)
                seconds = time.monotonic() - began if process.poll() is None else None
                said = self._last_line()
                if moment.workers:
                    _kill_group(process)
                process.kill()
                process.wait()
                while len(codes) < TRIES and (not codes or codes[-1] not in DONE):
                    codes.append(self._call(work))  # while workers that were left are still there
            return Fate(seconds, said, codes), _served(work)

    @contextmanager
    def _copy(self) -> Iterator[Path]:
        shutil.copytree(self._first, self._second)
        yield self._second
        shutil.rmtree(self._second)

    @contextmanager
    def _started(self, work: Path) -> Iterator["subprocess.Popen[bytes]"]:
        """Give a command whose process group does not outlive the block."""
        words = ["-m", "daskw2v", "retrain", f"{self._text}/*.txt", "--work", work, "--config", self._config]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with self._said.open("wb") as said:  # no pipe: workers that are left would hold it
            process = subprocess.Popen(
                [sys.executable, *map(str, words)], stdout=subprocess.DEVNULL, stderr=said, start_new_session=True,
                env=environment,
            )  # fmt: skip
        try:
            yield process
        finally:
            _kill_group(process)
            process.wait()

    def _call(self, work: Path) -> int:
        with self._started(work) as process:
            return process.wait(DEADLINE)

    def _await(self, process: "subprocess.Popen[bytes]", moment: Moment) -> None:
        """Return at the moment, or when the process has ended."""
        began = time.monotonic()
        while process.poll() is None and time.monotonic() - began < moment.seconds:
            if moment.stage is not None and f"\n{moment.stage}:" in f"\n{self._said.read_text()}":
                return
            time.sleep(0.005)

    def _last_line(self) -> str:
        return (self._said.read_text().splitlines() or ["nothing"])[-1][:60]


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):  # all have ended
        os.killpg(process.pid, signal.SIGKILL)


def _toml(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield f"[{name}]\n"
            yield from _toml(value)
        else:
            yield f"{name} = {json.dumps(value)}\n"


def _served(work: Path) -> tuple[str, str]:
    """Return name and digest of the version that is served."""
    return Versions.open(work).find("LATEST").name, digest(Vectors.open(work))
