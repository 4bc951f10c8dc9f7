"""Vectors whose rows stay in the store: the same answers as in memory, from a few rows at a time."""

import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

from daskw2v.evaluation import evaluate
from daskw2v.models.formats.export import export
from daskw2v.models.queries import rows as module
from daskw2v.models.queries import word_queries
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.store import write_vocabulary
from daskw2v.models.stored.tables import PiecedRows, StoredRows
from daskw2v.models.versions.versions import publish
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary
from tests.support.tables import write_input

V, D, ROW_BLOCK = 205, 6, 12
WORDS = [f"w{i}" for i in range(V)]
MOST = 24  # rows of a block: two chunks


@pytest.fixture(scope="module", params=[1, pytest.param(4, marks=pytest.mark.slow), 7])
def url(request, tmp_path_factory):
    """A model with so many partitions; w3 is zero, w4 and w5 are equal."""
    n, models = request.param, Store(str(tmp_path_factory.mktemp("work"))) / "models"
    rows = np.random.default_rng(1).standard_normal((V, D), np.float32)
    rows[3], rows[5] = 0, rows[4]
    store = models / "v0001-r"
    write_input(store, rows, ROW_BLOCK, n)
    write_vocabulary(store, Vocabulary.from_words(WORDS, range(V, 0, -1)))
    publish(models, "v0001-r", {"params": {"seed": 3}})
    return store.url


@pytest.fixture
def asked(monkeypatch):
    """Record the number of rows of each read of the store; blocks are small."""
    monkeypatch.setattr(module, "BLOCK_BYTES", MOST * D * 4)
    monkeypatch.setattr(word_queries, "QUERIES", 5)
    read, numbers = StoredRows.__getitem__, []

    def spy(rows, key):
        result = read(rows, key)
        numbers.append(np.atleast_2d(result).shape[0])
        return result

    monkeypatch.setattr(StoredRows, "__getitem__", spy)
    return numbers


@pytest.fixture
def vectors(url, asked):
    return Vectors.open(url, in_memory=False)


@pytest.fixture(scope="module")
def loaded(url):
    return Vectors.open(url, in_memory=True)


QUERIES = {
    "a word": lambda v: v["w7"],
    "words": lambda v: v[["w9", "w200", "w9"]],
    "no words": lambda v: v[[]],
    "norms": lambda v: v.norms,
    "most_similar": lambda v: v.most_similar(["w1", ("w2", 0.5)], "w7"),
    "most_similar of all": lambda v: v.most_similar("w1", topn=1000),
    "most_similar restricted": lambda v: v.most_similar("w150", topn=30, restrict_vocab=50),
    "most_similar of no length": lambda v: len(v.most_similar("w3")),
    "similarity": lambda v: [v.similarity("w1", "w201"), v.similarity("w3", "w1"), v.similarity("w4", "w5")],
    "analogy": lambda v: v.analogy("w1", "w2", "w3", topn=12),
    "analogy by products": lambda v: v.analogy("w1", "w2", "w204", topn=40, method="3cosmul"),
    "analogy of all": lambda v: v.analogy("w1", "w2", "w204", topn=500, method="3cosmul"),
    "doesnt_match": lambda v: v.doesnt_match(["w1", "w100", "w200", "w3"]),
    "most_similar of arrays": lambda v: v.most_similar([np.ones(D), ("w2", 0.5)], [v["w9"]]),
    "n_similarity": lambda v: v.n_similarity(["w1", "w200"], ["w3", "w7", "w9"]),
    "rank": lambda v: [v.rank("w1", word) for word in ("w2", "w3", "w4", "w5", "w204", "w1")],
    "nearest": lambda v: v.nearest(np.ones(D)),
    "nearest to many": lambda v: v.nearest(np.random.default_rng(2).standard_normal((13, D)), 7),
    "nearest to none": lambda v: v.nearest(np.ones((0, D))),
    "items": lambda v: [(word, row.tolist()) for word, row in v.items()],
}


def same(result, expected):
    if isinstance(expected, np.ndarray):
        assert result.shape == expected.shape
        np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-6)
    elif isinstance(expected, list | tuple):
        assert len(result) == len(expected)
        for a, b in zip(result, expected, strict=True):
            same(a, b)
    else:
        assert result == (pytest.approx(expected, rel=1e-6, abs=1e-6) if isinstance(expected, float) else expected)


@pytest.mark.sampled(14)
@pytest.mark.parametrize("query", QUERIES)
def test_vectors__answer_from_the_store_as_from_memory(url, loaded, asked, query, monkeypatch):
    assert isinstance(loaded.vectors, np.ndarray)
    for scores in (20, 1 << 22):
        monkeypatch.setattr(module, "SCORES", scores)
        expected, vectors = QUERIES[query](loaded), Vectors.open(url, in_memory=False)
        assert isinstance(vectors.vectors, StoredRows)
        asked.clear()
        same(QUERIES[query](vectors), expected)
        assert asked
        assert max(asked) <= MOST


@pytest.mark.sampled(14)
@pytest.mark.parametrize("query", QUERIES)
def test_vectors__answer_from_pieces_as_from_an_array(url, loaded, query, monkeypatch):
    monkeypatch.setattr(module, "SCORES", 20)
    array = Vectors(loaded.vocabulary, np.array(loaded.vectors))
    same(QUERIES[query](Vectors.open(url)), QUERIES[query](array))


@pytest.mark.parametrize("block", [0, 64 << 20], ids=["by threads", "by one"])
def test_nearest__has_the_same_bits_from_pieces_an_array_and_the_store(url, loaded, monkeypatch, block):
    query, array = np.linspace(-1, 1, D), Vectors(loaded.vocabulary, np.array(loaded.vectors))
    ids, cosines = array.nearest(query, 20)
    monkeypatch.setattr(module, "BLOCK_BYTES", block)
    for vectors in (Vectors.open(url), Vectors.open(url, in_memory=False)):
        result = vectors.nearest(query, 20)
        np.testing.assert_array_equal(result[0], ids)
        np.testing.assert_array_equal(result[1], cosines)
        np.testing.assert_array_equal(vectors.norms, array.norms)


def test_vectors__stay_in_pieces_until_an_array_is_asked_for(url, loaded, tmp_path):
    shutil.copytree(url, tmp_path / "model")
    vectors = Vectors.open(tmp_path / "model")
    shutil.rmtree(tmp_path / "model")
    assert vectors.in_memory
    assert vectors.most_similar("w9") == Vectors.open(url).most_similar("w9")
    assert (len(vectors), vectors.vector_size) == (V, D)
    assert isinstance(vectors._rows, PiecedRows)
    ids = np.array([7, 204, 7, 0])
    np.testing.assert_array_equal(vectors.rows(ids), loaded.rows(ids))
    assert [len(ids) for ids, _ in vectors.pieces(3)] == ([3] if len(vectors._rows._pieces) < 20 else [1] * 3)
    rows = vectors.vectors
    assert rows is vectors.vectors
    np.testing.assert_array_equal(rows, loaded.vectors)
    rows[0] = 0  # the model's files have not lent their pages
    assert vectors.similarity("w0", "w1") == 0


def test_columns__are_those_of_a_block(url):
    ids, vectors = np.arange(V), Vectors.open(url)
    result = np.stack([block.columns(ids) for block in vectors.blocks(n_rows=7)])
    assert ((result >= 0).sum(axis=0) == 1).all()
    for block, columns in zip(vectors.blocks(n_rows=7), result, strict=True):
        np.testing.assert_array_equal(block.ids[columns[columns >= 0]], ids[columns >= 0])
        np.testing.assert_array_equal(block.vectors, vectors.rows(block.ids))


def test_nearest__reads_each_row_once_for_any_query(vectors, asked):
    vectors.nearest(np.random.default_rng(2).standard_normal((13, D)), 7)
    assert sum(asked) == V
    assert len(vectors.norms) == V
    assert sum(asked) == V, "lengths are kept"


@pytest.mark.parametrize("name", ["v.txt", "v.bin", "v.txt.gz", "v.parquet", "v.safetensors", "projector"])
def test_export__writes_the_same_bytes_from_the_store(vectors, loaded, asked, tmp_path, name):
    format = "projector" if name == "projector" else None
    for folder, source in (("stored", vectors), ("loaded", loaded)):
        asked.clear()
        export(source, str(tmp_path / folder / name), format)
        if source is vectors:
            assert sum(asked) == V
            assert max(asked) <= MOST
    files = [path.relative_to(tmp_path / "loaded") for path in (tmp_path / "loaded").rglob("*") if path.is_file()]
    assert len(files) == (2 if format else 1)
    for file in files:
        stored, expected = tmp_path / "stored" / file, tmp_path / "loaded" / file
        if name == "v.parquet":  # row groups lie along the chunks of the store
            assert pq.read_table(stored) == pq.read_table(expected)
        else:
            assert stored.read_bytes() == expected.read_bytes()
    assert "words" not in vars(vectors.vocabulary), "no list of all words is made"


def test_evaluate__gives_the_same_figures_from_the_store(vectors, loaded, asked, tmp_path):
    rng = np.random.default_rng(3)
    pairs = (f"{a}\t{b}\t{score}\n" for score, (a, b) in enumerate(rng.choice([*WORDS, "x"], (30, 2))))
    (tmp_path / "pairs.tsv").write_text("".join(pairs))
    lines = (" ".join(words) for words in rng.choice(WORDS[:6] + WORDS[-2:], (100, 4)))
    answers = (f"w1 w2 w100 {loaded.analogy('w1', 'w2', 'w100')[0][0]}",)
    (tmp_path / "questions.txt").write_text(": one\n" + "\n".join([*lines, *answers]))
    sets = [str(tmp_path / "pairs.tsv")], [str(tmp_path / "questions.txt")]
    expected = evaluate(loaded, *sets)
    assert expected.scores()["questions"] > 0
    asked.clear()
    assert evaluate(vectors, *sets) == expected
    assert max(asked) <= 64, "the words of all pairs, or of all questions: pairs of eight words"


@pytest.mark.parametrize(("free", "in_memory"), [(2, False), (2.1, True)])
def test_open__loads_rows_that_take_less_than_half_of_the_memory(url, monkeypatch, free, in_memory):
    monkeypatch.setattr(module, "free_memory", lambda: free * V * D * 4)
    assert isinstance(Vectors.open(url).vectors, np.ndarray) == in_memory


def test_stored_rows__become_an_array_on_request(vectors, loaded):
    assert np.array_equal(np.asarray(vectors.vectors), loaded.vectors)
    assert vectors.vectors.nbytes == loaded.vectors.nbytes
    assert np.array_equal(vectors.vectors[[[0, -1]]], loaded.vectors[[[0, -1]]])
    assert f"{V} x {D}" in repr(vectors.vectors)
    with pytest.raises(ValueError, match="without a copy"):
        np.array(vectors.vectors, copy=False)
