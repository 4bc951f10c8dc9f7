import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskw2v.errors import ParameterError, StoreError, UnknownWordError
from daskw2v.models.queries import rows as module
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.queries.word_queries import COSMUL_EPSILON
from daskw2v.models.stored.store import write_vocabulary
from daskw2v.models.stored.tables import create_model, write_table_rows
from daskw2v.models.versions.versions import publish
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary

WORDS = [f"w{i}" for i in range(300)]


@pytest.fixture(scope="module")
def matrix():
    return np.random.default_rng(1).standard_normal((300, 8), np.float32)


@pytest.fixture(scope="module")
def vectors(matrix):
    return Vectors(Vocabulary.from_words(WORDS, range(300, 0, -1)), matrix)


@pytest.fixture(scope="module")
def keyed(matrix):
    keyed = pytest.importorskip("gensim.models").KeyedVectors(8)
    keyed.add_vectors(WORDS, matrix)
    return keyed


def assert_same(result, expected):
    assert [word for word, _ in result] == [word for word, _ in expected]
    assert np.allclose([score for _, score in result], [score for _, score in expected], atol=1e-6)


def test_vectors__looks_up_words(vectors, matrix):
    assert len(vectors) == 300
    assert vectors.vector_size == 8
    assert "w3" in vectors
    assert "no" not in vectors
    assert np.array_equal(vectors["w3"], matrix[3])
    assert np.array_equal(vectors[["w3", "w1"]], matrix[[3, 1]])
    assert vectors[[]].shape == (0, 8)
    assert repr(vectors) == "Vectors(300 words x 8, url=None)"


def test_vectors__keeps_the_passed_matrix(vectors, matrix):
    vectors.most_similar("w1")
    assert vectors.vectors is matrix


@pytest.mark.parametrize("call", [lambda v: v["no"], lambda v: v[["w1", "no"]], lambda v: v.similarity("w1", "no")])
def test_vectors__names_an_unknown_word(vectors, call):
    with pytest.raises(UnknownWordError, match="'no'"):
        call(vectors)


@pytest.mark.parametrize(
    "bad",
    [np.ones((3, 3)), np.ones(2, np.float32), [[1.0]], [[1.0], [1.0, 2.0]], [["x"], ["y"]], [[1e300], [0]], None],
)
@pytest.mark.parametrize("words", [["a", "b"], Vocabulary.from_words(["a", "b"], [1, 1])])
def test_vectors__refuses_another_shape_or_type(words, bad):
    with pytest.raises(ParameterError, match="for 2 words"):
        Vectors(words, bad)


@pytest.mark.parametrize("words", ["ab", None, 5, ["a", None], ["a", 1.5], np.ones((2, 3))])
def test_vectors__refuse_values_that_are_no_word(words):
    with pytest.raises(ParameterError, match=r"is not a (list of words|word)"):
        Vectors(words, np.ones((2, 3)))


@pytest.mark.parametrize("words", [["a", "b"], ("a", "b"), np.array(["a", "b"]), {"a": 0, "b": 1}])
@pytest.mark.parametrize("rows", [[[1, 0], [0, 2]], np.diag([1, 2]), np.diag([1.0, 2.0]), np.float32([[1, 0], [0, 2]])])
def test_vectors__accept_lists_of_words_and_numbers(words, rows):
    vectors = Vectors(words, rows)
    assert vectors.most_similar("a") == [("b", 0.0)]
    assert vectors.vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors["b"], [0, 2])
    assert vectors.vocabulary.counts.tolist() == [0, 0]


def test_vectors__are_a_list_of_words_and_an_array(vectors, matrix, keyed):
    assert list(vectors) == keyed.index_to_key
    assert len(vectors) == len(keyed)
    assert np.asarray(vectors) is matrix
    assert np.array(vectors) is not matrix
    np.testing.assert_array_equal(np.asarray(vectors, np.float64), matrix)


def test_integers__are_words_by_their_digits(matrix):
    vectors = Vectors([str(i) for i in range(300)], matrix)
    assert 7 in vectors
    assert np.uint8(7) in vectors
    assert True not in vectors
    np.testing.assert_array_equal(vectors[7], matrix[7])
    np.testing.assert_array_equal(vectors[[7, np.int64(9), "3"]], matrix[[7, 9, 3]])
    np.testing.assert_array_equal(vectors[np.array([7, 9])], matrix[[7, 9]])
    np.testing.assert_array_equal(vectors.get_vector(7), matrix[7])
    assert vectors.most_similar(1) == vectors.most_similar("1")
    assert vectors.most_similar((1, 2)) == vectors.most_similar([1, 2]) == vectors.most_similar(["1", "2"])
    assert vectors.most_similar((1, 0.5)) == vectors.most_similar([("1", 0.5)])
    assert vectors.most_similar(positive=[1], negative=[(2, 0.5)]) == vectors.most_similar(["1"], [("2", 0.5)])
    assert vectors.similarity(1, 2) == vectors.similarity("1", "2")
    assert vectors.rank(1, 2) == vectors.rank("1", "2")
    assert vectors.analogy(1, 2, 3, method="3cosmul") == vectors.analogy("1", "2", "3", method="3cosmul")
    assert vectors.n_similarity([1], [2, 3]) == vectors.n_similarity(["1"], ["2", "3"])
    assert str(vectors.doesnt_match([1, 2, 3])) == vectors.doesnt_match(["1", "2", "3"])
    assert (vectors.key_to_index[7], vectors.index_to_key.index(7)) == (7, 7)
    assert list(Vectors([5, 3], [[1], [2]])) == ["5", "3"]
    assert list(reversed(Vectors([5, 3], [[1], [2]]))) == ["3", "5"]
    with pytest.raises(ParameterError, match="A set of words has no order"):
        Vectors({"a", "b"}, [[1], [2]])


def test_integers__that_are_no_words_are_spelled():
    vectors = Vectors([str(i) for i in range(100, 130)], np.eye(30)).with_ngrams(minn=1, maxn=3)
    np.testing.assert_array_equal(vectors[[1001, 105]], vectors[["1001", "105"]])


def test_most_similar__accepts_negative_words_alone(vectors, keyed):
    assert_same(vectors.most_similar(negative=["w1"]), keyed.most_similar(negative=["w1"]))


@pytest.mark.parametrize(
    ("positive", "negative"),
    [
        ("w1", []),
        (["w1", "w2"], []),
        (["w1", "w2"], "w5"),
        ([("w1", 0.5), "w2"], [("w3", -2.0)]),
        ([], ["w4"]),
    ],
)
@pytest.mark.parametrize("restrict_vocab", [None, 40])
def test_most_similar__equals_gensim(vectors, keyed, positive, negative, restrict_vocab):
    expected = keyed.most_similar(positive, negative, topn=7, restrict_vocab=restrict_vocab)
    assert_same(vectors.most_similar(positive, negative, 7, restrict_vocab), expected)


def test_most_similar__accepts_one_weighted_word(vectors):
    assert_same(vectors.most_similar(("w1", 2.0)), vectors.most_similar("w1"))


def test_most_similar__returns_all_other_words_for_a_large_topn(vectors):
    assert {word for word, _ in vectors.most_similar("w1", topn=1000)} == {*WORDS} - {"w1"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"positive": []}, "No word"),
        ({"positive": "w1", "topn": 0}, "topn=0"),
        ({"positive": "w1", "restrict_vocab": 0}, "restrict_vocab=0"),
    ],
)
def test_most_similar__refuses_bad_arguments(vectors, arguments, message):
    with pytest.raises(ParameterError, match=message):
        vectors.most_similar(**arguments)


@pytest.mark.parametrize(
    ("positive", "negative"),
    [
        (lambda rows: [rows[1]], lambda rows: []),
        (lambda rows: rows[1], lambda rows: []),
        (lambda rows: rows[:3], lambda rows: "w5"),
        (lambda rows: ["w1", 3 * rows[2]], lambda rows: [rows[4], "w6"]),
        (lambda rows: [(rows[2], 0.5), ("w1", 2.0)], lambda rows: [(rows[3], -2.0)]),
    ],
    ids=["a vector", "no list", "a matrix", "and words", "weights"],
)
def test_most_similar__treats_arrays_as_gensim(vectors, keyed, matrix, positive, negative):
    expected = keyed.most_similar(positive(matrix), negative(matrix), topn=7)
    assert_same(vectors.most_similar(positive(matrix), negative(matrix), 7), expected)


def test_most_similar__excludes_no_word_because_of_an_array(vectors, matrix):
    assert vectors.most_similar(matrix[1])[0] == ("w1", pytest.approx(1))


def test_similar_by_vector__equals_gensim(vectors, keyed, matrix):
    expected = keyed.similar_by_vector(matrix[3] * 2, topn=4, restrict_vocab=100)
    assert_same(vectors.similar_by_vector(matrix[3] * 2, 4, 100), expected)
    assert_same(vectors.similar_by_vector((matrix[3] * 2).tolist(), 4, 100), expected)


def test_similar_by_word__equals_gensim(vectors, keyed):
    expected = keyed.similar_by_word("w3", topn=4, restrict_vocab=100)
    assert_same(vectors.similar_by_word("w3", 4, 100), expected)


def test_distance__equals_gensim(vectors, keyed):
    assert vectors.distance("w1", "w2") == pytest.approx(keyed.distance("w1", "w2"), abs=1e-6)


def test_n_similarity__equals_gensim(vectors, keyed):
    lists = ["w1", "w2", "w9"], ["w5", "w1"]
    assert vectors.n_similarity(*lists) == pytest.approx(keyed.n_similarity(*lists), abs=1e-6)


@pytest.mark.parametrize("scores", [7, 1 << 22])
def test_rank__equals_gensim(vectors, keyed, monkeypatch, scores):
    monkeypatch.setattr(module, "SCORES", scores)
    first_words = WORDS[:40]
    assert [vectors.rank("w3", word) for word in first_words] == [keyed.rank("w3", word) for word in first_words]
    assert vectors.rank("w3", vectors.most_similar("w3")[0][0]) == 1


@pytest.mark.parametrize("norm", [False, True])
def test_get_vector__equals_gensim(vectors, keyed, norm):
    result = vectors.get_vector("w3", norm=norm)
    np.testing.assert_allclose(result, keyed.get_vector("w3", norm=norm), rtol=1e-6)
    result[:] = 0
    assert vectors["w3"].any(), "it is a copy"


def test_index_to_key__is_gensims_list(vectors, keyed):
    keys, expected = vectors.index_to_key, keyed.index_to_key
    assert list(keys) == expected
    assert len(keys) == 300
    assert keys == expected
    assert expected == keys == vectors.index_to_key
    assert keys != expected[1:]
    assert keys != [*expected[1:], "w0"]
    assert keys != tuple(expected), "as of lists"
    with pytest.raises(TypeError, match="unhashable"):
        hash(keys)
    for part in (slice(10), slice(-3, None), slice(5, 2), slice(1, 200, 50), slice(None, None, -1)):
        assert keys[part] == expected[part]
    assert (keys[-1], keys[np.int64(7)]) == ("w299", "w7")
    assert (keys.index("w8"), keys.count("w8")) == (8, 1)
    assert "w8" in keys
    assert "no" not in keys
    with pytest.raises(IndexError):
        keys[300]
    for missing in (lambda: keys.index("no"), lambda: keys.index("w8", 9), lambda: keys.index("w8", 0, -292)):
        with pytest.raises(ValueError, match="is not in the list"):
            missing()


def test_key_to_index__is_gensims_dict(vectors, keyed):
    numbers = vectors.key_to_index
    assert numbers == keyed.key_to_index
    assert numbers["w7"] == 7
    assert numbers.get("no") is None
    assert "w299" in numbers
    with pytest.raises(KeyError, match="'no' is not among the 300 words"):
        numbers["no"]


def test_keys__make_no_list_of_all_words(matrix):
    vectors = Vectors(Vocabulary.from_words(WORDS, range(300, 0, -1)), matrix)
    assert vectors.index_to_key[3] == "w3"
    assert vectors.key_to_index["w3"] == 3
    assert next(iter(vectors.index_to_key)) == next(iter(vectors.key_to_index)) == "w0"
    assert repr(vectors.index_to_key) == "Keys(<Vocabulary of 300 words: 'w0', 'w1', 'w2', ...>)"
    assert "words" not in vars(vectors.vocabulary)


def test_similarity__equals_gensim(vectors, keyed):
    assert vectors.similarity("w1", "w2") == pytest.approx(keyed.similarity("w1", "w2"), abs=1e-6)


def test_analogy__equals_gensim(vectors, keyed):
    expected = keyed.most_similar(["w2", "w3"], ["w1"], topn=5)
    assert_same(vectors.analogy("w1", "w2", "w3", topn=5), expected)


def test_analogy__multiplies_shifted_cosines(vectors, matrix):
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    a, b, c = (1 + unit[[1, 2, 3]] @ unit.T) / 2
    scores = b * c / (a + COSMUL_EPSILON)
    best = [i for i in np.argsort(-scores) if i not in (1, 2, 3)][:5]
    expected = [(WORDS[i], scores[i]) for i in best]
    assert_same(vectors.analogy("w1", "w2", "w3", topn=5, method="3cosmul"), expected)


def test_analogy__refuses_an_unknown_method(vectors):
    with pytest.raises(ParameterError, match="3cosdiv"):
        vectors.analogy("w1", "w2", "w3", method="3cosdiv")


def test_doesnt_match__equals_gensim(vectors, keyed):
    words = ["w1", "w2", "w3", "w4", "w5"]
    assert vectors.doesnt_match(words) == keyed.doesnt_match(words)


def test_doesnt_match__refuses_no_words(vectors):
    with pytest.raises(ParameterError, match="No words"):
        vectors.doesnt_match([])


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 2000), st.integers(1, 20), st.integers(1, 8), st.integers(0, 9))
def test_nearest__equals_brute_force_in_any_blocks(scores, topn, queries, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((50, 4)).astype(np.float32)
    vectors = Vectors(Vocabulary.from_words(WORDS[:50], [1] * 50), matrix)
    query = rng.standard_normal((queries, 4)).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SCORES", scores)
        ids, cosines = vectors.nearest(query, topn)
    exact = (query / np.linalg.norm(query, axis=1, keepdims=True)) @ (
        matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    ).T
    assert ids.shape == (queries, topn)
    assert np.allclose(cosines, -np.sort(-exact, axis=1)[:, :topn], atol=1e-6)
    assert np.allclose(np.take_along_axis(exact, ids, axis=1), cosines, atol=1e-6)


def test_nearest__takes_one_vector(vectors, matrix):
    ids, cosines = vectors.nearest(matrix[7], topn=3)
    assert ids.shape == cosines.shape == (3,)
    assert ids[0] == 7
    assert cosines[0] == pytest.approx(1)


@pytest.mark.parametrize("bad", [np.ones(3), np.ones((2, 2, 8)), np.full(8, np.nan)])
def test_nearest__refuses_vectors_that_do_not_fit(vectors, bad):
    with pytest.raises(ParameterError, match=r"the model has 8 dimensions|contains NaN"):
        vectors.nearest(bad)


def test_vectors__never_gives_nan_for_zero_vectors():
    vectors = Vectors(Vocabulary.from_words(["a", "b", "c", "d"], [1] * 4), np.zeros((4, 2), np.float32))
    assert vectors.similarity("a", "b") == 0
    assert [score for _, score in vectors.most_similar("a", topn=3)] == [0, 0, 0]
    assert vectors.analogy("a", "b", "c") == [("d", 0.0)]
    assert vectors.analogy("a", "b", "c", method="3cosmul")[0][0] == "d"
    assert vectors.doesnt_match(["b", "c"]) == "b"
    assert vectors.nearest(np.zeros(2))[1].tolist() == [0] * 4


def test_vectors__bears_very_long_vectors():
    vectors = Vectors(Vocabulary.from_words(["a", "b"], [1] * 2), np.full((2, 3), 1e30, np.float32))
    assert vectors.similarity("a", "b") == pytest.approx(1)


def test_open__reads_a_published_model(tmp_path, matrix):
    models = Store(str(tmp_path)) / "models"
    create_model(models / "v0001-r", {"input": matrix.shape}, 300)
    write_table_rows(models / "v0001-r", "input", 0, matrix)
    write_vocabulary(models / "v0001-r", Vocabulary.from_words(WORDS, range(300, 0, -1)))
    publish(models, "v0001-r", {"params": {"seed": 3}})
    vectors = Vectors.open(str(tmp_path))
    assert np.array_equal(vectors.vectors, matrix)
    assert vectors.vocabulary.words == WORDS
    assert vectors.metadata["params"] == {"seed": 3}
    assert vectors.url == str(tmp_path / "models" / "v0001-r")


def test_open__raises_an_error_without_a_model(tmp_path):
    with pytest.raises(StoreError, match="no model"):
        Vectors.open(str(tmp_path / "nothing"))
