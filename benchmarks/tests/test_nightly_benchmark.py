"""The benchmark of nights: each table on a little text, and that it sees what is not as it should be."""

import io
import random
from dataclasses import replace

import numpy as np
import pytest

from daskw2v import Gates, Params, Policy, Resources, Vectors, retrain

nights, garbage, week, cost, crashes = (
    pytest.importorskip(f"benchmarks.nightly.{name}", reason="no benchmarks here: run pytest as python -m pytest")
    for name in ("nights", "garbage", "week", "cost", "crashes")
)
TOPICS = [[f"t{topic}w{i}" for i in range(11)] for topic in range(12)]
PARAMS = {"vector_size": 12, "min_count": 1, "sample": 0, "window": 4, "alpha": 0.1}


def sentences(day, n=300):
    """Return sentences of words of one topic each, with a word of that day."""
    draw = random.Random(day)
    return "".join(" ".join([*draw.choices(draw.choice(TOPICS), k=9), f"day{day}"]) + "\n" for _ in range(n))


@pytest.fixture
def days(tmp_path):
    """Files of two days."""
    paths = [tmp_path / f"{day}.txt" for day in range(2)]
    for day, path in enumerate(paths):
        path.write_text(sentences(day))
    return paths


@pytest.fixture
def setting(client, tmp_path):
    """Nights with one gate, judged by pairs of one topic and of two."""
    pairs = [
        (f"t{a}w{i}", f"t{b}w{i + 1}", int(a == b)) for a in range(12) for b in (a, (a + 1) % 12) for i in range(8)
    ]
    (tmp_path / "topics.tsv").write_text("".join(f"{a}\t{b}\t{score}\n" for a, b, score in pairs))
    resources = Resources(threads=1, block_size="64 KiB", eval_similarity=[str(tmp_path / "topics.tsv")])
    policy = Policy(old_share=0.1, alpha=0.1, epochs=5, anchor=0.0)  # a bad day leaves its marks
    return nights.Setting(Params(**PARAMS), resources, client, policy, replace(nights.OPEN, min_stability=0.95))


@pytest.fixture
def report():
    return nights.Report(io.StringIO())


def rows(table):
    return {row.name: row.cells for row in table.rows}


def test_week__tells_garbage_that_is_served_from_what_a_gate_stops(tmp_path, days, setting, report):
    nights.warm_up(setting, days[0].read_bytes(), tmp_path)
    week.week(tmp_path, [days[:1], days[1:]], setting, report, ["letters", "shuffled"], size=50_000)
    found, gates = map(rows, report.tables)
    outcomes = {name: row["outcome"] for name, row in found.items() if row["outcome"] is not None}
    assert outcomes == {
        "0": "published", "1": "published", "2, letters": "published", "2, shuffled": "stopped", "3": "nothing_new",
        "3, rollback": "the same bits as before",
    }  # fmt: skip
    assert report.problems == ["day 2, letters: published instead of stopped", "day 2, letters: garbage was served"]
    sizes = [path.stat().st_size / 1e6 for path in days]
    assert [found[name]["MB read"] for name in ("0", "1", "1, from scratch", "3")] == [*sizes, sizes[1], 0]
    assert (found["1"]["words"], found["1"]["entered"], found["1"]["left"]) == (134, 1, 0)
    assert found["2, letters"]["entered"] > 1000
    assert found["1"]["topics"] > 0.8
    assert found["2, shuffled"]["stability"] < 0.95 < found["1"]["stability"]
    assert "STOPPED by 0.95" in gates["2, shuffled"]["min_stability"]
    unaligned, aligned = (found["1, from scratch"][f"cosine {how}"] for how in ("as trained", "aligned"))
    assert found["1"]["cosine as trained"] > aligned > unaligned
    spent = [found["1"][f"s {stage}"] for stage in nights.STAGES]
    assert min(spent) > 0
    assert sum(spent) == pytest.approx(found["1"]["s"], rel=0.01)


def test_cost__puts_a_night_beside_trainings_from_scratch(tmp_path, days, setting, report):
    cost.cost(tmp_path, days[:1], days[1:], setting, [1, 2], report)
    each, medians = map(rows, report.tables)
    old, new = (path.stat().st_size / 1e6 for path in days)
    assert {name: row["MB read"] for name, row in each.items() if name.startswith("seed 2")} == {
        "seed 2, night": new, "seed 2, from scratch": old + new, "seed 2, from scratch, old text encoded": new,
    }  # fmt: skip
    for name in (cost.FULL, cost.KNOWN):
        row = medians[f"over {name}"]
        ratios = sorted(each[f"seed {seed}, night"]["s"] / each[f"seed {seed}, {name}"]["s"] for seed in (1, 2))
        assert ratios[0] <= row["s"] <= ratios[1]
        losses = [1 - each[f"seed {seed}, night"]["topics"] / each[f"seed {seed}, {name}"]["topics"] for seed in (1, 2)]
        assert row["loss topics"] == row["mean loss"] == pytest.approx(sum(losses) / 2)
    assert report.problems == []


def test_night_that_is_killed_and_called_again__has_the_bits_of_one_in_this_process(tmp_path, client):
    values = {**PARAMS, "workers": 1, "threads": 1, "gates": {"min_stability": 0.0}}
    (tmp_path / "commands").mkdir()
    bench = crashes.Bench(tmp_path / "commands", (sentences(0).encode(), sentences(1).encode()), values)
    fate, served = bench.strike(crashes.Moment("train", workers=True))
    assert fate.said.startswith("train: ")
    assert fate.codes == [0]
    given = {
        "params": Params(**PARAMS),
        "resources": Resources(threads=1),
        "client": client,
        "gates": Gates(min_stability=0),
    }
    for texts in ("0.txt", "*.txt"):
        retrain(tmp_path / "commands" / "text" / texts, work=tmp_path / "work", **given)
    vectors = Vectors.open(tmp_path / "work")
    assert served == (vectors.url.rsplit("/", 1)[1], crashes.digest(vectors))


@pytest.mark.parametrize(
    ("fate", "served", "problem"),
    [
        (crashes.Fate(1.0, "train: 1/2", [0]), ("v2", "bits"), None),
        (crashes.Fate(1.0, "train: 1/2", [2, 3]), ("v2", "bits"), None),
        (crashes.Fate(None, "train: 2/2", [3]), ("v2", "bits"), "['3', 'yes', 'yes']"),
        (crashes.Fate(1.0, "train: 1/2", [2, 2, 2]), ("v1", "bits"), "['2 2 2', 'NO', 'yes']"),
        (crashes.Fate(1.0, "train: 1/2", [0]), ("v2", "others"), "['0', 'yes', 'NO']"),
    ],
)
def test_crashes__sees_what_a_kill_changed(tmp_path, monkeypatch, report, fate, served, problem):
    class Bench:
        def __init__(self, *_): ...

        def undisturbed(self):
            return ("v2", "bits"), 9.0

        def strike(self, moment):
            return fate, served

    monkeypatch.setattr(crashes, "Bench", Bench)
    crashes.crashes(tmp_path, (b"", b""), {}, report, ["train"], 1)
    assert list(rows(report.tables[0])) == ["train, with its workers", "train, alone", "at random, with its workers"]
    chance = fate.seconds is None  # then a night that ended before its moment is no problem
    names = [name for name in rows(report.tables[0]) if problem and not (chance and name.startswith("at random"))]
    assert report.problems == [f"killed {name}: {problem}" for name in names]


def test_garbage__is_drawn_by_its_seed():
    good, drawn = sentences(0, 1000).encode(), {}
    for name, make in garbage.GARBAGE.items():
        one, same, other = (make(good, 20_000, np.random.default_rng(seed)) for seed in (1, 1, 2))
        assert one == same != other
        assert len(one) == pytest.approx(20_000, rel=0.05)
        drawn[name] = one
    assert not {*drawn["letters"].split()} & {*good.split()}
    assert len({*drawn["spam"].splitlines()}) == 1
    assert sorted(drawn["shuffled"].split())[:-1] == sorted(good[:20_000].split())[:-1]
