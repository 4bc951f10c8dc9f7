"""The faults: what is done to a run at a moment."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from benchmarks.survival.flaky import ALONE, CLOCK, LIMITS, MOODS, MUTE, set_mood
from benchmarks.survival.trial import Trial

SPOILT = ("first byte", "middle byte", "last byte", "cut short", "emptied", "lost")
S3_FAULTS = {"503": "fail", "500": "error", "slow": "slow", "no answer": "stall", "answers are cut": "half",
             "puts are done twice": "twice", "gone": "vanish"}  # fmt: skip
_ILL = 4.0  # seconds that a store is ill, or a worker stands still


class Fault(NamedTuple):
    """What happens, where the run's work lies (by protocol, or on a disk that can be full), and its cluster."""

    strike: Callable[[Trial], None]
    protocol: str = ""
    full: bool = False
    adaptive: bool = False


def kill_worker(trial: Trial) -> None:
    trial.cluster.kill_worker(trial.draws.randrange(2))


def kill_all_workers(trial: Trial) -> None:
    trial.cluster.kill_workers()


def kill_nanny(trial: Trial) -> None:
    trial.cluster.kill_nanny(trial.draws.randrange(2))


def kill_worker_again_and_again(trial: Trial) -> None:
    def go_on() -> None:
        for _ in range(3):
            kill_worker(trial)
            time.sleep(trial.draws.uniform(0.5, 3))

    trial.meanwhile(go_on)


def kill_scheduler(trial: Trial) -> None:
    trial.cluster.kill_scheduler()


def kill_client(trial: Trial) -> None:
    trial.kill_client()


def kill_everything(trial: Trial) -> None:
    trial.cluster.kill_all()
    trial.kill_client()


def come_and_go(trial: Trial) -> None:
    """A cluster that grows and shrinks: one worker comes, another leaves, and so on."""

    def go_on() -> None:
        for _ in range(3):
            trial.cluster.add_worker()
            time.sleep(2)
            trial.cluster.retire(0)
            time.sleep(1)

    trial.meanwhile(go_on)


def retire_worker(trial: Trial) -> None:
    """Retire a worker by the scheduler, as those are that are announced to leave; another comes."""
    number = trial.draws.randrange(2)

    def go_on() -> None:
        trial.cluster.retire_as_asked(number)
        trial.cluster.add_worker()

    trial.meanwhile(go_on)


def take_worker_away(trial: Trial) -> None:
    """A host of a spot market: the worker gets SIGTERM and is killed a little later; another comes."""
    number, grace = trial.draws.randrange(2), trial.draws.uniform(0.1, 2.0)

    def go_on() -> None:
        trial.cluster.take_away(number, grace)
        trial.cluster.add_worker()

    trial.meanwhile(go_on)


def adapt(trial: Trial) -> None:
    """Let the limits of the run's own cluster change."""
    set_mood(trial.mood, LIMITS, 4 * _ILL)


def mute(mood: str) -> Callable[[Trial], None]:
    """Return what makes a worker give no data to others, while the scheduler hears of it as before."""

    def strike(trial: Trial) -> None:
        set_mood(trial.mood, mood, 2 * _ILL, workers=trial.cluster.workers(trial.draws.randrange(2)))

    return strike


def set_clock(trial: Trial) -> None:
    """Let all clocks but the scheduler's jump, and jump back."""
    offset = trial.draws.choice((-86_400, -3_600, -60, 60, 3_600, 86_400))
    trial.notes.append(f"{offset} s")
    set_mood(trial.mood, CLOCK, 2 * _ILL, offset=offset)


def trouble(kind: str) -> Callable[[Trial], None]:
    """Return what makes the object store ill: all requests, or one in three, for some seconds."""

    def strike(trial: Trial) -> None:
        assert trial.store is not None
        trial.store.be(kind, _ILL)

    return strike


def nothing(trial: Trial) -> None:
    """No fault: what the run lies on is different."""


def freeze_worker(trial: Trial) -> None:
    number = trial.draws.randrange(2)
    trial.meanwhile(lambda: trial.cluster.freeze(number, _ILL))


def spoil(trial: Trial) -> None:
    """Kill the client, and damage a file of the work directory before it begins again."""
    trial.kill_client()
    time.sleep(0.5)
    files = trial.files()
    if files:
        path, how = trial.draws.choice(files), trial.draws.choice(SPOILT)
        trial.notes.append(f"{how} of {path.relative_to(trial.work)}")
        with suppress(FileNotFoundError):  # workers go on for a moment
            spoil_file(path, how)


def spoil_file(path: Path, how: str) -> None:
    content = bytearray(path.read_bytes())
    if how == "lost" or not content:
        path.unlink()
    elif how in ("cut short", "emptied"):
        path.write_bytes(content[: len(content) // 2 if how == "cut short" else 0])
    else:
        content[{"first byte": 0, "middle byte": len(content) // 2, "last byte": -1}[how]] ^= 0x20
        path.write_bytes(content)


def spoil_running(trial: Trial) -> None:
    """Damage a file while the run goes on."""
    files = trial.files()
    if files:
        path = trial.draws.choice(files)
        trial.notes.append(f"middle byte of {path.relative_to(trial.work)}")
        with suppress(FileNotFoundError):
            spoil_file(path, "middle byte")


def be_ill(mood: str) -> Callable[[Trial], None]:
    def strike(trial: Trial) -> None:
        set_mood(trial.mood, mood, _ILL, 1.0 if mood == "is gone" else 0.3)

    return strike


def fill_disk(trial: Trial) -> None:
    """Fill the disk for some seconds."""
    stuffing = trial.work / "stuffing"

    def go_on() -> None:
        with suppress(OSError), stuffing.open("wb") as file:
            while True:
                file.write(bytes(1 << 20))
        time.sleep(_ILL)
        stuffing.unlink(missing_ok=True)

    trial.work.mkdir(exist_ok=True)
    trial.meanwhile(go_on)


def run_twice(trial: Trial) -> None:
    """Give the same command a second time while the first runs."""
    trial.others.append(trial.command())


FAULTS: Mapping[str, Fault] = {
    "a worker is killed": Fault(kill_worker),
    "a worker is killed three times": Fault(kill_worker_again_and_again),
    "all workers are killed": Fault(kill_all_workers),
    "a nanny is killed with its worker": Fault(kill_nanny),
    "the scheduler is killed": Fault(kill_scheduler),
    "the client is killed": Fault(kill_client),
    "client and cluster are killed": Fault(kill_everything),
    "workers come and go": Fault(come_and_go),
    "a worker stands still": Fault(freeze_worker),
    "client killed, a file damaged": Fault(spoil),
    "a file damaged meanwhile": Fault(spoil_running),
    "a worker is retired": Fault(retire_worker),
    "a worker is taken away after a signal": Fault(take_worker_away),
    "an adaptive cluster shrinks and grows": Fault(adapt, adaptive=True),
    **{f"a worker {mood}": Fault(mute(mood)) for mood in (ALONE, MUTE)},
    "clocks jump": Fault(set_clock),
    **{f"the store {mood}": Fault(be_ill(mood), "flaky") for mood in MOODS},
    "names are folded": Fault(nothing, "folded"),
    **{f"S3: {title}": Fault(trouble(kind), "s3") for title, kind in S3_FAULTS.items()},
    "the disk is full": Fault(fill_disk, full=True),
    "the same command twice": Fault(run_twice),
}


def small_disk(folder: Path, megabytes: int) -> bool:
    """Mount a small filesystem in memory; tell whether that is allowed."""
    folder.mkdir(parents=True, exist_ok=True)
    if os.geteuid() or shutil.which("mount") is None:
        return False
    options = ["-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    return subprocess.run(["mount", *options], check=False, capture_output=True).returncode == 0


def unmount(folder: Path) -> None:
    subprocess.run(["umount", "--lazy", str(folder)], check=False, capture_output=True)
