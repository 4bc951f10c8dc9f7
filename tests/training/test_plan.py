"""Plans: complete and immutable, what `train` carries out, and what the version and callbacks say of them."""

import re
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import daskw2v
from daskw2v import Callback, Events, Params, Resources, plan, train
from daskw2v.errors import InputError, ParameterError
from daskw2v.training.estimates.memory import estimate
from daskw2v.training.preparation.plan import WorkerPlan
from daskw2v.training.sizes import Text, Workers

SMALL = {"vector_size": 8, "min_count": 1, "epochs": 2, "sample": 0, "threads": 1}
SETTINGS = [
    {},
    {"strategy": "averaging", "n_replicas": 2},
    {"objective": "cbow_hs", "phrases": 1, "phrase_threshold": 1.0},
    {"objective": "sg_hs", "phrases": 2},
    {"objective": "context_matrix", "context_size": 64},
    {"maxn": 4, "strategy": "averaging"},
]


@pytest.fixture
def text(tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "text.txt"
    path.write_text("".join(" ".join(f"w{w}" for w in np.minimum(rng.zipf(1.3, 12), 40)) + "\n" for _ in range(300)))
    return path


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_planned_run__is_the_run_of_the_same_arguments(text, tmp_path, client, settings):
    before = plan(text, client=client, listener=None, **SMALL, **settings)
    assert before.run is None
    assert before.guessed == ("types", "vocabulary")
    assert not before.params.strategy.is_open
    assert before.params.alpha is not None
    planned = train(before, work=tmp_path / "planned", client=client, listener=None)
    assert planned.metadata["plan"]["why"] == before.why
    assert (before.why is None) == ("n_replicas" in settings)
    named = {**settings, "strategy": before.params.strategy}
    plain = train(text, work=tmp_path / "plain", client=client, listener=None, **SMALL, **named)
    assert planned.url.rpartition("/")[2] == plain.url.rpartition("/")[2]
    np.testing.assert_array_equal(planned.vectors[:], plain.vectors[:])
    again = plan(text, work=tmp_path / "planned", client=client, listener=None, **SMALL, **settings)
    assert planned.url.endswith(f"-{again.run}")
    assert again.guessed == ()
    assert again.text.vocabulary == len(planned)


@pytest.mark.parametrize(("free", "fits"), [(None, True), (1 << 30, True), (1 << 20, False), (0, False)])
def test_plan__compares_the_memory_of_a_gpu(free, fits):
    sizes, workers = Text(10**6, 10**4, 10**6, 10**4, 1, 1, 10**6, 10**4, 10**4), Workers(2, 2, device_limit=free)
    memory = estimate(Params(strategy="averaging"), Resources(device="cuda"), sizes, workers)
    kind = WorkerPlan(workers, workers.limit, memory)
    assert kind.fits is fits
    assert ("does not fit into the" in kind.verdict) is not fits


def test_plan__of_text_that_was_read_keeps_the_strategy_that_was_chosen(text, tmp_path, client):
    vectors = train(text, work=tmp_path / "work", client=client, listener=None, **SMALL)
    planned = plan(text, work=tmp_path / "work", client=client, listener=None, **SMALL)
    assert vectors.url.endswith(f"-{planned.run}")
    assert planned.why == vectors.metadata["plan"]["why"]
    assert train(planned, work=tmp_path / "work", client=client, listener=None).url == vectors.url


def test_version_and_callbacks__have_the_plan(text, tmp_path, client):
    class Log(Callback):
        plans = ()

        def on_round(self, record):
            self.plans += (record.plan,)

        on_end = on_round

    how = {"work": tmp_path / "work", "client": client, "listener": None, "strategy": "averaging", **SMALL}
    logs = Log(), Log()
    first, again = (train(text, callbacks=[log], **how) for log in logs)
    assert first.url == again.url
    facts = first.metadata["plan"]
    assert all(planned == facts for log in logs for planned in log.plans)
    assert all(log.plans for log in logs)
    assert (facts["strategy"], facts["n_replicas"], facts["why"]) == ("averaging", 1, "there is one worker")
    assert facts["memory"] > 100e6
    assert 0 < facts["seconds"] < 10


def test_plan__prints_memory_and_the_chosen_way(text):
    planned = plan(text, **SMALL)
    assert re.search(r"\* +strategy=", str(planned))
    assert "train, a worker" in str(planned)
    assert planned.as_dict()["params"]["vector_size"] == 8


def test_plan__does_not_change(text):
    planned = plan(text, **SMALL)
    with pytest.raises(FrozenInstanceError):
        planned.params = Params()


def test_plan__is_not_carried_out_on_other_text(text, tmp_path, client):
    planned = plan(text, client=client, **SMALL)
    text.write_text("a b c\n" * 9)
    with pytest.raises(InputError, match=r"1 file of the text changed since the plan was made, such as .*text\.txt"):
        train(planned, work=tmp_path / "work", client=client, listener=None)


@pytest.mark.parametrize("beside", [{"vector_size": 9}, {"params": Params()}, {"resources": Resources()}])
def test_plan__takes_no_settings_beside_it(text, beside):
    planned = plan(text, **SMALL)
    with pytest.raises(ParameterError, match=rf"train\(\) got {next(iter(beside))} beside a plan"):
        train(planned, **beside)


@pytest.mark.parametrize("inputs", [[["a", "b"]], Events("events.csv")], ids=["iterable", "events"])
def test_plan__is_of_files(inputs):
    with pytest.raises(ParameterError, match="is not known before it is read"):
        plan(inputs)


def test_plan__refuses_what_train_refuses(text):
    with pytest.raises(ParameterError, match="There is no strategy that has all of"):
        plan(text, n_replicas=2, n_partitions=3)
    with pytest.raises(ParameterError, match="vector_sizes"):
        daskw2v.plan(text, vector_sizes=3)


@pytest.mark.parametrize("call", [plan, daskw2v.estimate, daskw2v.retrain])
def test_plan__is_carried_out_by_train_alone(call, text, tmp_path):
    planned = plan(text, **SMALL)
    with pytest.raises(ParameterError, match="Plan"):
        call(planned, **({"work": tmp_path / "work"} if call is daskw2v.retrain else {}))
    assert not (tmp_path / "work").exists()
