"""The benchmark of nights: that it tells garbage that is served from what a gate stops."""

import argparse
import io
import random

import numpy as np
import pytest

from daskw2v import Params, Policy, Resources
from daskw2v.evaluation import evaluate

nightly, harness, survival = (
    pytest.importorskip(f"benchmarks.{name}", reason="no benchmarks here: run pytest as python -m pytest")
    for name in ("nightly", "harness", "survival.client")
)
TOPICS = [[f"t{topic}w{i}" for i in range(11)] for topic in range(12)]


def sentences(day, n=300):
    """Return sentences of words of one topic each, with a word of that day."""
    draw = random.Random(day)
    lines = (" ".join([*draw.choices(draw.choice(TOPICS), k=9), f"day{day}"]) for _ in range(n))
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.fixture
def setting(client, tmp_path):
    """Nights with one gate, judged by pairs of one topic and of two."""
    pairs = [
        (f"t{a}w{i}", f"t{b}w{i + 1}", int(a == b)) for a in range(12) for b in (a, (a + 1) % 12) for i in range(8)
    ]
    topics = tmp_path / "topics.tsv"
    topics.write_text("".join(f"{a}\t{b}\t{score}\n" for a, b, score in pairs))
    params = Params(vector_size=12, min_count=1, sample=0, window=4, alpha=0.1)
    policy = Policy(old_share=0.1, alpha=0.1, epochs=5, anchor=0.0)  # a bad day leaves its marks
    resources, gates = Resources(threads=1, block_size="64 KiB"), survival.OPEN.replace(min_stability=0.95)
    return nightly.Setting(
        params,
        resources,
        client,
        policy,
        gates,
        lambda vectors: evaluate(vectors, [topics]).scores(),
        ("topics",),
    )


def test_week__tells_garbage_that_is_served_from_what_a_gate_stops(tmp_path, setting):
    session = harness.Session(argparse.Namespace(), tmp_path, io.StringIO())
    week = nightly.Week(session, tmp_path / "week", setting)
    week.good_day("0", {"text": sentences(0)})
    week.good_day("1", {"text": sentences(1)})
    for kind in ("letters", "shuffled"):
        week.bad_day(f"2, {kind}", nightly.GARBAGE[kind](sentences(0), 50_000, np.random.default_rng(0)))
    week.quiet_day("3")
    (table,) = session.tables
    found = {row.name: row.cells for row in table.rows}
    outcomes = {name: row["outcome"].partition(":")[0] for name, row in found.items() if row["outcome"] is not None}
    assert outcomes == {
        "0": "published",
        "1": "published",
        "2, letters": "published",
        "2, shuffled": "stopped",
        "3": "nothing_new",
        "3, rollback": "the same bits as before",
    }
    assert [problem.partition(":")[2][:32] for problem in session.problems] == [
        " published instead of stopped: v",
        " garbage was served",
    ]
    assert (found["1"]["words"], found["1"]["entered"], found["1"]["left"]) == (134, 1, 0)
    assert found["2, letters"]["entered"] > 1000
    assert found["1"]["topics"] > 0.8
    assert found["2, shuffled"]["stability"] < 0.95 < found["1"]["stability"]
    assert found["1"]["M words trained on"] < found["1, from scratch"]["M words trained on"] == 0.006


def test_garbage__is_drawn_by_its_seed():
    good, drawn = sentences(0, 1000), {}
    for name, make in nightly.GARBAGE.items():
        one, same, other = (make(good, 20_000, np.random.default_rng(seed)) for seed in (1, 1, 2))
        assert one == same != other
        assert len(one) == pytest.approx(20_000, rel=0.05)
        drawn[name] = one
    assert not {*drawn["letters"].split()} & {*good.split()}
    assert len({*drawn["spam"].splitlines()}) == 1
    assert sorted(drawn["shuffled"].split())[:-1] == sorted(good[:20_000].split())[:-1]
