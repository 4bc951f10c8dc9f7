"""Walks along a metapath: those of the reference, in memory and through partitions, and what is refused."""

import json
from collections import Counter
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from daskw2v import EdgeList, Graph, Resources, Walks, train
from daskw2v.errors import InputError, ParameterError, StoreError
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.sequences import graph as graphs
from daskw2v.sequences import numbering, rounds
from daskw2v.sequences import walks as module
from daskw2v.sequences.graph import build_graph, read_graph
from daskw2v.sequences.numbering import read_names, read_types
from daskw2v.sequences.reference import metapath_walk
from daskw2v.sequences.rows import graph_bytes, load_graph
from daskw2v.sequences.steps import Metapath, StepRule, encode_metapath, shuffle_part, walk
from daskw2v.sequences.walks import write_walks
from daskw2v.store.storage import Store

RANDOM = np.random.default_rng(7)
NODES, LENGTH = 90, 9
TYPES = [("author", "paper", "venue")[kind] for kind in RANDOM.choice(3, NODES, p=[0.4, 0.5, 0.1])]
METAPATH = ("author", "paper", "venue", "paper", "author")
# All nodes; some without a neighbour of the next type. Sums of these weights are exact, in any order
WEIGHTS = (RANDOM.integers(1, 20, 160) / 4).tolist()
EDGES = [(node, (node * 7 + 1) % NODES, 1.0) for node in range(NODES)]
EDGES += list(zip(*RANDOM.integers(0, NODES, (2, 160)).tolist(), WEIGHTS, strict=True))
TYPED = EdgeList(source_type="from_type", target_type="to_type")
ALONG = Walks(number=2, length=LENGTH, metapath=METAPATH)


def table(edges=EDGES, types=TYPES):
    """Return edges as a table."""
    source, target, weight = zip(*edges, strict=True)
    kinds = {"from_type": [types[node] for node in source], "to_type": [types[node] for node in target]}
    return pa.table({"source": source, "target": target, "weight": weight, **kinds})


def write(path, edges=EDGES, types=TYPES):
    pq.write_table(table(edges, types), path, row_group_size=40)
    return path


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    return write(tmp_path_factory.mktemp("edges") / "edges.parquet")


def walked(inputs, work, client, walks=ALONG, layout=TYPED, partitions=1, block_size="1 MiB"):
    walks, resources = walks.replace(partitions=partitions), Resources(block_size=block_size)
    return write_walks(str(inputs), Store(str(work)), layout, walks, resources, lambda: client, None)


def expected(neighbours, walks=ALONG):
    """Return all walks in their order, by the reference."""
    actual = []
    for number in range(walks.number):
        order = shuffle_part(NODES, stream(walks.seed, Purpose.START, number), 0, 1).tolist()
        key = stream(walks.seed, Purpose.WALK, number)
        first = [node for node in order if TYPES[node] == walks.metapath[0]]
        actual += [metapath_walk(neighbours, TYPES, walks.metapath, walks.length, key, node) for node in first]
    return actual


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("weight", "directed"), [(None, False), ("weight", True), ("weight", False)])
def test_walks__are_those_of_the_reference(
    edges, client, tmp_path, monkeypatch, weights_of, lists_in, weight, directed
):
    layout = TYPED.replace(weight=weight, directed=directed)
    known = [(s, t, w if weight else 1.0) for s, t, w in EDGES]
    wanted = expected(weights_of(known, directed))
    assert lists_in(walked(edges, tmp_path / "a", client, layout=layout)) == wanted
    assert len(wanted) == 2 * TYPES.count("author")
    assert len({len(walk) for walk in wanted}) > 2
    for name, value in (("TASK_WALKERS", 20), ("TASK_STEPS", 30), ("TASK_FILES", 2)):
        monkeypatch.setattr(rounds, name, value)
    monkeypatch.setattr(module, "FILE_NODES", 60)
    files = walked(edges, tmp_path / "b", client, layout=layout, partitions=4)
    assert len(files) > 10
    assert lists_in(files) == wanted


@pytest.mark.slow
def test_walks__are_the_same_on_two_workers(edges, client, tmp_path, monkeypatch, lists_in):
    wanted = lists_in(walked(edges, tmp_path / "a", client))
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as others:
        for partitions in (1, 8):
            actual = walked(edges, tmp_path / f"{partitions}", others, partitions=partitions, block_size=500)
            assert lists_in(actual) == wanted


def kernel_walks(graph, types, path, length=LENGTH, seed=1):
    """Walk from the nodes of the first type of a metapath of codes; return the walks."""
    first = np.flatnonzero(np.asarray(types) == path[0]).astype(np.int32)
    actual, lengths = np.full((len(first), length), -1, np.int32), np.empty(len(first), np.int64)
    metapath = Metapath(np.resize(np.array(path[:-1], np.uint8), length), max(types) + 1)
    walk(graph, first, StepRule(stream(seed, Purpose.WALK), 1.0, 1.0, metapath), actual, lengths)
    return [row[:n].tolist() for row, n in zip(actual, lengths, strict=True)]


SMALL = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9), st.sampled_from([1.0, 0.5, 3.0])), min_size=1, max_size=40
)


@given(
    SMALL,
    st.lists(st.integers(0, 2), min_size=10, max_size=10),
    st.booleans(),
    st.sampled_from([[0, 1, 0], [0, 0], [2, 1, 0, 1, 2]]),
)
def test_walk__steps_along_edges_to_the_next_type_and_ends_only_where_there_is_none(
    graph_of, weights_of, edges, types, directed, path
):
    edges, types = [*edges, (10, 10, 1.0)], [*types, 2]  # three types
    graph, known = graph_of(edges, directed, types), weights_of(edges, directed)
    wanted = np.resize(path[:-1], LENGTH + 1)
    for nodes in kernel_walks(graph, types, path):
        assert [types[node] for node in nodes] == wanted[: len(nodes)].tolist()
        assert all(after in known[here] for here, after in pairwise(nodes))
        onwards = [node for node in known[nodes[-1]] if types[node] == wanted[len(nodes)]]
        assert len(nodes) == LENGTH or not onwards


def test_walk__steps_by_weight_among_the_next_type(graph_of):
    """The heavy edges to the other type do not count."""
    weights, types = [1.0, 2.0, 5.0, 0.5, 40.0], [0, 1, 1, 1, 1, 2]
    graph = graph_of([(0, node, weight) for node, weight in enumerate(weights, 1)], False, types)
    seen = Counter()
    for seed in range(20):
        (nodes,) = kernel_walks(graph, types, [0, 1, 0], 2001, seed)
        seen.update(nodes[1::2])
    shares = np.array(weights[:4]) / sum(weights[:4])
    assert sum(seen.values()) == 20 * 1000
    assert {*seen} == {1, 2, 3, 4}
    assert chisquare([seen[node] for node in range(1, 5)], shares * 20_000).pvalue > 1e-3


def test_metapath__is_repeated_and_shares_the_node_where_it_begins():
    path = encode_metapath(ALONG, {"author": 3, "paper": 4, "venue": 1})
    assert (path.types.tolist(), path.n_types) == ([0, 1, 2, 1, 0, 1, 2, 1, 0], 3)
    path = encode_metapath(Walks(length=4), {})
    assert (path.types.tolist(), path.n_types) == ([0, 0, 0, 0], 1)


def test_graph__has_the_same_bits_however_edges_are_cut(edges, client, tmp_path, monkeypatch):
    def built(folder, block_size):
        how = TYPED.replace(weight="weight"), Resources(block_size=block_size), lambda: client, None
        graph = build_graph(str(edges), Store(str(folder)), *how)
        rows = load_graph(graph.folder, graph.n_nodes, graph.rows, graph.n_types)
        return graph, [read_names(graph.folder, graph.names).to_numpy(), read_types(graph.folder, graph.names), *rows]

    graph, whole = built(tmp_path / "a", "1 MiB")
    assert graph.types == Counter(TYPES)
    assert list(graph.types) == ["author", "paper", "venue"]
    assert [list(graph.types)[code] for code in whole[1]] == TYPES
    assert sum(array.nbytes for array in whole[2:]) == graph_bytes(NODES * 3, graph.n_edges, even=False)
    assert read_graph(graph.folder, json.loads(json.dumps(graph.folder.read_manifest()))) == graph
    for where, name, value in (
        (numbering, "PIECE", 1),
        (numbering, "FILE_NAMES", 7),
        (numbering, "RANGE_NAMES", 40),
        (graphs, "PART_EDGES", 50),
    ):
        monkeypatch.setattr(where, name, value)
    parts = built(tmp_path / "b", 1)[1]
    assert len(list(tmp_path.glob("b/graphs/*/names/*"))) > 4
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_walks__are_the_same_from_text_csv_and_parquet(edges, client, tmp_path, lists_in):
    wanted = lists_in(walked(edges, tmp_path, client, layout=TYPED.replace(weight="weight")))
    pa_csv.write_csv(table(), tmp_path / "edges.csv")
    (tmp_path / "edges.txt").write_text("".join(f"{s} {t} {w} {TYPES[s]}\t{TYPES[t]} more\n" for s, t, w in EDGES))
    coded = table()
    for name in ("from_type", "to_type"):
        coded = coded.set_column(coded.schema.get_field_index(name), name, coded[name].dictionary_encode())
    pq.write_table(coded, tmp_path / "coded.parquet")
    for name in ("edges.csv", "edges.txt", "coded.parquet"):
        assert lists_in(walked(tmp_path / name, tmp_path, client, layout=TYPED.replace(weight="weight"))) == wanted


CODES = pa.array([10, 9])


@pytest.mark.parametrize("types", [CODES.cast(pa.int8()), CODES.dictionary_encode()], ids=["int8", "dictionary"])
def test_types__may_be_integers(client, tmp_path, lists_in, types):
    columns = {"source": [5, 6], "target": [6, 7], "from_type": types, "to_type": [9, 10]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    actual = walked(tmp_path / "a.parquet", tmp_path, client, Walks(number=1, length=2, metapath=("10", "9", "10")))
    assert sorted(lists_in(actual)) == [[5, 6], [7, 6]]


def test_walks__without_a_metapath_refuse_types(edges, client, tmp_path):
    for make in (lambda: Graph(str(edges), TYPED), lambda: walked(edges, tmp_path, client, Walks())):
        with pytest.raises(ParameterError, match=r"source_type='from_type' .* change nothing without metapath"):
            make()


def test_names_of_results__are_those_from_before_there_were_types():
    edges = {"source": "source", "target": "target", "weight": None, "directed": False, "strings": False}
    walks = {"number": 10, "length": 80, "p": 1.0, "q": 1.0, "seed": 1}
    assert list(EdgeList().described.items()) == list(edges.items())
    assert list(Walks(partitions=2).described.items()) == list(walks.items())
    assert TYPED.described == {**edges, "source_type": "from_type", "target_type": "to_type"}
    assert Walks(metapath=["a", "a"]).described == {**walks, "metapath": ("a", "a")}


def test_graph__is_trained_on_along_a_metapath(edges, client, tmp_path):
    graph = Graph(str(edges), TYPED, Walks(number=3, length=LENGTH, metapath=("venue", "paper", "venue")))
    params = Graph.params.replace(vector_size=8, epochs=1)
    vectors = train(graph, work=tmp_path, params=params, client=client, listener=None)
    words = {int(word) for word in vectors.index_to_key}
    assert {TYPES[node] for node in words} == {"venue", "paper"}
    assert words >= {node for node in range(NODES) if TYPES[node] == "venue"}


@pytest.mark.parametrize("options", [{"source_type": "a"}, {"target_type": "a"}])
def test_edges__with_one_column_of_types_are_refused(options):
    with pytest.raises(ParameterError, match=r"source_type=.*target_type=.*for both, or for none"):
        EdgeList(**options)


@pytest.mark.parametrize("options", [{"source_type": "a", "target_type": "a"}, {"weight": "source"}])
def test_edges__whose_columns_have_one_name_are_refused(options):
    with pytest.raises(ParameterError, match=r"Columns of edges have the names .* a name of its own"):
        EdgeList(**options)


@pytest.mark.parametrize("metapath", [("a",), ("a", "b"), ("a", "", "a"), ("a", 1, "a"), "aba", None])
def test_metapath__that_cannot_be_repeated_is_refused(metapath):
    with pytest.raises(ParameterError, match=r"metapath=.* is not a list of two or more types, the last of which"):
        Walks(metapath=metapath)


@pytest.mark.parametrize("options", [{"p": 0.5}, {"q": 2}])
def test_metapath__with_p_or_q_is_refused(options):
    with pytest.raises(ParameterError, match=r"p=.* and q=.*metapath=\('a', 'b', 'a'\) depend on weights alone"):
        Walks(metapath=("a", "b", "a"), **options)


def test_metapath__needs_types(edges, client, tmp_path):
    for make in (lambda: Graph(str(edges), walks=ALONG), lambda: walked(edges, tmp_path, client, layout=EdgeList())):
        with pytest.raises(ParameterError, match=r"metapath=.*the edges have no types.*source_type and target_type"):
            make()


def test_metapath__of_an_unknown_type_is_refused(edges, client, tmp_path):
    walks = Walks(metapath=("author", "journal", "author"))
    with pytest.raises(ParameterError, match=r"type 'journal'.*The types of nodes are: author, paper, venue"):
        walked(edges, tmp_path, client, walks)


@pytest.mark.parametrize("piece", [1, 1 << 21])
def test_node__of_two_types_is_refused(client, tmp_path, monkeypatch, piece):
    monkeypatch.setattr(numbering, "PIECE", piece)
    columns = {"source": [1, 2], "target": [2, 3], "from_type": ["a", "c"], "to_type": ["b", "a"]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=1)
    with pytest.raises(InputError, match="node 2 has two types, b and c"):
        walked(tmp_path / "a.parquet", tmp_path, client, block_size=1)


@pytest.mark.parametrize("block_size", [600, "1 MiB"])
def test_types__of_which_there_are_too_many_are_refused(client, tmp_path, block_size):
    """Both where one piece has them, and where several have them together."""
    edges, types = [(node, node + 1, 1.0) for node in range(64)], [f"t{node:02}" for node in range(65)]
    path = write(tmp_path / "a.parquet", edges, types)
    with pytest.raises(InputError, match=r"65 types \(t00, t01, t02, \.\.\.\); at most 64"):
        walked(path, tmp_path, client, block_size=block_size)


def test_types__may_be_64(client, tmp_path, lists_in):
    edges, types = [(node, node + 1, 1.0) for node in range(63)], [f"t{node:02}" for node in range(64)]
    walks = Walks(number=1, length=3, metapath=("t63", "t62", "t63"))
    assert lists_in(walked(write(tmp_path / "a.parquet", edges, types), tmp_path, client, walks)) == [[63, 62, 63]]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.txt", "1 2 a\n", "at least 4"),
        ("a.csv", "source,target,from_type,to_type\n1,2,a,\n", r"edges without target type\."),
        ("a.csv", "source,target,from_type\n1,2,a\n", "no single column 'to_type'.*: source, target, from_type"),
    ],
)
def test_text__without_types_is_refused(client, tmp_path, name, content, problem):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=problem):
        walked(tmp_path / name, tmp_path, client)


def test_parquet__whose_types_are_no_names_is_refused(client, tmp_path):
    pq.write_table(table([(0, 1, 1.0)], [0.5, 1.5]), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"Types of nodes of .* are of type double"):
        walked(tmp_path / "a.parquet", tmp_path, client)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "types", [["author"], {"author": 0}, {"author": "1"}, {"author": 89}, {str(n): 1 for n in range(90)}], ids=str
)
def test_manifest__with_other_types_is_refused(edges, client, tmp_path, types):
    graph = build_graph(str(edges), Store(str(tmp_path)), TYPED, Resources(), lambda: client, None)
    with pytest.raises(StoreError, match=r"manifest\.json holds (no )?types of"):
        read_graph(graph.folder, {**graph.folder.read_manifest(), "types": types})
