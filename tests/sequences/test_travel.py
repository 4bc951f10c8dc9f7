"""Walks that travel through partitions are the walks of a graph in memory."""

import os
import signal
from dataclasses import replace

import numpy as np
import pytest
from distributed import Client, LocalCluster

from daskw2v import EdgeList, Resources, Walks
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.sequences import rounds
from daskw2v.sequences import walks as module
from daskw2v.sequences.rows import GraphRows, as_readonly
from daskw2v.sequences.steps import (
    FIRST,
    LENGTH,
    MAX_ASKED,
    NARROW,
    NODE,
    PREVIOUS,
    TRIES,
    WIDE,
    BroughtRows,
    Metapath,
    Partition,
    StepRule,
    advance,
    find_partitions,
    walk,
)
from daskw2v.sequences.walks import write_walks
from daskw2v.store.storage import Store

RANDOM = np.random.default_rng(5)
# A hub, a chain that ends where edges are directed, a loop, parallel edges
EDGES = [(0, node) for node in range(1, 40)] + [(n, n + 1) for n in range(40, 47)] + [(3, 3), (50, 50), (1, 2), (1, 2)]
EDGES += list(zip(*RANDOM.integers(0, 40, (2, 150)).tolist(), strict=True))


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    """A file of weighted edges."""
    path = tmp_path_factory.mktemp("edges") / "edges.txt"
    weights = RANDOM.uniform(0.1, 5, len(EDGES)).tolist()
    path.write_text("".join(f"{s} {t} {w!r}\n" for (s, t), w in zip(EDGES, weights, strict=True)))
    return path


def walked(inputs, work, client, walks, partitions, edges=None, **options):
    walks = replace(walks, partitions=partitions)
    return write_walks(inputs, Store(str(work)), edges or EdgeList(), walks, Resources(), lambda: client, **options)


# p, q, weight, directed, partitions
CASES = [
    (1, 1, None, False, 4),
    (1, 1, "weight", True, 8),
    (0.5, 2, None, False, 2),
    (0.5, 2, "weight", True, 4),
    (0.01, 1, None, False, 4),
    (4, 0.25, "weight", False, 8),
    (1000, 1000, "weight", False, 4),
    (1e6, 1e6, None, True, 8),
]


def anywhere(length):
    """Return the metapath of walks on nodes without types."""
    return Metapath(np.zeros(length, np.uint8), 1)


def travelled(graph, n, p, q, path, most):
    """Let walkers go through `n` partitions, whose trails have room for `most` steps; return the walks."""
    length, biased = len(path.types), (p, q) != (1, 1)
    n_nodes = (len(graph.starts) - 1) // path.n_types
    rule = StepRule(stream(1, Purpose.WALK), 1 / p, 1 / q, path)
    parts = [Partition(rows_of(graph, range(k, n_nodes, n), path.n_types), k, n) for k in range(n)]
    walkers = np.zeros((n_nodes, WIDE if biased else NARROW), np.int32)
    walkers[:, FIRST], walkers[:, LENGTH], walkers[:, NODE] = np.arange(n_nodes), 1, np.arange(n_nodes)
    walkers[:, PREVIOUS : PREVIOUS + 1] = -1
    walks, trail, rounds = np.full((n_nodes, length), -1, np.int32), np.empty((most, 3), np.int32), 0
    walks[:, 0] = np.arange(n_nodes)
    while len(walkers):
        moved, to, rounds = [], find_partitions(walkers, n), rounds + 1
        for part in parts:
            here, at = walkers[to == part.number], 0
            previous = np.unique(here[:, PREVIOUS]) if biased else np.empty(0, np.int32)
            brought = BroughtRows(plain_array(previous), np.arange(len(previous)), rows_of(graph, previous))
            while at < len(here):
                at, steps = advance(part, brought, rule, here, at, trail)
                walks[trail[:steps, 0], trail[:steps, 1]] = trail[:steps, 2]
            moved.append(here[here[:, NODE] >= 0])
        walkers = np.concatenate(moved)
        assert rounds < length * 2 * (TRIES // MAX_ASKED + 2), "walkers are lost"
    return walks


def rows_of(graph, nodes, n_types=1):
    rows = [node * n_types + kind for node in nodes for kind in range(n_types)]
    slices = [slice(graph.starts[row], graph.starts[row + 1]) for row in rows]
    targets = np.concatenate([graph.targets[row] for row in slices] or [np.empty(0, np.int32)])
    weights = np.concatenate([graph.weights[row] for row in slices] or [np.empty(0)])
    return as_readonly(GraphRows(np.cumsum([0, *(row.stop - row.start for row in slices)]), targets, weights))


def plain_array(array):
    array.setflags(write=False)
    return array


@pytest.mark.sampled(5)
@pytest.mark.parametrize("most", [30, 1000])
@pytest.mark.parametrize(("p", "q", "weight", "directed", "n"), CASES)
def test_walkers__walk_as_on_the_whole_graph(graph_of, p, q, weight, directed, n, most):
    weights = RANDOM.uniform(0.1, 5, len(EDGES)) if weight else np.ones(len(EDGES))
    graph = graph_of([(*edge, weight) for edge, weight in zip(EDGES, weights.tolist(), strict=True)], directed)
    nodes = np.arange(len(graph.starts) - 1, dtype=np.int32)
    walks, lengths = np.full((len(nodes), 30), -1, np.int32), np.empty(len(nodes), np.int64)
    walk(graph, nodes, StepRule(stream(1, Purpose.WALK), 1 / p, 1 / q, anywhere(30)), walks, lengths)
    np.testing.assert_array_equal(travelled(graph, n, p, q, anywhere(30), most), walks)
    assert (lengths == 30).any()
    assert not directed or (lengths < 30).any()


@pytest.mark.parametrize("most", [30, 1000])
@pytest.mark.parametrize(("weight", "directed", "n"), [(False, False, 4), (True, True, 8)])
def test_walkers__walk_along_a_metapath_as_on_the_whole_graph(graph_of, weight, directed, n, most):
    weights = RANDOM.uniform(0.1, 5, len(EDGES)) if weight else np.ones(len(EDGES))
    edges = [(*edge, weight) for edge, weight in zip(EDGES, weights.tolist(), strict=True)]
    graph = graph_of(edges, directed, RANDOM.integers(0, 3, 51))
    path = Metapath(np.resize(np.array([2, 0, 1, 0], np.uint8), 30), 3)
    walks, lengths = np.full((51, 30), -1, np.int32), np.empty(51, np.int64)
    walk(graph, np.arange(51, dtype=np.int32), StepRule(stream(1, Purpose.WALK), 1.0, 1.0, path), walks, lengths)
    np.testing.assert_array_equal(travelled(graph, n, 1, 1, path, most), walks)
    assert len({*lengths.tolist()}) > 2


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("p", "q", "weight", "directed", "n"),
    [CASES[1], CASES[3], *(pytest.param(*case, marks=pytest.mark.slow) for case in (CASES[0], CASES[2], CASES[6]))],
)
def test_walks__are_the_same_in_partitions(edges, client, tmp_path, monkeypatch, lists_in, p, q, weight, directed, n):
    walks, layout = Walks(number=2, length=6, p=p, q=q), EdgeList(weight=weight, directed=directed)
    monkeypatch.setattr(module, "FILE_NODES", 60)
    whole = lists_in(walked(edges, tmp_path / "a", client, walks, 1, layout))
    for name, value in (("TASK_WALKERS", 20), ("TASK_STEPS", 30), ("TASK_FILES", 2)):
        monkeypatch.setattr(rounds, name, value)
    assert lists_in(walked(edges, tmp_path / "b", client, walks, n, layout)) == whole
    assert len(whole) == 2 * 49
    (folder,) = (tmp_path / "b" / "walks").iterdir()
    assert {path.name.split("-")[0] for path in folder.iterdir()} == {"part", "manifest.json"}


def test_walks__of_one_node_do_not_travel(edges, client, tmp_path, lists_in):
    nodes = sorted({node for edge in EDGES for node in edge})
    actual = lists_in(walked(edges, tmp_path, client, Walks(number=1, length=1), 2))
    assert sorted(actual) == [[node] for node in nodes]


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("n", [2, 4])
def test_walks__go_on_where_they_were_cut_short_between_partitions(edges, client, tmp_path, monkeypatch, lists_in, n):
    """With as many partitions they go on; a cluster of another size has others."""
    walks, moved, move = Walks(number=2, length=6, p=0.5, q=2), [], rounds._step_part
    monkeypatch.setattr(
        rounds, "_step_part", lambda *args: moved.append(args[-1].url.rpartition("/")[0]) or move(*args)
    )

    def stop(progress):
        if progress.message.startswith("walk 1, round 2: 1 of"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        walked(edges, tmp_path / "a", client, walks, 2, listener=stop)
    assert len(moved) > 6
    assert not list(tmp_path.glob("a/walks/*/rounds/2/1/0/*/*/walkers"))
    assert list(tmp_path.glob("a/walks/*/rounds/2/1/1/*/*/walkers"))
    before = set(moved)
    unfinished = {path for path in before if "/rounds/2/1/2/" in path and not os.path.exists(f"{path}/manifest.json")}
    moved.clear()
    actual = lists_in(walked(edges, tmp_path / "a", client, walks, n))
    assert len(moved) == len(set(moved))
    assert before & set(moved) <= unfinished
    assert actual == lists_in(walked(edges, tmp_path / "b", client, walks, 1))


@pytest.mark.slow
def test_walks__are_the_same_when_workers_are_killed_between_partitions(edges, client, tmp_path, lists_in):
    killed, walks = [], Walks(number=1, length=6, p=0.5, q=2)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as others:

        def kill(progress):
            if ", round 1: 1 of" in progress.message or progress.message.startswith(
                ("number nodes: 1 of", "write walk 0: 1 of")
            ):
                killed.append(others.run(os.getpid).popitem()[1])
                os.kill(killed[-1], signal.SIGKILL)

        files = walked(edges, tmp_path / "a", others, walks, 4, listener=kill)
    assert len(killed) == 3
    assert lists_in(files) == lists_in(walked(edges, tmp_path / "b", client, walks, 1))
