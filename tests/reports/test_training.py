from dataclasses import replace

import pytest

from daskw2v.reports.training import (
    Fact,
    list_facts,
    list_settings,
    list_stage_times,
    list_text_facts,
    read_held_out_losses,
    read_score_curves,
    training_points,
)


def test_facts__tell_what_the_manifest_does(trained, plain):
    facts = list(list_facts(trained))
    assert Fact("words", f"{len(trained):,}", "of 1,234 types") in facts
    assert Fact("tokens of text", "400,000", "2.4 MB read") in facts
    assert Fact("objective", "sgns", "5 epochs") in facts
    assert Fact("strategy", "averaging", "1 replica, 20 rounds") in facts
    assert Fact("device", "cpu", "2 threads a task") in facts
    assert Fact("speed", "180,000", "words/s") in facts
    assert [fact.label for fact in list_facts(plain)] == ["words", "dimensions"]


@pytest.mark.parametrize(
    ("params", "rounds", "note"),
    [
        ({"strategy": "averaging", "n_replicas": 8}, 64, "8 replicas, 64 merges"),
        ({"strategy": "averaging", "n_replicas": 2}, 1, "2 replicas, 1 merge"),
        ({"strategy": "rotation", "n_partitions": 64, "n_replicas": 1}, 40, "64 partitions, 40 passes"),
        ({"strategy": "rotation", "n_partitions": 8, "n_replicas": 1}, 1, "8 partitions, 1 pass"),
        ({"strategy": "averaging"}, 0, ""),
    ],
)
def test_facts__tell_how_often_workers_met_and_what_they_sent(trained, params, rounds, note):
    metrics = {"history": [{}] * rounds, "workers": [{"sent": 3_000_000}, {"sent": 1_000_000}, {}]}
    facts = list(list_facts(replace(trained, metadata={"params": params, "metrics": metrics})))
    assert Fact("strategy", params["strategy"], note) in facts
    assert Fact("moved", "4 MB", "between workers") in facts


def test_facts__tell_of_held_out_text_and_of_an_early_end(trained):
    facts = {"held_out": {"tokens": 4000, "measured": 4000, "loss": 2.25}, "stopped": {"epochs": 1, "reason": "enough"}}
    facts = list(list_facts(replace(trained, metadata=facts)))
    assert Fact("loss on held-out text", "2.2500", "4,000 tokens held out") in facts
    assert Fact("stopped early", "after 1 epoch", "enough") in facts


def test_held_out__is_where_it_was_measured():
    history = [{"progress": 5}, {"progress": 10, "held_out_loss": 2.5}, {"progress": 20, "held_out_loss": None}]
    assert read_held_out_losses({"history": history}) == ([10, 20], [2.5, None])
    assert read_held_out_losses({}) == ([], [])


def test_text__tells_what_was_repaired_only(trained):
    labels = [fact.label for fact in list_text_facts(trained.metadata)]
    assert "lines with invalid Unicode, replaced by U+FFFD" in labels
    assert "lines left out" not in labels
    assert list(list_text_facts({})) == []


def test_choices__take_the_objectives_own_alpha_as_default(trained):
    differing = {choice.name for choice in list_settings(trained.metadata["params"]) if choice.differs}
    assert differing == {"strategy", "window"}  # what was chosen is always shown
    assert {c.name for c in list_settings({"objective": "cbow_ns", "alpha": 0.035}) if c.differs} == {
        "objective",
        "alpha",
    }


def test_choices__show_parameters_of_other_versions():
    choices = list_settings({"newer": 3, "window": 5})
    assert [(c.name, c.value, c.default, c.differs) for c in choices] == [
        ("window", "5", "5", False),
        ("newer", "3", "", True),
    ]


@pytest.mark.parametrize(("max_points", "n"), [(100, 20), (20, 20), (7, 7), (1, 1)])
def test_steps__join_entries_where_there_are_many(trained, max_points, n):
    metrics = trained.metadata["metrics"]
    steps = training_points(metrics, max_points)
    assert len(steps) == n
    assert steps[-1].progress == 2_000_000
    assert steps[-1].elapsed == pytest.approx(10)
    assert steps[-1].alpha == metrics["history"][-1]["alpha"]
    assert all(step.words_per_second == pytest.approx(180_000) for step in steps)
    share = 20 // n
    first = metrics["history"][:share] if 20 % n == 0 else metrics["history"][:3]
    assert steps[0].loss == pytest.approx(sum(e["loss"] for e in first) / sum(e["pairs"] for e in first))


def test_steps__without_pairs_have_no_loss(trained):
    entry = {**trained.metadata["metrics"]["history"][0], "pairs": 0, "loss": 0.0, "seconds": 0.0}
    assert training_points({"history": [entry]}, 10)[0].loss is None
    assert training_points({}, 10) == []


def test_stages_and_curves(trained):
    stages = list_stage_times(trained.metadata["metrics"])
    assert [(bar.label, bar.value) for bar in stages] == [("encode", "1 min 01 s"), ("train", "10.5 s")]
    assert stages[0].share == 1
    assert list_stage_times({"stages": [{"stage": "encode", "seconds": 0}]})[0].share == 0
    assert read_score_curves(trained.metadata["metrics"]) == (
        [1_000_000, 2_000_000],
        {"ws353": [0.25, 0.5], "<b>$$set$$": [None, 0.125]},
    )
    assert read_score_curves({}) == ([], {})
