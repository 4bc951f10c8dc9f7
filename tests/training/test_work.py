"""A strategy's work: memory, seconds, estimate and choice come from this one description."""

import math
from dataclasses import replace

import pytest

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.training.estimates.memory import estimate
from daskw2v.training.estimates.seconds import MACHINE_B, TERMS, find_constants, forecast
from daskw2v.training.loop.work import Moment, Phase, Work
from daskw2v.training.preparation.choice import make_candidate
from daskw2v.training.sizes import Text, Workers
from daskw2v.training.strategies import STRATEGIES

GB = 1 << 30
TEXT = Text(10**6, 10**4, 10**6, 10**4, 1, 1, 10**6, 10**4, 10**4)
PARAMS = Params(strategy="averaging")


class Plain(Work):
    """Each worker holds the model and trains a share of the pairs; a second moment takes more memory."""

    notes = ("a note",)

    def train(self):
        yield Moment({"model": self.tables})
        yield Moment({"model": self.tables, "as much again": 3 * GB}, {"tables": self.copies})

    def phases(self):
        yield Phase("train", {"window": 1e9}, self.workers.slots, slowest=2.0)
        yield Phase("travel", sent=1e9, beside=("train",))
        yield Phase("tasks", {"task": 10})


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    monkeypatch.setitem(STRATEGIES, "averaging", replace(STRATEGIES["averaging"], work=Plain))


def test_work__gives_a_strategy_its_estimate():
    memory = estimate(PARAMS, Resources(), TEXT, Workers(2, 2))
    assert memory["train"].worker["as much again"] == 3 * GB, "the peak"
    assert not memory["train"].gpu, "a CPU has no memory of its own"
    assert memory["publish"].worker["model"] == 2 * 4 * 100 * TEXT.vocabulary / 2
    assert memory.notes == ("a note",)
    assert estimate(PARAMS, Resources(device="cuda"), TEXT, Workers(2, 2))["train"].gpu["tables"] > 0


def test_work__gives_a_strategy_its_check_and_its_forecast():
    kinds = [Workers(2, 2, limit=4 * GB)]
    way = make_candidate(PARAMS, Resources(), TEXT, kinds)
    assert way.fits
    assert not make_candidate(PARAMS, Resources(), TEXT, [Workers(2, 2, limit=3 * GB)]).fits
    assert way.forecast == forecast(Plain(PARAMS, Resources(), TEXT, kinds[0]), find_constants(PARAMS, "cpu"))


def test_forecast__has_the_slowest_of_all_threads_and_what_is_not_sent_beside_them():
    pair = MACHINE_B["window"].value_for(100) * MACHINE_B["crowded"].fixed
    seconds = forecast(Plain(PARAMS, Resources(), TEXT, Workers(2, 2, network=1e8)), MACHINE_B)
    assert seconds.seconds["train"] == pytest.approx(1e9 * pair * 2 / 4)
    assert seconds.seconds["travel"] == pytest.approx(
        max(0.0, 1e9 / 2 / (1e8 * 1448 / 1514) - seconds.seconds["train"])
    )
    slow = forecast(Plain(PARAMS, Resources(), TEXT, Workers(2, 2, network=1e6)), MACHINE_B)
    assert slow.seconds["travel"] == pytest.approx(1e9 / 2 / (1e6 * 1448 / 1514) - slow.seconds["train"])
    assert (tuple(seconds.seconds), seconds.sent) == (TERMS, 1e9)
    few = forecast(Plain(PARAMS, Resources(), TEXT, Workers(2, 2, cores=1)), MACHINE_B)
    assert few.seconds["train"] == pytest.approx(1e9 * MACHINE_B["window"].value_for(100)), "one core is never crowded"


def test_forecast__is_none_for_work_without_phases(monkeypatch):
    monkeypatch.setattr(Plain, "phases", Work.phases)
    assert make_candidate(PARAMS, Resources(), TEXT, [Workers()]).seconds == math.inf
