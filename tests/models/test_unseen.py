"""Models that compute vectors from characters: each word has a vector."""

import numpy as np
import pytest

from daskw2v.errors import DamageError, ParameterError, StoreError, UnknownWordError
from daskw2v.models.formats.export import export
from daskw2v.models.formats.word2vec import import_word2vec
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.store import read_subwords, write_subwords, write_vocabulary
from daskw2v.models.stored.tables import create_model, write_table_rows
from daskw2v.models.versions.versions import latest_version, publish
from daskw2v.objectives.subwords.network import Alphabet, Subwords
from daskw2v.objectives.subwords.training import initial_weights
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary
from tests.support.command_line import invoke

WORDS = ["sing", "singer", "bridge", "bridges", "walk", "walked", "zebra"]
UNSEEN = "singers"


@pytest.fixture(scope="module")
def subwords():
    alphabet = Alphabet.from_words(WORDS)
    return Subwords(alphabet, initial_weights(8, len(alphabet), 1))


@pytest.fixture(scope="module", params=["memory", "store"])
def vectors(request, subwords, tmp_path_factory):
    models = Store(str(tmp_path_factory.mktemp("work"))) / "models"
    store = models / "v0001-a"
    create_model(store, {"input": (len(WORDS), 8)}, row_block=3, subwords=True)
    write_vocabulary(store, Vocabulary.from_words(WORDS, range(9, 2, -1)))
    rows = subwords.vectors(WORDS)
    for start in range(0, len(WORDS), 3):
        write_table_rows(store, "input", start, rows[start : start + 3])
    write_subwords(store, subwords)
    publish(models, "v0001-a", {})
    return Vectors.open(models.url, in_memory=request.param == "memory")


@pytest.fixture
def plain(vectors):
    return Vectors(vectors.vocabulary, np.asarray(vectors.vectors[:]))


def test_publish__detects_a_lost_network(tmp_path):
    models = Store(str(tmp_path))
    create_model(models / "v0001-a", {"input": (1, 2)}, row_block=1, subwords=True)
    write_table_rows(models / "v0001-a", "input", 0, np.zeros((1, 2), np.float32))
    write_vocabulary(models / "v0001-a", Vocabulary.from_words(["a"], [1]))
    with pytest.raises(DamageError, match="v0001-a/subwords is missing"):
        publish(models, "v0001-a", {})


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_unseen__words_have_vectors(vectors, subwords):
    expected = subwords.vectors([UNSEEN, "walking"])
    assert vectors[UNSEEN].shape == (8,)
    assert np.allclose(vectors[UNSEEN], expected[0], atol=1e-7)
    result = vectors[["walk", UNSEEN, "zebra", "walking"]]
    assert result.dtype == np.float32
    assert np.array_equal(result[[0, 2]], np.asarray(vectors.vectors[[4, 6]]))
    assert np.allclose(result[[1, 3]], expected, atol=1e-7)
    assert vectors[[]].shape == (0, 8)


def test_unseen__words_are_not_in_the_vocabulary(vectors):
    assert UNSEEN not in vectors
    assert "singer" in vectors
    assert len(vectors) == len(WORDS)


def test_unseen__words_have_neighbours_and_answers(vectors, subwords):
    unseen = subwords.vectors([UNSEEN])[0]
    cosines = {word: cosine(unseen, row) for word, row in vectors.items()}
    result = vectors.most_similar(UNSEEN, topn=20)
    assert [word for word, _ in result] == sorted(cosines, key=cosines.get, reverse=True)
    assert dict(result) == pytest.approx(cosines, abs=1e-6)
    assert vectors.similarity("sing", UNSEEN) == pytest.approx(cosines["sing"], abs=1e-6)
    assert vectors.similarity(UNSEEN, UNSEEN) == pytest.approx(1)
    assert "walk" not in dict(vectors.most_similar(["walk", UNSEEN], "zebras", topn=20))
    for method in ("3cosadd", "3cosmul"):
        answers = vectors.analogy("bridge", "bridges", "singere", topn=20, method=method)
        assert {word for word, _ in answers} == {*WORDS} - {"bridge", "bridges"}
    assert vectors.doesnt_match(["sing", "singer", "xylophone", UNSEEN]) in {"sing", "singer", "xylophone", UNSEEN}


@pytest.mark.parametrize("word", ["", 3.0, None, b"sing"])
def test_unseen__values_that_are_no_word_have_no_vector(vectors, word):
    with pytest.raises(UnknownWordError, match=f"{word!r} is not among the 7 words"):
        vectors[["sing", word]]


def test_unseen__words_stay_unknown_without_a_network(plain):
    with pytest.raises(UnknownWordError, match=f"'{UNSEEN}' is not among"):
        plain.most_similar(UNSEEN)


def test_vectors__refuse_a_network_of_another_size(plain, subwords):
    with pytest.raises(ParameterError, match="8 dimensions, words have 5"):
        Vectors(plain.vocabulary, plain.vectors[:, :5].copy(), subwords=subwords)


def test_export__writes_the_vocabulary(vectors, tmp_path):
    export(vectors, tmp_path / "words.txt")
    assert import_word2vec(tmp_path / "words.txt").vocabulary.words == WORDS


def test_similar__answers_for_unseen_words(vectors):
    result = invoke("similar", vectors.url, UNSEEN, "--topn", "2")
    assert result.exit_code == 0, result.output
    assert vectors.most_similar(UNSEEN)[0][0] in result.output
    assert invoke("analogy", vectors.url, "walk", "walked", UNSEEN).exit_code == 0


def test_publish__refuses_a_damaged_network(tmp_path, subwords):
    models = Store(str(tmp_path)) / "models"
    store = models / "v0001-a"
    create_model(store, {"input": (1, 8)}, row_block=3)
    assert read_subwords(store) is None
    write_vocabulary(store, Vocabulary.from_words(["a"], [1]))
    write_table_rows(store, "input", 0, np.ones((1, 8), np.float32))
    write_subwords(store, Subwords(subwords.alphabet, {**subwords.weights, "bias": np.full(8, np.nan, np.float32)}))
    with pytest.raises(StoreError, match="bias holds NaN"):
        publish(models, "v0001-a", {})
    assert latest_version(models) is None
    write_subwords(store, subwords)
    publish(models, "v0001-a", {})
    assert Vectors.open(models.url).subwords.alphabet == subwords.alphabet
