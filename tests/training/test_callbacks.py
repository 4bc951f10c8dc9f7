"""Callbacks: each call reports each event once, in order; callbacks stop runs, and are part of the run's name."""

from dataclasses import FrozenInstanceError, InitVar, dataclass, field
from typing import ClassVar

import numpy as np
import pytest

from daskw2v import Callback, Gates, Params, Resources, TrainingRecord, Versions, items, retrain, train, walks
from daskw2v.errors import DamageError, ParameterError
from daskw2v.retraining.outcome import Outcome
from daskw2v.stages import Store
from daskw2v.training.averaging.averaging import AveragingRun
from daskw2v.training.columns.losses import read_losses
from daskw2v.training.loop import checkpoint
from daskw2v.training.watch.events import Callbacks

COMMON = Params(vector_size=8, min_count=1, epochs=3, sample=0)
STRATEGIES = {
    "one replica": COMMON.replace(strategy="averaging", rounds_per_epoch=2),
    "averaging": COMMON.replace(strategy="averaging", n_replicas=2, rounds_per_epoch=2),
    "rotation": COMMON.replace(strategy="rotation", n_partitions=4, passes_per_epoch=2),
    "columns": COMMON.replace(
        objective="context_matrix", strategy="columns", context_size=64, gather_every=32, alpha=0.5
    ),
}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(" ".join(f"w{w}" for w in np.minimum(rng.zipf(1.3, 12), 40)) + "\n" for _ in range(300)))
    return path


class Log(Callback):
    """Keeps the records that it receives."""

    def __init__(self):
        self.events = []

    def on_round(self, record):
        self.events.append(("round", record))

    def on_epoch(self, record):
        self.events.append(("epoch", record))

    def on_checkpoint(self, record):
        self.events.append(("checkpoint", record))

    def on_end(self, record):
        self.events.append(("end", record))

    def of(self, *kinds):
        return [(kind, record.round) for kind, record in self.events if kind in kinds]

    def records(self, kind):
        return [record for name, record in self.events if name == kind]


class StopsAfterEpoch(Callback):
    """Stops after the second epoch."""

    stops = "epoch"

    def on_epoch(self, record):
        return "two are enough" if record.epoch == 2 else None


@dataclass
class StopsAfterRound(Callback):
    """Stops after a round."""

    number: int
    stops = "round"

    def on_round(self, record):
        return f"round {self.number} is enough" if record.round == self.number else None


def trained(text, work, client, params, *callbacks, messages=None, **resources):
    said = [] if messages is None else messages
    return train(
        text,
        work=work,
        params=params,
        resources=Resources(threads=1, **resources),
        client=client,
        callbacks=callbacks,
        listener=lambda p: said.append(p.message),
    )


@pytest.mark.sampled(1)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_callback__receives_rounds_epochs_and_the_end(text, tmp_path, client, strategy):
    log = Log()
    vectors = trained(text, tmp_path, client, STRATEGIES[strategy], log)
    history = vectors.metadata["metrics"]["history"]
    assert log.of("round") == [("round", n) for n in range(len(history))]
    assert [record.epoch for record in log.records("epoch")] == [1, 2, 3]
    for entry, record in zip(history, log.records("round"), strict=True):
        assert (record.words, record.pairs, record.alpha) == (entry["words"], entry["pairs"], entry["alpha"])
        assert record.loss == pytest.approx(entry["loss"] / entry["pairs"])
        assert record.progress == entry["progress"] / history[-1]["progress"]
        assert (record.work, record.restored, record.version, record.held_out_loss, record.scores) == (
            str(tmp_path),
            False,
            None,
            None,
            {},
        )
    (end,) = log.records("end")
    assert log.events[-1] == ("end", end)
    for name in ("words", "pairs"):
        epochs = sum(getattr(record, name) for record in log.records("epoch"))
        assert epochs == getattr(end, name) == vectors.metadata["metrics"][name]
    assert end.loss == pytest.approx(vectors.metadata["metrics"]["loss"])
    assert (end.version, end.metadata) == (vectors.url, vectors.metadata)
    assert vectors.url.endswith(end.run)
    assert end.params.strategy.name == STRATEGIES[strategy].strategy.name


def test_record__cannot_be_changed(text, tmp_path, client):
    log = Log()
    trained(text, tmp_path, client, STRATEGIES["one replica"], log)
    record = log.records("end")[0]
    assert isinstance(record, TrainingRecord)
    with pytest.raises(FrozenInstanceError):
        record.loss = 0
    for mapping in (record.scores, record.metadata):
        with pytest.raises(TypeError):
            mapping["new"] = 1


def test_callback_that_watches__changes_neither_run_nor_vectors(text, tmp_path, client):
    plain = trained(text, tmp_path / "plain", client, COMMON)
    watched = trained(text, tmp_path / "watched", client, COMMON, Log())
    assert plain.url.rpartition("/")[2] == watched.url.rpartition("/")[2]
    np.testing.assert_array_equal(plain.vectors, watched.vectors)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_stopped_run__is_published_as_it_was_and_found_again(text, tmp_path, client, strategy):
    params, log = STRATEGIES[strategy], Log()
    vectors = trained(text, tmp_path, client, params, StopsAfterEpoch(), log)
    stopped, history = vectors.metadata["stopped"], vectors.metadata["metrics"]["history"]
    assert (stopped["epochs"], stopped["reason"]) == (2, "two are enough")
    assert (stopped["round"], stopped["progress"]) == (history[-1]["round"], history[-1]["progress"])
    assert 2 / 3 <= stopped["progress"] / stopped["of"] < 1
    assert len(log.records("epoch")) == 2
    assert log.records("end")[0].metadata["stopped"] == stopped

    again = Log()
    assert trained(text, tmp_path, client, params, again, StopsAfterEpoch()).url == vectors.url
    assert [(k, r.round, r.restored) for k, r in again.events if k != "end"] == [
        (k, r.round, True) for k, r in log.events if k != "end"
    ]
    assert again.records("end")[0].version == vectors.url

    full = trained(text, tmp_path, client, params)
    assert full.url != vectors.url
    assert "stopped" not in full.metadata
    assert not np.array_equal(full.vectors, vectors.vectors)
    assert [entry["loss"] for entry in full.metadata["metrics"]["history"][: len(history)]] == [
        entry["loss"] for entry in history
    ]


@pytest.mark.slow
def test_stopped_run__has_the_same_bits_on_another_cluster(text, tmp_path, client, two_processes):
    """Though one submits more rounds ahead than the other."""
    for params in (STRATEGIES["averaging"], STRATEGIES["rotation"]):
        one, other = (
            trained(text, tmp_path / name / params.strategy.name, where, params, StopsAfterRound(1))
            for name, where in (("one", client), ("other", two_processes))
        )
        assert one.metadata["stopped"] == other.metadata["stopped"]
        assert one.metadata["stopped"]["round"] == 1
        np.testing.assert_array_equal(one.vectors, other.vectors)


def test_rule__is_part_of_the_runs_name(text, tmp_path, client):
    rules = [(), (StopsAfterEpoch(),), (StopsAfterRound(1),), (StopsAfterRound(2),), (StopsAfterRound(1), Log())]
    names = [trained(text, tmp_path, client, COMMON, *given).url.rpartition("-")[2] for given in rules]
    assert names[2] == names[4]
    assert len(set(names)) == 4
    assert len(Versions(Store(str(tmp_path))).all()) == 4


@dataclass
class Stateful(Callback):
    """Has a setting, a shared constant, what only its making needs, what is not shown, and state."""

    number: int
    limit: ClassVar[int] = 7
    seed: InitVar[int] = 1
    label: object = field(default_factory=object, repr=False)
    seen: list[int] = field(default_factory=list, init=False)
    stops = "round"

    def on_round(self, record):
        self.seen.append(record.round)


class Named(Callback):
    """Says its rule itself."""

    stops = "round"

    def __init__(self, number):
        self.number = number

    @property
    def rule(self):
        return f"named {self.number}"


def test_rule__is_of_the_settings_of_a_dataclass():
    (rule,) = Callbacks([Stateful(3)]).rules
    assert rule.endswith("test_callbacks:Stateful(number=3)")
    assert Callbacks([Named(2), Named(1)]).rules == ("named 1", "named 2")


def test_rule__is_that_from_before_the_training():
    one = StopsAfterRound(1)
    callbacks = Callbacks([one])
    rules = callbacks.rules
    one.number = 2
    assert callbacks.rules == rules


def test_stopper_that_keeps_state__is_the_same_run_again(text, tmp_path, client):
    one = Stateful(3)
    first, again = (trained(text, tmp_path, client, COMMON, one) for _ in range(2))
    assert one.seen
    assert again.url == first.url


def test_resumed_run__reports_the_rounds_of_its_checkpoint(text, tmp_path, client, monkeypatch):
    class StoppedError(Exception):
        pass

    params, play = STRATEGIES["one replica"], AveragingRun.play

    def stop(run, number, needs_rows):
        if number == 4:
            raise StoppedError
        return play(run, number, needs_rows)

    first, second = Log(), Log()
    with monkeypatch.context() as patch:
        patch.setattr(AveragingRun, "play", stop)
        with pytest.raises(StoppedError):
            trained(text, tmp_path, client, params, first, checkpoint_seconds=0)
    assert first.of("round", "checkpoint") == [(kind, n) for n in range(4) for kind in ("round", "checkpoint")]
    (run,) = (Store(str(tmp_path)) / "runs").children()
    assert checkpoint.find_newest(Store(str(tmp_path)) / "runs" / run)[1]["next_round"] == 4
    trained(text, tmp_path, client, params, second)
    assert [(record.round, record.restored) for record in second.records("round")] == [(n, n < 4) for n in range(6)]
    assert [record.restored for record in second.records("epoch")] == [True, True, False]
    assert second.of("checkpoint", "end") == [("end", 5)]


def test_stopped_run__with_damaged_files_stops_again_after_the_same_round_and_reports_nothing_twice(
    text, tmp_path, client, monkeypatch
):
    """In the same call, which repairs what it can and goes on from an earlier checkpoint."""
    save, damages = AveragingRun.save_model, []

    def damaged(run, model):
        if not damages:
            damages.append(f"{tmp_path}/runs/{run._session.partition('-')[0]}/checkpoints/000003/zarr.json")
            raise DamageError.of(damages[0], "is damaged")
        save(run, model)

    log, expected = Log(), trained(text, tmp_path / "whole", client, STRATEGIES["one replica"], StopsAfterRound(3))
    monkeypatch.setattr(AveragingRun, "save_model", damaged)
    found = trained(text, tmp_path, client, STRATEGIES["one replica"], StopsAfterRound(3), log, checkpoint_seconds=0)
    assert len(damages) == 1
    assert log.of("round", "end") == [*(("round", n) for n in range(4)), ("end", 3)]
    assert found.metadata["stopped"] == expected.metadata["stopped"]
    np.testing.assert_array_equal(found.vectors, expected.vectors)


def test_stop__of_a_run_with_losses_keeps_those_of_the_rounds_that_were_trained(text, tmp_path, client):
    vectors = trained(text, tmp_path, client, STRATEGIES["columns"], StopsAfterRound(2), word_losses=True)
    columns, losses = read_losses(Store(vectors.url))
    assert (columns, losses.shape) == ([32, 64, 96], (3, len(vectors)))
    assert np.isfinite(losses).all()


def test_retraining__reports_to_callbacks_and_may_be_stopped(text, tmp_path, client):
    def night(log, gates):
        return retrain(
            str(text),
            work=tmp_path,
            params=STRATEGIES["one replica"],
            resources=Resources(threads=1),
            gates=gates,
            client=client,
            callbacks=[log, StopsAfterEpoch()],
            listener=None,
        )

    refused, served, idle = Log(), Log(), Log()
    assert night(refused, Gates(max_long=0.0, times_median=1.01)).outcome is Outcome.STOPPED
    assert refused.of("round", "epoch", "end") == [
        ("round", 0),
        ("round", 1),
        ("epoch", 1),
        ("round", 2),
        ("round", 3),
        ("epoch", 3),
        ("end", 3),
    ]
    assert refused.records("end")[0].version is None
    summary = night(served, Gates(max_long=None))
    (end,) = served.records("end")
    assert end.version == str(tmp_path / "models" / summary.version)
    assert end.metadata["stopped"]["epochs"] == 2
    assert all(record.restored for _, record in served.events), "the candidate was there"
    assert night(idle, Gates()).outcome is Outcome.NOTHING_NEW
    assert idle.events == []


def test_error_of_a_watching_callback__is_reported_and_training_goes_on(text, tmp_path, client):
    class Broken(Log):
        def on_round(self, record):
            super().on_round(record)
            raise ValueError("no more room")

    broken, messages = Broken(), []
    vectors = trained(text, tmp_path, client, COMMON, broken, messages=messages)
    assert vectors.metadata["metrics"]["pairs"] > 0
    assert [kind for kind, _ in broken.events] == ["round"]
    broken = [message for message in messages if "Broken" in message]
    assert len(broken) == 1
    assert broken[0].endswith("Broken failed in on_round and is not called again: ValueError: no more room")


def test_error_of_who_may_stop__ends_the_call_which_resumes(text, tmp_path, client):
    class Unsure(Callback):
        stops, fails = "round", True

        def on_round(self, record):
            if record.round == 1 and self.fails:
                raise ValueError("cannot decide")

    with pytest.raises(ValueError, match="cannot decide"):
        trained(text, tmp_path, client, STRATEGIES["one replica"], Unsure(), checkpoint_seconds=0)
    Unsure.fails = False
    log = Log()
    trained(text, tmp_path, client, STRATEGIES["one replica"], Unsure(), log)
    assert [record.restored for record in log.records("round")] == [True, False, False, False, False, False]


class OfNoKind:
    """Not a callback."""


class Undeclared(Callback):
    """Wants to stop, but does not say so."""

    def on_epoch(self, record):
        return "enough"


class Early(Callback):
    """Wants to stop after rounds, but says epochs."""

    stops = "epoch"

    def on_round(self, record):
        return "enough"


class NoText(Callback):
    """Returns no text."""

    stops = "round"

    def on_round(self, record):
        return True


class Never(Callback):
    """Says something else."""

    stops = "never"


class Plain(Callback):
    """Stops by a number that its rule does not name."""

    stops = "round"

    def __init__(self, number):
        self.number = number


class Derived(StopsAfterRound):
    """A dataclass's heir with more than its fields."""

    def __init__(self, number):
        super().__init__(1)
        self.other = number


@dataclass
class Holder(Callback):
    """Has a setting whose repr is an address."""

    value: object
    stops = "epoch"


@pytest.mark.parametrize(
    ("callbacks", "match"),
    [
        ([OfNoKind()], r"callbacks has a OfNoKind, which is no daskw2v\.Callback.*derived"),
        ([Callback], r"callbacks has a type, which is no"),
        (Log(), r"callbacks is a Log, not a list.*list of callbacks"),
        ([Never()], r"Never\.stops is 'never'.*\"round\" or \"epoch\""),
        ([Undeclared()], r"Undeclared\.on_epoch returned a reason to stop, 'enough', but Undeclared\.stops is None"),
        ([Early()], r"Early\.on_round returned a reason to stop, 'enough', but Early\.stops is 'epoch'"),
        ([Plain(1)], r"Plain may stop a run and has number, which its rule does not name.*dataclass.*override"),
        ([Derived(1)], r"Derived may stop a run and has other, which its rule"),
        ([Holder(object())], r"Holder\.rule holds an address.*object at 0x.*repr=False"),
        ([NoText()], r"NoText\.on_round returned a bool: True.*as text, or None"),
    ],
)
def test_bad_callback__is_refused(text, tmp_path, client, callbacks, match):
    with pytest.raises(ParameterError, match=match):
        train(text, work=tmp_path, params=COMMON, client=client, callbacks=callbacks, listener=None)


def test_items_and_walks__report_to_callbacks(tmp_path, client):
    pytest.importorskip("dask.dataframe", reason="events need daskw2v[events]")
    (tmp_path / "events.csv").write_text("user,item,time\n" + "".join(f"{i // 6},i{i % 5},{i}\n" for i in range(60)))
    (tmp_path / "edges.txt").write_text("".join(f"{i} {(i + 1) % 9}\n" for i in range(9)))
    params = Params(vector_size=4, min_count=1, sample=0, epochs=3)
    for function, inputs in ((items, "events.csv"), (walks, "edges.txt")):
        log, work = Log(), tmp_path / function.__name__
        vectors = function(
            tmp_path / inputs,
            work=work,
            params=params,
            client=client,
            listener=None,
            callbacks=[log, StopsAfterEpoch()],
        )
        assert [record.epoch for record in log.records("epoch")] == [1, 2]
        assert log.records("end")[0].version == vectors.url
        assert vectors.metadata["stopped"]["reason"].endswith("two are enough")
