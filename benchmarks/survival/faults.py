"""The faults: what is done to a run at a moment."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.survival.flaky import ALONE, FULL, MOODS, MUTE, set_mood
from benchmarks.survival.trial import Trial

SPOILT = ("first byte", "middle byte", "last byte", "cut short", "emptied", "lost")
S3_FAULTS = {
    "503": "fail",
    "500": "error",
    "slow": "slow",
    "no answer": "stall",
    "answers are cut": "half",
    "puts are done twice": "twice",
    "gone": "vanish",
}
_ILL = 4.0  # seconds that a store is ill, or a worker stands still
Strike = Callable[[Trial], None]


class Fault(NamedTuple):
    """What happens, and by which protocol the run's work lies there."""

    strike: Strike
    protocol: str = ""


def meanwhile(strike: Strike) -> Strike:
    """Return what does so while the run goes on."""
    return lambda trial: trial.meanwhile(partial(strike, trial))


def one(trial: Trial) -> int:
    """Draw a worker."""
    return trial.draws.randrange(2)


def kill_again_and_again(trial: Trial) -> None:
    for _ in range(3):
        trial.cluster.kill_workers(one(trial))
        time.sleep(trial.draws.uniform(0.5, 3))


def kill_everything(trial: Trial) -> None:
    trial.cluster.kill_all()
    trial.kill_client()


def come_and_go(trial: Trial) -> None:
    """A cluster that grows and shrinks: one worker comes, another leaves, and so on."""
    for _ in range(3):
        trial.cluster.add_worker()
        time.sleep(2)
        trial.cluster.take_away(0)


def retire(trial: Trial) -> None:
    """Retire a worker by the scheduler, as those are that are announced to leave; another comes."""
    trial.cluster.retire(one(trial))
    trial.cluster.add_worker()


def take_away(trial: Trial) -> None:
    """A host of a spot market: the worker gets SIGTERM and is killed a little later; another comes."""
    trial.cluster.take_away(one(trial), trial.draws.uniform(0.1, 2.0))
    trial.cluster.add_worker()


def mute(mood: str) -> Strike:
    """Return what makes a worker give no data to others, while the scheduler hears of it as before."""
    return lambda trial: set_mood(trial.mood, mood, 2 * _ILL, workers=trial.cluster.workers(one(trial)))


def be_ill(mood: str) -> Strike:
    return lambda trial: set_mood(trial.mood, mood, _ILL, 1.0 if mood == FULL else 0.3)


def trouble(kind: str) -> Strike:
    """Return what makes the object store ill: all requests, for some seconds."""

    def strike(trial: Trial) -> None:
        assert trial.store is not None
        trial.store.be(kind, _ILL)

    return strike


def spoil(trial: Trial) -> None:
    """Kill the client, and damage a file of the work directory before it begins again."""
    trial.kill_client()
    time.sleep(0.5)
    spoil_one(trial, trial.draws.choice(SPOILT))


def spoil_one(trial: Trial, how: str = "middle byte") -> None:
    if files := trial.files():
        path = trial.draws.choice(files)
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


FAULTS: Mapping[str, Fault] = {
    "a worker is killed": Fault(lambda trial: trial.cluster.kill_workers(one(trial))),
    "a worker is killed three times": Fault(meanwhile(kill_again_and_again)),
    "all workers are killed": Fault(lambda trial: trial.cluster.kill_workers()),
    "a nanny is killed with its worker": Fault(lambda trial: trial.cluster.kill_nanny(one(trial))),
    "the scheduler is killed": Fault(lambda trial: trial.cluster.kill_scheduler()),
    "the client is killed": Fault(lambda trial: trial.kill_client()),
    "client and cluster are killed": Fault(kill_everything),
    "workers come and go": Fault(meanwhile(come_and_go)),
    "a worker stands still": Fault(meanwhile(lambda trial: trial.cluster.freeze(one(trial), _ILL))),
    "client killed, a file damaged": Fault(spoil),
    "a file damaged meanwhile": Fault(spoil_one),
    "a worker is retired": Fault(meanwhile(retire)),
    "a worker is taken away after a signal": Fault(meanwhile(take_away)),
    **{f"a worker {mood}": Fault(mute(mood)) for mood in (ALONE, MUTE)},
    **{f"the store {mood}": Fault(be_ill(mood), "flaky") for mood in MOODS},
    "names are folded": Fault(lambda _: None, "folded"),
    **{f"S3: {title}": Fault(trouble(kind), "s3") for title, kind in S3_FAULTS.items()},
    "the same command twice": Fault(lambda trial: trial.others.append(trial.begin("other"))),
}
