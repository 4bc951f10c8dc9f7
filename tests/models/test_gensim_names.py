"""Methods of gensim's KeyedVectors and Word2Vec have gensim's results."""

import numpy as np
import pytest

from daskw2v import Vectors
from daskw2v.errors import UnknownWordError
from daskw2v.models.queries import rows as module
from daskw2v.models.stored.store import write_vocabulary
from daskw2v.models.stored.tables import create_model, write_table_rows
from daskw2v.models.versions.versions import publish
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary

gensim = pytest.importorskip("gensim.models", reason="gensim has no wheels for Python 3.14")

pytestmark = pytest.mark.filterwarnings("ignore:Call to deprecated `init_sims`:DeprecationWarning")  # gensim's own call

V, D = 300, 8
WORDS = [f"w{i}" for i in range(V)]
COUNTS = range(V, 0, -1)
OUTPUT = np.random.default_rng(2).standard_normal((V, D), np.float32)


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(1).standard_normal((V, D), np.float32)


@pytest.fixture(scope="module")
def vectors(rows):
    return Vectors(Vocabulary.from_words(WORDS, COUNTS), rows)


@pytest.fixture(scope="module")
def keyed(rows):
    keyed = gensim.KeyedVectors(D)
    keyed.add_vectors(WORDS, rows)
    for word, count in zip(WORDS, COUNTS, strict=True):
        keyed.set_vecattr(word, "count", count)
    return keyed


@pytest.fixture(params=[7, 1 << 22], ids=["many blocks", "one block"])
def blocks(request, monkeypatch):
    monkeypatch.setattr(module, "SCORES", request.param)


def assert_same(result, expected):
    assert [word for word, _ in result] == [word for word, _ in expected]
    np.testing.assert_allclose([score for _, score in result], [score for _, score in expected], rtol=1e-4, atol=1e-6)


def test_get_index__equals_gensim(vectors, keyed):
    assert [vectors.get_index(word) for word in WORDS] == [keyed.get_index(word) for word in WORDS]
    assert vectors.get_index("no", -1) == keyed.get_index("no", -1) == -1
    assert vectors.get_index("w3", -1) == 3
    for model in (vectors, keyed):
        with pytest.raises(KeyError):
            model.get_index("no")


def test_has_index_for__equals_gensim(vectors, keyed):
    assert [vectors.has_index_for(word) for word in ("w3", "no")] == [True, False]
    assert [keyed.has_index_for(word) for word in ("w3", "no")] == [True, False]
    assert not vectors.with_ngrams(minn=1, maxn=2, bucket=50).has_index_for("w3w3")


def test_get_vecattr__equals_gensim(vectors, keyed):
    assert [vectors.get_vecattr(w, "count") for w in WORDS] == [keyed.get_vecattr(w, "count") for w in WORDS]


@pytest.mark.parametrize("pre", [True, False])
@pytest.mark.parametrize("post", [True, False])
@pytest.mark.parametrize("weights", [None, [1.0, -2.0, 0.5], np.array([3.0, 0.0, 1.0])])
def test_get_mean_vector__equals_gensim(vectors, keyed, rows, pre, post, weights):
    for keys in (["w1", "w7", "w200"], ["w1", "no", "w200"], ["w1", 3 * rows[5], "w3"]):
        result = vectors.get_mean_vector(keys, weights, pre, post)
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, keyed.get_mean_vector(keys, weights, pre, post), rtol=1e-4, atol=1e-6)


def test_get_mean_vector__of_unknown_words_alone_is_zero_as_gensims(vectors, keyed):
    assert not vectors.get_mean_vector(["no"]).any()
    assert not keyed.get_mean_vector(["no"]).any()
    for model in (vectors, keyed):
        with pytest.raises(KeyError, match="no"):
            model.get_mean_vector(["w1", "no"], ignore_missing=False)


@pytest.mark.parametrize(
    ("positive", "negative"),
    [("w1", []), (["w1", "w2"], "w5"), (["w1", "w2", "w3"], ["w4", "w5"]), (["w9", "w8"], ["w9"])],
)
@pytest.mark.usefixtures("blocks")
def test_most_similar_cosmul__equals_gensim(vectors, keyed, positive, negative):
    expected = keyed.most_similar_cosmul(positive, negative, topn=7)
    assert_same(vectors.most_similar_cosmul(positive, negative, topn=7), expected)


def test_most_similar_cosmul__treats_arrays_as_gensim(vectors, keyed, rows):
    unit = rows[20] / np.linalg.norm(rows[20])
    expected = keyed.most_similar_cosmul([unit, "w2"], ["w5"], topn=7)
    assert_same(vectors.most_similar_cosmul([20 * unit, "w2"], ["w5"], topn=7), expected)


def test_most_similar_cosmul__searches_the_most_frequent_words_alone(vectors):
    all_words = vectors.most_similar_cosmul(["w1", "w2"], "w5", topn=V)
    frequent = [pair for pair in all_words if int(pair[0][1:]) < 40]
    assert_same(vectors.most_similar_cosmul(["w1", "w2"], "w5", topn=V, restrict_vocab=40), frequent)


@pytest.mark.usefixtures("blocks")
def test_closer_than__equals_gensim(vectors, keyed):
    for other in ("w1", "w77", "w299"):
        assert vectors.closer_than("w3", other) == keyed.closer_than("w3", other)
    assert vectors.closer_than("w3", vectors.most_similar("w3")[0][0]) == []


@pytest.mark.parametrize("other_words", [(), ["w5"], ["w9", "w3", "w9"]])
@pytest.mark.usefixtures("blocks")
def test_distances__equal_gensim(vectors, keyed, rows, other_words):
    for asked in ("w3", 2 * rows[3]):
        result = vectors.distances(asked, other_words)
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, keyed.distances(asked, other_words), atol=1e-6)


def test_cosine_similarities__equal_gensims(rows):
    expected = gensim.KeyedVectors.cosine_similarities(rows[0], rows[1:9])
    np.testing.assert_allclose(Vectors.cosine_similarities(rows[0], rows[1:9]), expected, atol=1e-6)
    assert Vectors.cosine_similarities([0, 0], [[1, 0], [0, 0]]).tolist() == [0, 0], "gensim divides by zero"


@pytest.mark.parametrize("binary", [True, False])
def test_save_word2vec_format__is_read_as_gensims(vectors, keyed, tmp_path, binary):
    for name, model in (("ours", vectors), ("theirs", keyed)):
        model.save_word2vec_format(str(tmp_path / name), str(tmp_path / f"{name}.counts"), binary=binary)
    assert (tmp_path / "ours.counts").read_bytes() == (tmp_path / "theirs.counts").read_bytes()
    load = gensim.KeyedVectors.load_word2vec_format
    ours, theirs = (load(tmp_path / n, str(tmp_path / f"{n}.counts"), binary=binary) for n in ("ours", "theirs"))
    assert ours.index_to_key == theirs.index_to_key == WORDS
    np.testing.assert_array_equal(ours.vectors, theirs.vectors)
    assert ours.get_vecattr("w7", "count") == theirs.get_vecattr("w7", "count") == 293


def trained(folder, rows, **params):
    """Return a version with an output table."""
    models = Store(str(folder)) / "models"
    create_model(models / "v0001-r", {"input": rows.shape, "output": rows.shape}, 70)
    for start in range(0, V, 70):
        write_table_rows(models / "v0001-r", "input", start, rows[start : start + 70])
        write_table_rows(models / "v0001-r", "output", start, OUTPUT[start : start + 70])
    write_vocabulary(models / "v0001-r", Vocabulary.from_words(WORDS, COUNTS))
    publish(models, "v0001-r", {"params": params})
    return folder


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("mean", [True, False])
def test_predict_output_word__equals_gensim(keyed, rows, tmp_path, mean, in_memory):
    model = gensim.Word2Vec(vector_size=D, min_count=1, cbow_mean=int(mean), negative=5)
    model.build_vocab([[word] for word in WORDS])
    model.wv, model.syn1neg = keyed, OUTPUT
    vectors = Vectors.open(trained(tmp_path, rows, cbow_mean=mean), in_memory=in_memory)
    for words in (["w1"], ["w5", "w2", "w5"]):
        expected = model.predict_output_word(words, topn=9)
        assert_same(vectors.predict_output_word(words, topn=9), expected)
    assert sum(p for _, p in vectors.predict_output_word(["w1"], topn=V)) == pytest.approx(1)
    with pytest.raises(UnknownWordError, match="'no'"):
        vectors.predict_output_word(["w1", "no"])


def test_to_gensim__is_the_functions(vectors, keyed):
    result = vectors.to_gensim()
    np.testing.assert_array_equal(result.vectors, keyed.vectors)
    assert result.key_to_index == keyed.key_to_index
    assert result.get_vecattr("w9", "count") == 291
