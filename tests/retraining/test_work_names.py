"""Work directories and inputs whose names hold the characters of patterns: nothing else is reached."""

import numpy as np
import pytest
from nights_of_text import LOOSE, ONE, PARAMS

from daskw2v import EdgeList, Events, Graph, Policy, Sessions, Versions, Walks, retrain, train
from daskw2v.store.storage import Store
from tests.support.days import write_day

pd = pytest.importorskip("pandas")


def contents(folder):
    return {path: folder.read_bytes(path) for path in folder.sizes()}


def neighbour_of(top, work):
    """Fill the folder beside a work directory that its name matches with what that has; return the folder."""
    beside = top / "w1xy"
    for path in work.sizes():
        below, _, name = path.rpartition("/")
        (beside / below).write_bytes(name, b"of others")
    return beside


@pytest.mark.sampled(1)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("where", ["memory", "local"])
def test_nights__reach_their_work_directory_alone(where, client, tmp_path):
    text = tmp_path / "text[0]"
    text.mkdir()
    top = Store(str(tmp_path / "top") if where == "local" else f"memory://{tmp_path.name}")
    work = top / "w[1]?*"
    for day in range(3):
        write_day(text, day)
        if day == 1:
            beside = neighbour_of(top, work)
            before = contents(beside)
        summary = retrain(
            str(text),
            work=work.url,
            params=PARAMS,
            resources=ONE,
            gates=LOOSE,
            client=client,
            listener=None,
            policy=Policy(keep=2),
        )
        assert summary.version.startswith(f"v000{day + 1}-")
    Versions(work).gc(keep=1, min_age=0)
    assert contents(beside) == before
    assert [version.name for version in Versions(work).all()][-1] == summary.version
    assert sorted(top.children()) == ["w1xy", "w[1]?*"]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_events_and_walks__are_read_and_written_where_they_are_named(suffix, client, tmp_path):
    random = np.random.default_rng(2)
    columns = {name: random.integers(0, n, 2000) for name, n in (("user", 60), ("item", 40), ("time", 5000))}
    frame, file = pd.DataFrame(columns), f"{tmp_path}/e[1].{suffix}"
    (frame.to_parquet if suffix == "parquet" else frame.to_csv)(file, index=False)
    (tmp_path / f"e1.{suffix}").write_text("of others")
    edges = tmp_path / "edges[1].txt"
    edges.write_text("".join(f"{a} {(a * 7 + b) % 50}\n" for a in range(50) for b in range(1, 4)))
    work = Store(f"memory://{tmp_path.name}") / "w[1]?*"
    graph = Graph(str(edges), EdgeList(), Walks(number=2, length=9))
    for inputs, words in ((Events(file, Sessions(gap="50")), 40), (graph, 50)):
        params = PARAMS.replace(min_count=1, sample=0)
        vectors = train(inputs, work=work.url, params=params, resources=ONE, client=client, listener=None)
        assert len(vectors) == words
        before = contents(neighbour_of(Store(f"memory://{tmp_path.name}"), work))
        again = train(inputs, work=work.url, params=params, resources=ONE, client=client, listener=None)
        assert again.url == vectors.url
        assert contents(Store(f"memory://{tmp_path.name}/w1xy")) == before
