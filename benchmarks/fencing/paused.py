"""Two hosts in one work directory: the first is stopped at a write, the second takes over, the first goes on."""

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, cast

import numpy as np

from benchmarks.common import one_thread
from benchmarks.fencing.hosts import start
from daskw2v.cli.exits import one_sentence
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.models.index.build import build_index
from daskw2v.models.naming import number_of
from daskw2v.models.versions import Versions
from daskw2v.retraining.gates import Gates
from daskw2v.retraining.outcome import Outcome
from daskw2v.retraining.policy import Policy
from daskw2v.retraining.retrain import retrain
from daskw2v.store import lease
from daskw2v.store.storage import Store

BEAT, EXPIRY, LOOK = 0.1, 1.0, 0.02  # seconds, instead of 10, 60 and 1
PARAMS = Params(vector_size=8, min_count=2, epochs=1, rounds_per_epoch=1, alpha=0.05)
RESOURCES = Resources(threads=1, block_size="64 KiB")
_NIGHTS = 3


class Scene(NamedTuple):
    """What the two hosts do.

    Parameters
    ----------
    first, second
        Names of operations. The first host is stopped in its own.
    """

    first: str
    second: str


SCENES = (
    Scene("night", "night"),
    Scene("night", "later night"),
    Scene("night", "rollback"),
    Scene("publish 1", "publish 2"),
    Scene("rollback", "publish 1"),
    Scene("tag 1", "gc"),
    Scene("gc", "tag 1"),
    Scene("gc", "publish 1"),
    Scene("index", "index"),
)


class State(TypedDict):
    """What is in a work directory: the served version and its number, versions, those that must stay, damage, files."""

    served: str
    number: int
    versions: list[str]
    needed: list[str]
    damage: list[str]
    files: list[str]


@dataclass
class Line:
    """What became of the trials of a scene; `refused` ended with exit code 2, and said who had taken over."""

    scene: Scene
    points: int = 0
    refused: int = 0
    finished: int = 0
    other_ends: list[str] = field(default_factory=list)
    older: int = 0
    lost: int = 0

    def add(self, point: int, code: int, told: str, before: State, after: State) -> None:
        """Add a trial: how the first host ended, and the state before it went on, and at its end."""
        self.points += 1
        if code == 2 and "has taken over" in told:
            self.refused += 1
        elif code in (0, 3):
            self.finished += 1
        else:
            self.other_ends.append(f"first host, point {point}, exit code {code}: {told}")
        # A rollback takes over the lease of the versions, but not that of the night, which may end after it
        goes_on = self.scene.second == "rollback" and code == 0
        older = after["number"] < before["number"] if goes_on else after["served"] != before["served"]
        lost = set(before["needed"]) - set(after["versions"]) if goes_on else set(before["files"]) - set(after["files"])
        self.older += older
        self.lost += bool(lost or after["damage"])
        if older or lost or after["damage"]:
            self.other_ends.append(f"point {point}: {sorted(lost)[:5]} {after['damage']} {before['served']} {told}")


class Trials:
    """A work directory after some nights, of which each trial has a copy."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._number = folder, 0
        (folder / "text").mkdir()
        for day in range(_NIGHTS):
            write_day(folder / "text", day)
            assert _run(partial(_night, folder / "work", folder / "text", folder / "nothing")) == 0
        for day in (_NIGHTS, _NIGHTS + 1):
            later = folder / ("text" if day == _NIGHTS else "later")
            later.mkdir(exist_ok=True)
            write_day(later, day)

    def trial(self, line: Line, point: int) -> bool:
        """Stop the first host at its n-th point; return whether it has so many."""
        self._number += 1
        work = self._folder / f"trial{self._number}"
        shutil.copytree(self._folder / "work", work)
        said = work.with_suffix(".said")
        first = start("first", partial(self._act, line.scene.first, work, said, point))
        try:
            if not first.wait_for_stop():
                return False
            second = start("second", partial(self._act, line.scene.second, work, work.with_suffix(".other"), 0))
            # What the first deletes, the second cannot publish or tag
            if second.wait() not in ((0, 2) if line.scene.first == "gc" else (0, 3)):
                line.other_ends.append(f"second host, point {point}: {work.with_suffix('.other').read_text()}")
            before = self._state(work)
            first.go_on()
            code = first.wait()
        finally:
            first.kill()
        line.add(point, code, said.read_text(), before, self._state(work))
        shutil.rmtree(work)
        return True

    def _act(self, operation: str, work: Path, said: Path, point: int) -> int:
        """Do an operation as a command does, and write its error to a file."""
        lease.BEAT, lease.EXPIRY, lease.LOOK = BEAT, EXPIRY, LOOK
        stop_at(point)
        with said.open("w") as out, redirect_stdout(out), redirect_stderr(out), one_sentence():
            return self._do(operation, work)
        raise AssertionError  # it exits

    def _do(self, operation: str, work: Path) -> int:
        versions = Versions(Store(str(work)))
        names = [version.name for version in versions.all()]
        match operation.split():
            case ["night"]:
                return _night(work, self._folder / "text", self._folder / "nothing")
            case ["later", "night"]:
                return _night(work, self._folder / "text", self._folder / "later")
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

    def _state(self, work: Path) -> State:
        """Return what a process that comes later finds: what is served, tags, versions, and damage."""
        place = work.with_suffix(".state")
        assert _run(partial(_look, work, place)) == 0
        return cast("State", json.loads(place.read_text()))


def stop_at(point: int) -> None:
    """Stop this process at a point: before a write or deletion, or after the check of its lease."""
    passed, change = 0, Store._change

    def reach() -> None:
        nonlocal passed
        passed += 1
        if passed == point:
            os.kill(os.getpid(), signal.SIGSTOP)

    def stopping(self: Store, function: Callable[..., Any], *args: Any, name: str = "") -> Any:
        if "/leases" in self.url:
            return change(self, function, *args, name=name)

        def late(*args: Any) -> Any:
            reach()
            return function(*args)

        reach()
        return change(self, late, *args, name=name)

    Store._change = stopping  # type: ignore[method-assign]


def _night(work: Path, text: Path, more: Path) -> int:
    with one_thread() as client:
        inputs = [f"{folder}/*.txt" for folder in (text, more) if folder.exists()]
        summary = retrain(
            inputs, work=work, params=PARAMS, resources=RESOURCES, client=client, listener=None,
            policy=Policy(keep=2), gates=Gates(min_stability=None, min_kept=None),
        )  # fmt: skip
    if summary.outcome not in (Outcome.PUBLISHED, Outcome.NOTHING_NEW):
        print(summary.message)
    return int(summary.outcome)


def _look(work: Path, place: Path) -> int:
    versions = Versions(Store(str(work)))
    every = versions.all()
    served = versions.find("LATEST")
    files = [path for path in versions.work.sizes() if not (path.startswith("leases/") or "/." in f"/{path}")]
    found: State = {
        "served": served.name,
        "number": number_of(served.name),
        "versions": [version.name for version in every],
        "needed": [version.name for version in every if version.served or version.tags],
        "damage": sorted(versions.damaged(full=True)),
        "files": [path for path in files if "/leases/" not in path],
    }
    place.write_text(json.dumps(found))
    return 0


def _run(work: Callable[[], int]) -> int:
    """Call a function in a process on a new host, and return its exit code."""
    return start("looks", work).wait()


def write_day(folder: Path, day: int, sentences: int = 150, words: int = 60) -> None:
    """Write a file of text: sentences of words of five topics, with a word of that day."""
    rng = np.random.default_rng(day)
    lines = []
    for topic in rng.integers(0, 5, sentences):
        ids = topic * (words // 5) + rng.integers(0, words // 5, 10)
        lines.append(" ".join([*(f"w{i}" for i in ids), f"day{day}"]))
    (folder / f"{day}.txt").write_text("\n".join(lines) + "\n")


def pauses(folder: Path, names: Sequence[str], every: int) -> Iterator[Line]:
    """Yield a line for each scene, after all its trials; of `names` of first operations, or all."""
    trials = Trials(folder)
    for scene in SCENES:
        if names and scene.first.split()[0] not in names:
            continue
        line, point = Line(scene), 1
        while trials.trial(line, point):
            point += every
        yield line
