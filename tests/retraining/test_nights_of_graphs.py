"""Nights on a graph: where its edges have changed, walks are made anew, and the vectors of nodes go on."""

import numpy as np
import pytest
from nights_of_text import LOOSE

from daskw2v import Graph, Params, Policy, Resources, Vectors, Walks, retrain
from daskw2v.retraining.outcome import Outcome

PARAMS = Params(vector_size=8, window=3, sample=0, min_count=1, epochs=2, rounds_per_epoch=2)
NODES = 60


@pytest.fixture
def night(tmp_path, client):
    """A night's run on the edges of that day: those of days before, and some of a new node."""

    def run(day):
        random = np.random.default_rng(1)
        edges = [(a, b) for a, b in random.integers(0, NODES, (600, 2)).tolist() if a % 3 == b % 3]
        edges += [(1000 + new, node) for new in range(day) for node in range(0, NODES, 3)]
        if not (file := tmp_path / f"edges-{day}.txt").exists():
            file.write_text("".join(f"{a} {b}\n" for a, b in edges))
        return retrain(
            Graph(str(file), walks=Walks(number=2, length=10)),
            work=tmp_path / "work",
            params=PARAMS,
            resources=Resources(threads=1),
            policy=Policy(keep=2),
            gates=LOOSE,
            client=client,
            listener=None,
        )

    return run


@pytest.mark.slow
def test_nights__walk_anew_where_edges_have_changed(night, tmp_path):
    assert night(0).outcome is Outcome.PUBLISHED
    first = Vectors.open(str(tmp_path / "work"))
    assert night(0).outcome is Outcome.NOTHING_NEW
    summary = night(1)
    assert summary.outcome is Outcome.PUBLISHED
    later = Vectors.open(str(tmp_path / "work"))
    ids, after = (dict(zip(v.vocabulary.words, v.stable_ids.tolist(), strict=True)) for v in (first, later))
    assert ids == {node: after[node] for node in ids}
    assert after["1000"] == len(ids)
    assert summary.alignment.after >= summary.alignment.before


@pytest.mark.slow
def test_nights__delete_graphs_and_walks_that_no_kept_version_was_made_of(night, tmp_path):
    def there():
        return {path for folder in ("graphs", "walks") for path in (tmp_path / "work" / folder).iterdir()}

    night(0)
    before = there()
    assert len(before) == 2
    night(1)
    assert before < there(), "they stay for a rollback"
    night(2)
    assert not before & there()
    assert len(there()) == 4
