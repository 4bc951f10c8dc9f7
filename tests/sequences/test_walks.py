import os
import shutil
import signal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster

from daskw2v import Graph, Params, train
from daskw2v.config.resources import Resources
from daskw2v.errors import ParameterError
from daskw2v.sequences import walks as module
from daskw2v.sequences.settings import EdgeList, Walks
from daskw2v.sequences.walks import write_walks
from daskw2v.store.storage import Store

WALKS = Walks(number=3, length=20, p=0.5, q=2)
NODES = 120


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    """Two groups of nodes, most edges within one."""
    random = np.random.default_rng(2)
    source, target = random.integers(0, NODES, (2, 4000))
    kept = (source % 2 == target % 2) | (random.random(4000) < 0.05)
    path = tmp_path_factory.mktemp("edges") / "a.parquet"
    table = pa.table({"source": source[kept], "target": target[kept]})
    pq.write_table(table, path, row_group_size=300)
    return path


def walked(inputs, work, client, walks=WALKS, edges=None, **options):
    how = edges or EdgeList(), walks, Resources(block_size=2000)
    return write_walks(inputs, Store(str(work)), *how, client if callable(client) else lambda: client, **options)


def no_cluster():
    pytest.fail("nothing is left to do")


@pytest.fixture(scope="module")
def undisturbed(edges, client, tmp_path_factory, lists_in):
    return lists_in(walked(edges, tmp_path_factory.mktemp("walks"), client))


def test_walks__start_from_each_node_in_each_round(edges, undisturbed):
    table = pq.read_table(edges)
    ways = set(zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True))
    orders = [[row[0] for row in undisturbed[i : i + NODES]] for i in range(0, 3 * NODES, NODES)]
    assert [sorted(order) for order in orders] == [list(range(NODES))] * 3
    assert orders[0] != orders[1] != orders[2]
    assert all(len(row) == 20 for row in undisturbed)
    assert all((a, b) in ways or (b, a) in ways for row in undisturbed for a, b in pairwise(row))


def test_walks__are_the_same_in_many_files(edges, undisturbed, client, tmp_path, monkeypatch, lists_in):
    monkeypatch.setattr(module, "FILE_NODES", 300)
    files = walked(edges, tmp_path, client)
    assert len(files) == 24
    assert lists_in(files) == undisturbed


@pytest.mark.sampled(1)
@pytest.mark.parametrize("partitions", [1, 2])
def test_walks__of_few_nodes_share_files(client, tmp_path, monkeypatch, lists_in, partitions):
    """Files of several numbers, the last of fewer, hold the walks of files of one number each."""
    (tmp_path / "a.txt").write_text("".join(f"{node} {(node + 1) % 5}\n" for node in range(5)))
    walks, actual = Walks(number=7, length=4, partitions=partitions), []
    for nodes in (1 << 21, 60, 20):
        monkeypatch.setattr(module, "FILE_NODES", nodes)
        actual.append(walked(tmp_path / "a.txt", tmp_path, client, walks))
    assert [len(files) for files in actual] == [1, 3, 7]
    one, some, each = map(lists_in, actual)
    assert one == some == each
    assert len(each) == 5 * 7


@pytest.mark.slow
def test_walks__are_the_same_when_workers_are_killed(edges, undisturbed, tmp_path, monkeypatch, lists_in):
    monkeypatch.setattr(module, "FILE_NODES", 300)
    killed = []
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:

        def kill(progress):
            if progress.message.startswith(("deal edges: 1 of", "walk: 1 of")):
                killed.append(client.run(os.getpid).popitem()[1])
                os.kill(killed[-1], signal.SIGKILL)

        files = walked(edges, tmp_path, client, listener=kill)
    assert len(killed) == 2
    assert lists_in(files) == undisturbed


def test_walks__go_on_where_they_were_cut_short(edges, undisturbed, client, tmp_path, lists_in):
    def stop(progress):
        if progress.stage == "walk" and progress.done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        walked(edges, tmp_path, client, listener=stop)
    first = sorted(tmp_path.glob("walks/*/part-*.parquet"))
    assert first
    assert not list(tmp_path.glob("walks/*/manifest.json"))
    written = {path: path.stat().st_mtime_ns for path in first}
    assert lists_in(walked(edges, tmp_path, client)) == undisturbed
    assert {path: path.stat().st_mtime_ns for path in first} == written
    assert lists_in(walked(edges, tmp_path, no_cluster)) == undisturbed


def test_walks__differ_by_their_settings(edges, undisturbed, client, tmp_path, lists_in):
    for other in (Walks(number=3, length=20, p=0.5, q=2, seed=2), Walks(number=3, length=20)):
        assert lists_in(walked(edges, tmp_path, client, other)) != undisturbed


def test_walks__end_at_dangling_nodes_and_stay_at_loops(client, tmp_path, lists_in):
    (tmp_path / "a.txt").write_text("a b\nb c\nd d\n")
    files = walked(
        tmp_path / "a.txt", tmp_path, client, Walks(number=1, length=4), EdgeList(directed=True, strings=True)
    )
    assert sorted(lists_in(files)) == [["a", "b", "c"], ["b", "c"], ["c"], ["d"] * 4]


def test_walks__train_vectors_that_know_the_groups(edges, client, tmp_path):
    files = walked(edges, tmp_path, client, Walks(number=5, length=20))
    params = Params(column="walk", vector_size=16, min_count=1, sample=0)
    vectors = train(files, work=tmp_path, params=params, resources=Resources(threads=1), client=client)
    assert len(vectors) == NODES
    units = vectors[[str(node) for node in range(NODES)]]
    units /= np.linalg.norm(units, axis=1)[:, None]
    cosines = units @ units.T
    same = np.equal.outer(np.arange(NODES) % 2, np.arange(NODES) % 2) & ~np.eye(NODES, dtype=bool)
    assert cosines[same].mean() > cosines[~same].mean() + 0.2


def test_walks__that_are_equal_are_the_same_files(edges, client, tmp_path):
    given = [Walks(number=np.int64(1), length=5, p=1, q=2), Walks(number=1, length=np.int32(5), p=1.0, q=np.float32(2))]
    assert len({tuple(walked(edges, tmp_path, client, walks)) for walks in given}) == 1


@pytest.mark.parametrize(
    "options", [{"number": 0}, {"length": 0}, {"length": 2.5}, {"p": 0}, {"q": -1.0}, {"q": float("nan")}, {"seed": -1}]
)
def test_walks__refuse_what_is_out_of_range(options):
    with pytest.raises(ParameterError, match=f"{next(iter(options))}="):
        Walks(**options)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("damaged", ["walks/*/part-000000.parquet", "graphs/*/rows/0/*/targets/c/0"])
def test_walks__that_are_damaged_are_made_again(edges, client, tmp_path, damaged):
    graph = Graph(str(edges), walks=Walks(number=1, length=5))
    resources, params = Resources(threads=1), Params(vector_size=8, min_count=1, sample=0, epochs=1)

    def build():
        return train(graph, work=tmp_path, params=params, resources=resources, client=client, listener=None)

    whole = build()
    (file,) = tmp_path.glob(damaged)
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    for folder in ("shards", "corpora", "runs", "models", "vocabulary", *(["walks"] if "graphs" in damaged else [])):
        shutil.rmtree(tmp_path / folder, ignore_errors=True)
    np.testing.assert_array_equal(np.asarray(build().vectors), np.asarray(whole.vectors))
    (again,) = tmp_path.glob(damaged)
    assert again.read_bytes() == content
