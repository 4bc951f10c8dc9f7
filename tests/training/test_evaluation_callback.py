"""Evaluation while a model trains: scores of the rounds asked for, and training that does not care."""

import numpy as np
import pytest

from daskw2v import Params, Resources, evaluate, train
from daskw2v.errors import InputError, ParameterError
from daskw2v.training.rotation import work as rotation_work
from daskw2v.training.watch import measurements

STRATEGIES = {
    "averaging": Params(n_replicas=2, rounds_per_epoch=2),
    "rotation": Params(strategy="rotation", n_partitions=4, passes_per_epoch=2),
    "columns": Params(objective="context_matrix", strategy="columns", context_size=800, gather_every=160, alpha=0.5),
}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(" ".join(f"w{w}" for w in np.minimum(rng.zipf(1.3, 12), 40)) + "\n" for _ in range(300)))
    return path


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    path = tmp_path_factory.mktemp("sets") / "pairs.tsv"
    path.write_text("w1\tw2\t1\nw1\tw3\t2\nw2\tw5\t3\nw4\tw3\t1.5\nw1\tw6\t2.5\n")
    return path


def trained(text, work, client, strategy="averaging", messages=None, **resources):
    params = STRATEGIES[strategy].replace(vector_size=8, min_count=1, epochs=2, sample=0)
    said = [] if messages is None else messages
    return train(
        text,
        work=work,
        params=params,
        resources=Resources(threads=1, **resources),
        client=client,
        listener=lambda p: said.append(p.message),
    )


@pytest.fixture(scope="module", params=STRATEGIES)
def plain(request, text, tmp_path_factory, client):
    """A strategy, and the model of a run without evaluation."""
    return request.param, trained(text, tmp_path_factory.mktemp("plain"), client, request.param)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_judge__scores_the_rounds_asked_for_and_the_last(text, pairs, tmp_path, client, strategy, monkeypatch):
    monkeypatch.setattr(measurements, "MAX_PENDING", 100)
    messages = []
    vectors = trained(text, tmp_path, client, strategy, messages, eval_every=3, eval_similarity=[str(pairs)])
    metrics = vectors.metadata["metrics"]
    scored = [entry["round"] for entry in metrics["history"] if "scores" in entry]
    last = len(metrics["history"]) - 1
    assert scored == [*range(2, last, 3), last] or scored == [*range(2, last + 1, 3)]
    assert [e["scores"] for e in metrics["evaluations"]] == [metrics["history"][n]["scores"] for n in scored]
    assert metrics["evaluations"][-1]["scores"] == pytest.approx(evaluate(vectors, [pairs]).scores(), abs=1e-6)
    assert len({e["scores"]["pairs"] for e in metrics["evaluations"]}) > 1 or len(scored) < 3, "they changed"
    assert sum(message.startswith("round ") for message in messages) == len(scored)


def test_evaluation__without_eval_every_scores_the_last_round_only(text, pairs, tmp_path, client):
    metrics = trained(text, tmp_path, client, eval_similarity=[pairs]).metadata["metrics"]
    assert ["scores" in entry for entry in metrics["history"]] == [False] * (len(metrics["history"]) - 1) + [True]


@pytest.mark.sampled(1)
def test_judge__changes_no_vector(plain, text, pairs, tmp_path, client):
    strategy, vectors = plain
    judged = trained(text, tmp_path, client, strategy, eval_every=1, eval_similarity=[pairs])
    np.testing.assert_array_equal(vectors.vectors[:], judged.vectors[:])
    assert vectors.metadata["metrics"]["evaluations"] == []


def test_judge__that_fails_does_not_stop_training(text, pairs, tmp_path, client, monkeypatch):
    def fail(vectors, **_):
        if len(vectors):  # the sets are read before, for no words
            raise MemoryError("no room")

    monkeypatch.setattr(measurements, "evaluate", fail)
    messages = []
    vectors = trained(text, tmp_path, client, messages=messages, eval_every=1, eval_similarity=[pairs])
    assert vectors.metadata["metrics"]["evaluations"] == []
    assert "round 0 could not be evaluated: no room" in messages


def test_judge__says_which_rounds_it_leaves_out(text, pairs, tmp_path, client, monkeypatch):
    monkeypatch.setattr(measurements, "MAX_PENDING", 0)
    messages = []
    metrics = trained(text, tmp_path, client, messages=messages, eval_every=1, eval_similarity=[pairs]).metadata[
        "metrics"
    ]
    assert "round 0 is not evaluated: earlier rounds are still being evaluated" in messages
    assert len(metrics["evaluations"]) == 1, "the last one always is"


def test_judge__says_that_a_model_beyond_the_clusters_memory_is_not_evaluated(
    text, pairs, tmp_path, client, monkeypatch
):
    monkeypatch.setattr(rotation_work, "fits_model", lambda *_: False)
    messages = []
    trained(text, tmp_path, client, "rotation", messages, eval_similarity=[pairs])
    assert "round 3 is not evaluated: the cluster's memory does not hold the model" in messages


def test_judge__refuses_a_set_that_cannot_be_read_before_training(text, tmp_path, client):
    (tmp_path / "bad.tsv").write_text("one word\n")
    with pytest.raises(InputError, match=r"bad\.tsv"):
        trained(text, tmp_path / "work", client, eval_similarity=[tmp_path / "bad.tsv"])
    assert not [*(tmp_path / "work").glob("runs/*/checkpoints")]


def test_train__refuses_eval_every_without_sets(text, tmp_path, client):
    with pytest.raises(ParameterError, match=r"eval_every=2 has nothing to evaluate on.*eval_similarity"):
        trained(text, tmp_path, client, eval_every=2)


def test_train__reports_the_time_of_each_worker_and_stage(plain):
    metrics = plain[1].metadata["metrics"]
    assert [stage["stage"] for stage in metrics["stages"]] == ["encode", "vocabulary", "train"]
    assert all(stage["seconds"] > 0 for stage in metrics["stages"])
    (worker,) = metrics["workers"]
    assert (worker["worker"], worker["threads"]) == ("0", 2)
    assert worker["seconds"] > 0
    assert worker["seconds"] == pytest.approx(metrics["words"] / worker["words_per_second"], abs=1e-3)  # rounded
    assert worker["peak_memory"] > 50e6
    assert worker["processor_seconds"] > 0
    assert worker["sent"] < 1e5, "to the client only"
