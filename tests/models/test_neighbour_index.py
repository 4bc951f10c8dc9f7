"""Indexes of vectors: their results, their files, and the checks of these."""

import json
import sys
import threading
import tracemalloc

import numpy as np
import pytest

import daskw2v
from daskw2v.errors import DamageError, MissingExtraError, ParameterError, StoreError
from daskw2v.models.index.kinds import EFFORT, KINDS, GraphIndex
from daskw2v.models.index.vectors import IndexedVectors, build_index
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored import index_files
from daskw2v.models.stored.blocks import normalize_rows
from daskw2v.models.stored.store import write_vocabulary
from daskw2v.models.stored.tables import create_model, write_table_rows
from daskw2v.models.versions.versions import publish
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary
from tests.support.command_line import invoke

V, D = 600, 12
NAME = "v0001-r"


@pytest.fixture
def needs_usearch():
    pytest.importorskip("usearch", reason="usearch comes with daskw2v[ann]")


def test_files__know_all_kinds():
    assert tuple(KINDS) == index_files.KINDS


@pytest.fixture(params=[*KINDS])
def kind(request):
    """Each kind of index that can be built with the installed packages."""
    if request.param == "hnsw":
        request.getfixturevalue("needs_usearch")
    return request.param


@pytest.fixture(params=["local", "memory"])
def work(request, tmp_path):
    return write_model(Store(f"memory://{tmp_path.name}/work" if request.param == "memory" else str(tmp_path)))


def write_model(work, words=V):
    store = work / "models" / NAME
    create_model(store, {"input": (words, D)}, row_block=128)
    write_table_rows(store, "input", 0, np.random.default_rng(1).standard_normal((words, D), np.float32))
    write_vocabulary(store, Vocabulary.from_words([f"w{i}" for i in range(words)], range(words, 0, -1)))
    publish(work / "models", NAME, {})
    return work


def test_nearest__takes_little_memory_however_many_words_are_asked_for():
    words, size, queries, topn = 1200, 100, 200, 300
    matrix = np.random.default_rng(0).standard_normal((words, size), np.float32)
    searcher = KINDS["int8"](matrix.shape, EFFORT)
    searcher.add(0, normalize_rows(matrix), threads=1)
    vocabulary = Vocabulary.from_words([f"w{i}" for i in range(words)], range(words, 0, -1))
    indexed = IndexedVectors(vocabulary, matrix, searcher=searcher)
    indexed.nearest(matrix[:1])  # what is loaded and compiled once is not measured
    tracemalloc.start()
    ids, _ = indexed.nearest(matrix[:queries], topn)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert ids.shape == (queries, topn)
    assert peak < matrix.itemsize * queries * 4 * topn * size / 2  # half of the rows of four candidates a word


def index_of(work):
    return work / "models" / NAME / "index"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("in_memory", [True, False])
def test_index__finds_the_words_of_exact_search(work, in_memory, kind):
    summary = build_index(work.url, kind=kind)
    effort = V if kind == "binary" else EFFORT  # 12 bits tell little
    vectors, indexed = Vectors.open(work.url), IndexedVectors.open(work.url, in_memory=in_memory, effort=effort)
    assert indexed.summary == summary
    assert (summary.words, summary.dimensions, summary.queries) == (V, D, V)
    assert summary.recall > (0.7 if kind == "binary" else 0.95)
    ids, cosines = indexed.nearest(vectors.vectors, topn=10)
    exact_ids, exact_cosines = vectors.nearest(vectors.vectors, topn=10)
    assert np.mean([len(set(a) & set(b)) for a, b in zip(ids, exact_ids, strict=True)]) > 9.5
    same = (ids == exact_ids).all(axis=1)
    assert np.allclose(cosines[same], exact_cosines[same], atol=1e-6)
    assert (np.diff(cosines) <= 0).all()
    assert np.array_equal(indexed.exact(vectors.vectors[0])[0], exact_ids[0])
    assert [word for word, _ in indexed.most_similar("w3")] == [word for word, _ in vectors.most_similar("w3")]


@pytest.mark.sampled(2)
def test_nearest__has_the_shapes_of_exact_search(work, kind):
    build_index(work.url, kind=kind)
    indexed, row = IndexedVectors.open(work.url), np.ones(D, np.float32)
    assert indexed.nearest(row, 3)[0].shape == indexed.exact(row, 3)[0].shape == (3,)
    assert indexed.nearest(row[None], 3)[1].shape == (1, 3)
    assert indexed.nearest(np.empty((0, D)), 3)[0].shape == (0, 3)
    ids, cosines = indexed.nearest(np.stack([row, row]), V + 5)
    assert ids.shape == cosines.shape == (2, V)
    assert sorted(ids[0].tolist()) == [*range(V)]
    with pytest.raises(ParameterError, match="restrict_vocab=5: an index"):
        indexed.nearest(row, restrict_vocab=5)
    with pytest.raises(ParameterError, match="topn=0"):
        indexed.nearest(row, 0)
    with pytest.raises(ParameterError, match="NaN"):
        indexed.nearest(row * np.nan)


@pytest.mark.sampled(1)
def test_nearest__answers_many_threads(work, kind):
    build_index(work.url, kind=kind)
    indexed, rows = IndexedVectors.open(work.url), Vectors.open(work.url).vectors
    expected, result = indexed.nearest(rows)[0], {}

    def ask(number):
        result[number] = [indexed.nearest(rows[i::4])[0] for i in range(4)]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(part, expected[i::4]) for parts in result.values() for i, part in enumerate(parts))


@pytest.mark.sampled(2)
def test_build__changes_nothing_of_the_version_and_leaves_one_file(work, kind):
    version = work / "models" / NAME
    before = version.read_bytes("manifest.json"), version.read_bytes("zarr.json"), version.children()
    first, second = build_index(work.url, kind=kind, threads=1), build_index(work.url, kind=kind, threads=1)
    assert (version.read_bytes("manifest.json"), version.read_bytes("zarr.json")) == before[:2]
    assert version.children() == sorted([*before[2], "index"])
    assert index_of(work).children() == sorted(["leases", "manifest.json", second.file])
    assert first.digest == second.digest  # one thread: the same bits
    assert isinstance(Vectors.open(work.url).vectors, np.ndarray)


def test_build__takes_a_model_of_one_word(tmp_path, kind):
    work = write_model(Store(str(tmp_path)), words=1)
    assert build_index(work.url, kind=kind).recall == 0  # there is no other word to find
    assert IndexedVectors.open(work.url).nearest(np.ones(D), 5)[0].tolist() == [0]


@pytest.mark.usefixtures("needs_usearch")
@pytest.mark.parametrize(
    "options",
    [{"connectivity": 1}, {"connectivity": 10**6}, {"expansion": 0}, {"kind": "ivf"}]
    + [{"kind": "int8", name: 16} for name in ("connectivity", "expansion")],
)
def test_build__refuses_invalid_options_of_a_graph(work, options):
    with pytest.raises(ParameterError):
        build_index(work.url, **options)


@pytest.mark.sampled(2)
def test_open__names_the_command_if_there_is_no_index(work, kind):
    with pytest.raises(StoreError, match=r"has no index\. Build it: daskw2v index"):
        IndexedVectors.open(work.url)
    build_index(work.url, kind=kind)
    with pytest.raises(ParameterError, match="effort=0"):
        IndexedVectors.open(work.url, effort=0)


@pytest.mark.sampled(2)
def test_open__refuses_an_index_of_other_vectors(work, kind):
    summary = build_index(work.url, kind=kind)
    kept = {name: index_of(work).read_bytes(name) for name in ("manifest.json", summary.file)}
    write_model(work, words=V - 1)
    for name, content in kept.items():
        index_of(work).write_bytes(name, content)
    with pytest.raises(StoreError, match="/index is of another version"):
        IndexedVectors.open(work.url)


@pytest.mark.sampled(2)
def test_open__tells_damage(work, kind):
    summary = build_index(work.url, kind=kind)
    index = index_of(work)
    content = index.read_bytes(summary.file)
    middle = len(content) // 2
    for damaged in (content[:-1], content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]):
        index.write_bytes(summary.file, damaged)
        with pytest.raises(DamageError):
            IndexedVectors.open(work.url)
    (index / summary.file).remove()
    with pytest.raises(DamageError):
        IndexedVectors.open(work.url)
    index.write_bytes(summary.file, content)
    index.write_bytes("manifest.json", index.read_bytes("manifest.json").replace(b'"words": 600', b'"words": 601'))
    with pytest.raises(DamageError, match="is not what was written"):
        IndexedVectors.open(work.url)


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"file": "../zarr.json"}, "names the file"),
        ({"size": 1 << 60}, "of memory are free"),
        ({"size": "5"}, "size="),
        ({"words": None}, "words=None"),
        ({"kind": "ivf"}, "the kind 'ivf'"),
        ({"more": 1}, "holds no IndexSummary"),
    ],
)
def test_open__refuses_a_hostile_manifest(work, changes, problem, kind):
    build_index(work.url, kind=kind)
    values = index_of(work).read_manifest()
    index_of(work).write_manifest({**values, **changes})
    with pytest.raises(StoreError, match=problem):
        IndexedVectors.open(work.url)


def test_open__refuses_links_out_of_the_folder(tmp_path, kind):
    work = write_model(Store(str(tmp_path / "work")))
    summary = build_index(work.url, kind=kind)
    file = tmp_path / "work/models" / NAME / "index" / summary.file
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="link that leads out"):
        IndexedVectors.open(work.url)


@pytest.mark.sampled(2)
def test_open__refuses_changed_bytes_before_usearch_sees_them(work, monkeypatch, kind):
    summary, index = build_index(work.url, kind=kind), index_of(work)
    content = np.frombuffer(index.read_bytes(summary.file), np.uint8)
    calls = []
    monkeypatch.setattr(KINDS[kind], "read", lambda *arguments: calls.append(arguments))
    for offset in np.random.default_rng(0).choice(len(content), 20, replace=False):  # in its head, matrix and graph
        changed = content.copy()
        changed[offset] ^= 1
        index.write_bytes(summary.file, changed.tobytes())
        with pytest.raises(DamageError, match=r"its checksum differs\. Build it again: daskw2v index"):
            IndexedVectors.open(work.url)
    for part in (b"", content[: len(content) // 2].tobytes()):
        index.write_bytes(summary.file, part)
        with pytest.raises(DamageError):
            IndexedVectors.open(work.url)
    assert calls == []


@pytest.mark.sampled(2)
def test_open__refuses_an_index_without_a_checksum(work, kind):
    build_index(work.url, kind=kind)
    values = index_of(work).read_manifest()
    del values["digest"]
    index_of(work).write_manifest(values)
    with pytest.raises(StoreError, match="IndexSummary"):
        IndexedVectors.open(work.url)


def test_build__names_the_kind_that_reads_an_option(work):
    with pytest.raises(ParameterError, match=r"kind='int8' does not read expansion=8\. .*give kind='hnsw'\."):
        build_index(work.url, kind="int8", expansion=8)


def test_build__names_the_extra(tmp_path, monkeypatch):
    work = write_model(Store(str(tmp_path)))
    monkeypatch.setitem(sys.modules, "usearch", None)
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(MissingExtraError, match=r"usearch is not installed.*daskw2v\[ann\]"):
        build_index(work.url)


def test_index__is_public():
    assert (daskw2v.build_index, daskw2v.IndexedVectors) == (build_index, IndexedVectors)


def test_summary__is_json(work):
    pytest.importorskip("usearch", reason="usearch comes with daskw2v[ann]")
    summary = build_index(work.url)
    assert json.loads(index_of(work).read_bytes("manifest.json"))["recall"] == summary.recall


@pytest.mark.usefixtures("needs_usearch")
def test_command__builds_an_index_that_similar_uses(tmp_path):
    work = write_model(Store(str(tmp_path)))
    exact = run("similar", work.url, "w3")
    assert "has no index" in run("similar", work.url, "w3", "--approximate", status=2)
    assert "of the ten nearest words are found" in run("index", work.url)
    assert run("similar", work.url, "w3", "--approximate") == exact
    assert json.loads(run("index", work.url, "--connectivity", "4", "--json"))["connectivity"] == 4
    assert "100.0% of the ten nearest" in run("index", work.url, "--kind", "int8")
    assert run("similar", work.url, "w3", "--approximate") == exact
    assert "does not read connectivity=4" in run("index", work.url, "--kind", "int8", "--connectivity", "4", status=2)


def run(*args, status=0):
    result = invoke(*args)
    assert result.exit_code == status, result.output
    return result.output


@pytest.mark.usefixtures("needs_usearch")
def test_searcher__names_a_file_of_an_incompatible_usearch(work):
    summary = build_index(work.url, connectivity=8, threads=1)
    changed = np.frombuffer(index_of(work).read_bytes(summary.file), np.uint8).copy()
    head = 8 + V * D * 2
    changed[head + 9 : head + 11].view("<u2")[0] = 0  # version 2.0, whose keys are counted otherwise
    with pytest.raises(StoreError, match="not read by this usearch"):
        GraphIndex((V, D), 64).read(changed, "index")
