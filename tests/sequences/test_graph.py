import json
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskw2v.config.resources import Resources
from daskw2v.errors import ClusterError, DamageError, InputError, ParameterError, StoreError
from daskw2v.sequences import graph as graphs
from daskw2v.sequences import numbering
from daskw2v.sequences.graph import build_graph, choose_n_partitions
from daskw2v.sequences.numbering import read_names
from daskw2v.sequences.rows import StoredEdges, load_graph
from daskw2v.sequences.settings import EdgeList
from daskw2v.store.arrays import write_array
from daskw2v.store.storage import Store

WEIGHTED = EdgeList(weight="weight")
EDGES = st.lists(
    st.tuples(st.integers(-3, 5), st.integers(-3, 5), st.sampled_from([1.0, 0.1, 3.0, 1e-9])), min_size=1, max_size=40
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("graphs")


def write(path, edges, strings=False):
    name = (lambda node: f"n{node}") if strings else int
    columns = [[name(s) for s, _, _ in edges], [name(t) for _, t, _ in edges], [w for _, _, w in edges]]
    pq.write_table(pa.table(dict(zip(("source", "target", "weight"), columns, strict=True))), path, row_group_size=3)
    return path


def stored_graph(inputs, folder, client, edges=WEIGHTED, block_size=1):
    return build_graph(inputs, Store(str(folder)), edges, Resources(block_size=block_size), lambda: client)


def built(inputs, folder, client, edges=WEIGHTED, block_size=1):
    stored = stored_graph(inputs, folder, client, edges, block_size)
    names = read_names(stored.folder, stored.names).to_pylist()
    return names, load_graph(stored.folder, len(names), stored.rows)


def rows_of(names, graph):
    """Return {source: {target: weight}} of a graph in memory."""
    actual = {}
    for node, (first, last) in enumerate(pairwise(graph.starts)):
        sums = graph.weights[first:last] if len(graph.weights) else np.arange(1, last - first + 1)
        targets = graph.targets[first:last].tolist()
        assert targets == sorted(set(targets))
        actual[names[node]] = dict(zip([names[t] for t in targets], np.diff(sums, prepend=0), strict=True))
    return actual


@pytest.mark.slow
@settings(max_examples=15)
@given(EDGES, st.booleans(), st.booleans(), st.booleans())
def test_graph__is_the_sum_of_its_edges(client, folder, weights_of, edges, directed, strings, weighted):
    path = write(folder / "a.parquet", edges, strings)
    names, graph = built(path, folder, client, EdgeList(weight="weight" if weighted else None, directed=directed))
    expected = weights_of([(s, t, w if weighted else 1.0) for s, t, w in edges], directed)
    if strings:
        expected = {f"n{s}": {f"n{t}": w for t, w in row.items()} for s, row in expected.items()}
    assert names == sorted(expected)
    actual = rows_of(names, graph)
    for node, row in expected.items():
        assert actual[node] == pytest.approx(row)
    assert bool(len(graph.weights)) == any(w != 1 for row in expected.values() for w in row.values())


@pytest.mark.slow
def test_graph__has_the_same_bits_however_edges_are_cut_and_written(client, tmp_path, monkeypatch):
    random = np.random.default_rng(1)
    edges = list(zip(*random.integers(0, 50, (2, 2000)).tolist(), random.random(2000).tolist(), strict=True))
    whole = built(write(tmp_path / "a.parquet", edges), tmp_path, client, block_size="1 MiB")
    for module, name, value in (
        (numbering, "PIECE", 1),
        (graphs, "PART_EDGES", 100),
        (numbering, "FILE_NAMES", 7),
        (numbering, "RANGE_NAMES", 40),
    ):
        monkeypatch.setattr(module, name, value)
    (tmp_path / "b.txt").write_text("".join(f"{s} {t} {w!r}\n" for s, t, w in edges[::-1]))
    parts = built(tmp_path / "b.txt", tmp_path, client, block_size=3000)
    assert len(list(tmp_path.glob("graphs/*/names/*"))) > 4
    assert whole[0] == parts[0]
    for a, b in zip(whole[1], parts[1], strict=True):
        np.testing.assert_array_equal(a, b)


def test_graph__is_built_once_and_leaves_nothing_else(client, tmp_path):
    path = write(tmp_path / "a.parquet", [(1, 2, 1.0), (2, 3, 1.0)])
    first = build_graph(path, Store(str(tmp_path)), WEIGHTED, Resources(), lambda: client)
    nothing_to_do = partial(pytest.fail, "nothing is left to do")
    assert build_graph(path, Store(str(tmp_path)), WEIGHTED, Resources(), nothing_to_do) == first
    assert sorted(Store(first.folder.url).children()) == ["manifest.json", "names", "rows"]
    assert len((first.folder / "names").children()) == 1


def test_graph__that_was_cut_short_does_not_read_a_block_again(client, tmp_path, monkeypatch):
    path, read = write(tmp_path / "a.parquet", [(i, i + 1, 1.0) for i in range(9)]), []
    read_edges = numbering.read_edges
    monkeypatch.setattr(
        numbering, "read_edges", lambda block, *rest: read.append(block.start) or read_edges(block, *rest)
    )

    def stop(progress):
        if progress.message.startswith("deal edges"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_graph(path, Store(str(tmp_path)), WEIGHTED, Resources(block_size=1), lambda: client, stop)
    assert sorted(read) == [0, 1, 2]
    names, graph = built(path, tmp_path, client)
    assert sorted(read) == [0, 1, 2]
    assert rows_of(names, graph)[4] == {3: 1, 5: 1}


def test_graph__without_edges_is_refused(client, tmp_path):
    (tmp_path / "a.txt").write_text("# nothing\n\n")
    with pytest.raises(InputError, match="There are no edges in 1 file"):
        built(tmp_path / "a.txt", tmp_path, client)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", [pa.uint64(), pa.string()], ids=str)
def test_graph__has_one_kind_of_nodes_in_all_files(client, tmp_path, monkeypatch, kind):
    monkeypatch.setattr(numbering, "FILE_NAMES", 1)
    monkeypatch.setattr(numbering, "RANGE_NAMES", 2)
    large = pa.array([str(2**64 - 1), "11", "3"]).cast(kind)
    pq.write_table(pa.table({"source": [11, 2, 3], "target": [2, 3, 1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"source": large, "target": large}), tmp_path / "b.parquet")
    names, graph = built([tmp_path / "a.parquet", tmp_path / "b.parquet"], tmp_path, client, EdgeList())
    numbers = [1, 2, 3, 11, 2**64 - 1]
    assert names == (numbers if kind == pa.uint64() else sorted(map(str, numbers)))
    eleven, two = large[1].as_py(), names[numbers.index(2)] if kind == pa.uint64() else "2"
    assert rows_of(names, graph)[eleven].keys() == {eleven, two}


@pytest.mark.parametrize("weights", [(1e308, 1e308), (1e299, 9.5e299)])
def test_graph__whose_weights_add_up_to_too_much_is_refused(client, tmp_path, weights):
    path = write(tmp_path / "a.parquet", [(1, 2, weights[0]), (1, 2 + (weights[0] < 1e300), weights[1])])
    with pytest.raises(InputError, match="add up to more than 1e\\+300"):
        built(path, tmp_path, client)


def one_worker(memory, threads):
    """A client of a worker with so much memory."""
    worker = {"memory_limit": memory, "nthreads": threads, "resources": {}}
    return SimpleNamespace(scheduler_info=lambda n_workers: {"workers": {"tcp://a": worker}})


@pytest.fixture(scope="module")
def dense(client, tmp_path_factory):
    """A graph of 31 nodes, of which some 4 KB are rows."""
    folder = tmp_path_factory.mktemp("dense")
    path = write(folder / "a.parquet", [(a, b, 1.0) for a in range(31) for b in range(a)])
    return stored_graph(path, folder, client)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("memory", "asked", "what"),
    [
        (5000, 1, "The graph of 31 nodes and 930 edges"),
        (2500, 4, "The graph of 31 nodes and 930 edges in 4 partitions"),
        (1000, None, "The graph of 31 nodes and 930 edges in 8 partitions"),
    ],
)
def test_graph__that_fits_no_worker_is_refused(dense, memory, asked, what):
    with pytest.raises(ClusterError, match=f"{what} takes .* of each worker's memory.*Give workers a memory_limit of"):
        choose_n_partitions(dense, asked, one_worker(memory, 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("memory", "threads", "n"), [(20_000, 1, 1), (20_000, 2, 1), (5000, 1, 4), (5000, 2, 8), (2500, 1, 8)]
)
def test_graph__is_divided_only_where_it_must_be(dense, memory, threads, n):
    assert choose_n_partitions(dense, None, one_worker(memory, threads)) == n


@pytest.mark.slow
def test_graph__is_divided_into_no_more_partitions_than_it_has_parts(dense, client):
    with pytest.raises(ParameterError, match="partitions=16, but this graph has 8 parts"):
        choose_n_partitions(dense, 16, client)


def test_graph__that_is_damaged_is_refused(client, tmp_path):
    stored = build_graph(
        write(tmp_path / "a.parquet", [(1, 2, 1.0)]), Store(str(tmp_path)), WEIGHTED, Resources(), lambda: client
    )
    names = next((tmp_path / "graphs").rglob("names-0.parquet"))
    names.write_bytes(names.read_bytes()[:-3])
    with pytest.raises(DamageError, match=r"names-0\.parquet is damaged"):
        read_names(stored.folder, stored.names)


def test_manifest__holds_plain_values(client, tmp_path):
    stored = build_graph(
        write(tmp_path / "a.parquet", [(1, 2, 1.0)]), Store(str(tmp_path)), WEIGHTED, Resources(), lambda: client
    )
    assert json.dumps(stored.folder.read_manifest())
    assert stored.n_edges == 2


@pytest.mark.parametrize(
    ("name", "values", "problem"),
    [
        ("degrees", [5, -3, 1], "does not add up to 3 edges"),
        ("degrees", [2, 0, 2], "does not add up to 3 edges"),
        ("degrees", [2, 1], r"shape \(2,\), not \(3,\)"),
        ("degrees", [2.0, 0.0, 1.0], "holds float64"),
        ("targets", np.array([1, 3, 0], np.int32), r"other nodes than 0\.\.2"),
        ("targets", np.array([1, -1, 0], np.int32), r"other nodes than 0\.\.2"),
        ("targets", np.array([1], np.int32), r"shape \(1,\), not \(3,\)"),
        ("weights", [1.0, np.nan, 1.0], "no weight"),
        ("weights", [1.0, -1.0, 1.0], "no weight"),
        ("weights", [1.0], r"shape \(1,\), not \(3,\)"),
    ],
)
def test_load_graph__refuses_what_kernels_would_read_out_of_bounds(tmp_path, name, values, problem):
    folder = Store(str(tmp_path))
    group = (folder / "rows").create_group()
    arrays = {"degrees": np.array([2, 0, 1]), "targets": np.array([1, 2, 0], np.int32), "weights": np.ones(3)}
    for array, content in {**arrays, name: np.asarray(values)}.items():
        write_array(group, array, content)
    with pytest.raises(StoreError, match=rf"rows/{name} .*{problem}"):
        load_graph(folder, 3, [StoredEdges("rows", 3, even=False)])


def test_build_graph__waits_for_files_as_long_as_asked(client, tmp_path, monkeypatch):
    plan_blocks, waited = graphs.plan_blocks, []

    def recorded(sources, block_bytes, options, timeout):
        waited.append(timeout)
        return plan_blocks(sources, block_bytes, options, timeout)

    monkeypatch.setattr(graphs, "plan_blocks", recorded)
    path = write(tmp_path / "edges.parquet", [(1, 2, 1.0)])
    build_graph(path, Store(str(tmp_path / "work")), WEIGHTED, Resources(store_timeout=7), lambda: client)
    assert waited == [7]
