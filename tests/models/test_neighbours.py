"""Neighbours of many words on a cluster equal `most_similar` of each word."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from daskw2v import IndexedVectors, Vectors, build_index
from daskw2v.errors import ParameterError, UnknownWordError
from daskw2v.models.queries import frames as module
from daskw2v.models.stored.tables import StoredRows
from daskw2v.objectives.subwords.network import Alphabet, Subwords
from daskw2v.objectives.subwords.training import initial_weights
from daskw2v.vocabulary.vocabulary import Vocabulary

pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")

V, D = 130, 6
WORDS = [f"w{i}é" for i in range(V)]


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(1).standard_normal((V, D), np.float32)


@pytest.fixture(scope="module")
def url(rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "saved"
    Vectors(Vocabulary.from_words(WORDS, range(V, 0, -1)), rows).save(folder)
    return str(folder)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(module, "TASK_WORDS", 50)


def assert_equal(result, vectors, words, topn):
    expected = [
        (word, rank, *pair) for word in words for rank, pair in enumerate(vectors.most_similar(word, topn=topn), 1)
    ]
    assert list(result.columns) == ["word", "rank", "neighbour", "cosine"]
    assert (result["rank"].dtype, result["cosine"].dtype) == (np.int64, np.float32)
    for column, values in zip(("word", "rank", "neighbour"), zip(*expected, strict=True), strict=False):
        assert result[column].tolist() == list(values)
    np.testing.assert_allclose(result["cosine"], [cosine for *_, cosine in expected], atol=1e-6)


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("topn", [1, 7, 1000])
def test_to_dask_neighbours__of_all_words_equal_most_similar(url, in_memory, topn):
    vectors = Vectors.open(url, in_memory=in_memory)
    result = vectors.to_dask_neighbours(topn=topn)
    assert result.npartitions == 3
    assert_equal(result.compute(), vectors, WORDS, topn)


def test_to_dask_neighbours__of_equal_words_and_of_no_length(rows, tmp_path):
    """A word may rank behind equal words, and is still not its own neighbour."""
    rows = rows.copy()
    rows[3], rows[4:25] = 0, rows[4]
    Vectors(Vocabulary.from_words(WORDS, range(V, 0, -1)), rows).save(tmp_path / "saved")
    vectors = Vectors.open(tmp_path / "saved")
    result = vectors.to_dask_neighbours(topn=2).compute()
    assert result["word"].tolist() == np.repeat(WORDS, 2).tolist()
    assert result["rank"].tolist() == [1, 2] * V
    assert not (result["word"] == result["neighbour"]).any()
    expected = [cosine for word in WORDS for _, cosine in vectors.most_similar(word, topn=2)]
    np.testing.assert_allclose(result["cosine"], expected, atol=1e-6)
    cosines = [vectors.similarity(*pair) for pair in zip(result["word"], result["neighbour"], strict=True)]
    np.testing.assert_allclose(result["cosine"], cosines, atol=1e-6)


def test_to_dask_neighbours__run_on_two_workers(url, two_processes, tmp_path):
    vectors = Vectors.open(url)
    vectors.to_dask_neighbours(topn=5).to_parquet(str(tmp_path / "graph"))
    assert_equal(pd.read_parquet(tmp_path / "graph"), vectors, WORDS, 5)


def test_to_dask_neighbours__of_no_words_are_empty(url):
    assert Vectors.open(url).to_dask_neighbours([]).compute().shape == (0, 4)


def test_to_dask_neighbours__of_words_outside_the_vocabulary(url, tmp_path):
    alphabet, plain = Alphabet.from_words(WORDS), Vectors.open(url)
    network = Subwords(alphabet, initial_weights(D, len(alphabet), seed=1))
    replace(plain, vectors=np.asarray(plain.vectors), subwords=network).save(tmp_path / "parts")
    vectors = Vectors.open(tmp_path / "parts")
    assert_equal(vectors.to_dask_neighbours(["w5w5", "w70é"], topn=V - 1).compute(), vectors, ["w5w5", "w70é"], V - 1)


def test_to_dask_neighbours__of_an_index_are_exact(url):
    build_index(url, kind="int8")
    assert_equal(IndexedVectors.open(url).to_dask_neighbours(topn=3).compute(), Vectors.open(url), WORDS, 3)


def test_to_dask_neighbours__hold_no_words_of_the_model_and_read_when_computed(url, monkeypatch):
    read, asked = StoredRows.__getitem__, []
    monkeypatch.setattr(StoredRows, "__getitem__", lambda rows, key: asked.append(key) or read(rows, key))
    result = Vectors.open(url, in_memory=False).to_dask_neighbours()
    assert WORDS[70].encode() not in pickle.dumps(dict(result.__dask_graph__()))
    assert asked == []
    result.partitions[0].compute(scheduler="sync")
    assert asked


def test_to_dask_neighbours__names_an_unknown_word_before_the_cluster_works(url):
    with pytest.raises(UnknownWordError, match="'no' is not among the 130 words"):
        Vectors.open(url).to_dask_neighbours(["w1é", "no"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"topn": 0}, "topn=0 is not an integer >= 1"),
        ({"topn": 1.5}, "topn=1.5 is not an integer >= 1"),
        ({"words": "w1é"}, "'w1é' is not a list of words"),
        ({"words": 5}, "5 is not a list of words"),
    ],
)
def test_to_dask_neighbours__refuses_bad_arguments(url, arguments, message):
    with pytest.raises(ParameterError, match=message):
        Vectors.open(url).to_dask_neighbours(**arguments)


def test_to_dask_neighbours__needs_a_store_that_workers_read(url):
    vectors = Vectors.open(url)
    with pytest.raises(ParameterError, match="in memory alone, where no worker reads them"):
        replace(vectors, vectors=np.asarray(vectors.vectors)).to_dask_neighbours()
