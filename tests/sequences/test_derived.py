"""Events and graphs are inputs like text."""

import numpy as np
import pytest

from daskw2v import EdgeList, Events, Graph, Params, Resources, Sessions, Walks, train
from daskw2v.errors import ParameterError
from daskw2v.progress import silent
from daskw2v.store.storage import Store

pd = pytest.importorskip("pandas")

PARAMS = Params(vector_size=8, min_count=1, epochs=1, sample=0, window=3)


@pytest.fixture
def events(tmp_path):
    """A file of events."""
    random = np.random.default_rng(2)
    columns = {name: random.integers(0, n, 2000) for name, n in (("user", 60), ("item", 40), ("time", 5000))}
    pd.DataFrame(columns).to_parquet(tmp_path / "events.parquet")
    return str(tmp_path / "events.parquet")


def digest(vectors):
    return vectors.vocabulary.between(0, len(vectors)), np.asarray(vectors.vectors).tobytes()


def test_events__are_trained_on_as_their_sessions(events, client, tmp_path):
    sessions, apart = Sessions(gap="50"), Store(str(tmp_path / "apart"))
    files = [f.url for f in Events(events, sessions).write(apart, PARAMS, Resources(), lambda: client, silent)]
    apart = train(files, work=tmp_path / "apart", params=PARAMS, client=client, listener=None)
    vectors = train(Events(events, sessions), work=tmp_path / "work", params=PARAMS, client=client, listener=None)
    assert digest(vectors) == digest(apart)
    again = train(Events(events, sessions), work=tmp_path / "work", params=PARAMS, client=client, listener=None)
    assert again.url == vectors.url


def test_graph__is_trained_on_as_its_walks(client, tmp_path):
    edges = tmp_path / "edges.txt"
    edges.write_text("".join(f"{a} {(a * 7 + b) % 50}\n" for a in range(50) for b in range(1, 4)))
    graph = Graph(str(edges), EdgeList(), Walks(number=2, length=9))
    vectors = train(graph, work=tmp_path / "work", params=PARAMS, client=client, listener=None)
    assert sorted(vectors.vocabulary.between(0, 50), key=int) == [str(node) for node in range(50)]


def test_events__are_kept(events, client, tmp_path):
    with pytest.raises(ParameterError, match=r"keep_inputs=False changes nothing for Events; it is for"):
        train(Events(events), work=tmp_path, resources=Resources(keep_inputs=False), client=client, listener=None)


def test_options_that_events_do_not_read__are_refused(events, client, tmp_path):
    asked = {"delimiter": ";", "errors": "strict", "max_bad_blocks": 1, "weight": "n", "format": "csv"}
    for name, value in {**asked, "filters": (("day", ">", "2026-11-01"),)}.items():
        params = PARAMS.replace(**{name: value})
        with pytest.raises(ParameterError, match=f"^{name}=.* changes nothing for Events"):
            train(Events(events), work=tmp_path, params=params, client=client, listener=None)
