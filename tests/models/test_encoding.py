"""Vectors of texts: means of the vectors of their words."""

import logging

import numpy as np
import pytest

import daskw2v
from daskw2v import Vectors
from daskw2v.errors import InputError, ParameterError, UnknownWordError
from daskw2v.models.formats.export import export
from daskw2v.models.queries import encoding
from daskw2v.vocabulary.vocabulary import Vocabulary

WORDS = ["the", "king", "queen", "new-york", "7", "sings"]
COUNTS = [100, 20, 10, 5, 2, 1]
ROWS = np.random.default_rng(1).standard_normal((len(WORDS), 4), np.float32)
TEXTS = ["The king, the QUEEN", "king\nking\r\nqueen", "", "nothing known", "New-York 7 \x01the"]


def model(**params):
    return Vectors(Vocabulary.from_words(WORDS, COUNTS), ROWS, {"params": params} if params else {})


def pairs(lines):
    """Return tokens of two characters, as a user's tokenizer."""
    return [[line[i : i + 2] for i in range(0, len(line), 2)] for line in lines]


def mean(words, weights=None):
    ids = [WORDS.index(word) for word in words]
    rows = ROWS[ids] if weights is None else ROWS[ids] * np.asarray(weights)[ids, None]
    return rows.mean(axis=0) if ids else np.zeros(4)


@pytest.mark.parametrize(
    ("tokenizer", "words"),
    [
        ("whitespace", [["the"], ["king", "king", "queen"], [], [], ["7", "the"]]),
        ("lower", [["the", "the", "queen"], ["king", "king", "queen"], [], [], ["new-york", "7", "the"]]),
        (
            "normalize",
            [["the", "king", "the", "queen"], ["king", "king", "queen"], [], [], ["new-york", "7", "the"]],
        ),
        ("regex:[a-z]+", [["king", "the"], ["king", "king", "queen"], [], [], ["the"]]),
    ],
)
def test_encode__is_the_mean_of_words_by_the_models_tokenizer(monkeypatch, tokenizer, words):
    expected = np.stack([mean(result) for result in words])
    for result in (model(tokenizer=tokenizer).encode(TEXTS), model().encode(TEXTS, tokenizer=tokenizer)):
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, expected, atol=1e-6)
    np.testing.assert_allclose(model(tokenizer=tokenizer).encode(TEXTS[0]), expected[0], atol=1e-6)


def test_encode__is_whitespace_without_params():
    np.testing.assert_allclose(model().encode(["the king"]), [mean(["the", "king"])], atol=1e-6)
    assert model().encode([]).shape == (0, 4)


def test_encode__takes_texts_part_by_part(monkeypatch):
    expected = model().encode(TEXTS * 3)
    monkeypatch.setattr(encoding, "TEXTS_AT_ONCE", 2)
    np.testing.assert_array_equal(model().encode(text for text in TEXTS * 3), expected)


def test_encode__takes_words_as_they_are():
    result = model(tokenizer="some.package:function").encode([["king", "no"], ("7", "the"), [7, "the"], []])
    expected = [mean(["king"]), mean(["7", "the"]), mean(["7", "the"]), np.zeros(4)]
    np.testing.assert_allclose(result, expected, atol=1e-6)


def test_encode__weighs_words_by_inverse_frequency():
    weights = 0.01 / (0.01 + np.array(COUNTS) / sum(COUNTS))
    result = model().encode(["the king no", "sings"], sif=0.01)
    np.testing.assert_allclose(result, [mean(["the", "king"], weights), mean(["sings"], weights)], atol=1e-6)
    with pytest.raises(InputError, match="have no counts"):
        Vectors(WORDS, ROWS).encode(["the"], sif=0.01)


@pytest.mark.parametrize("sif", [None, 0.001])
def test_encode__equals_model2vec(tmp_path, sif):
    model2vec = pytest.importorskip("model2vec", reason="it is no part of daskw2v's extras")
    vectors = model(tokenizer="normalize")
    export(vectors, tmp_path / "static", format="static", sif=sif)
    expected = model2vec.StaticModel.from_pretrained(str(tmp_path / "static"), normalize=False).encode(TEXTS)
    np.testing.assert_allclose(vectors.encode(TEXTS, sif=sif), expected, atol=1e-6)


def test_encode__spells_unknown_words_by_ngrams():
    vectors = model().with_ngrams(minn=2, maxn=3, bucket=1_000_000)
    assert "singing" not in vectors
    expected = (ROWS[1] + vectors["singing"]) / 2
    np.testing.assert_allclose(vectors.encode(["king singing"]), [expected], atol=1e-6)
    with pytest.raises(UnknownWordError, match="'日本' has no n-gram"):
        vectors["日本"]
    np.testing.assert_allclose(vectors.encode(["king 日本"]), [ROWS[1]], atol=1e-6)


def test_encode__runs_no_function_that_a_model_names():
    vectors = model(tokenizer="os:system")
    with pytest.raises(InputError, match=r"tokenizer is the function os:system, which no model loads by itself"):
        vectors.encode(["king"])
    result = Vectors(["ki", "ng"], ROWS[:2], {"params": {"tokenizer": "a:b"}}).encode(["king"], tokenizer=pairs)
    np.testing.assert_allclose(result, [ROWS[:2].mean(axis=0)], atol=1e-6)


def test_encode__replaces_lone_surrogates():
    np.testing.assert_allclose(model().encode(["king \ud800 queen"]), [mean(["king", "queen"])], atol=1e-6)


def test_encode__refuses_values_that_are_no_text():
    for bad in (b"king", 5, None):
        with pytest.raises(ParameterError, match="is neither a text nor a list of texts"):
            model().encode(bad)
    for bad in (b"king", 5, None, ["king", None]):
        with pytest.raises(ParameterError, match="is neither a text nor a list of words"):
            model().encode([bad])


def test_encode__splits_by_the_tokenizer_of_hugging_face(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    bpe = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: i for i, word in enumerate([*WORDS, "?"])}, "?"))
    bpe.pre_tokenizer = tokenizers.pre_tokenizers.Split(",", "removed")
    bpe.save(str(tmp_path / "tokenizer.json"))
    result = model().encode(["king,the,no", "queen\nking"], tokenizer=tmp_path / "tokenizer.json")
    np.testing.assert_allclose(result, [mean(["king", "the"]), mean(["queen", "king"])], atol=1e-6)
    lost = model(tokenizer="tokenizer.json#" + "0" * 20)
    with pytest.raises(InputError, match=r"tokenizer\.json#0+ is in the version .* Open the version, or give"):
        lost.encode(["king"])


@pytest.mark.parametrize("saved", [False, True])
def test_encode__joins_phrases_as_the_text_of_the_model(tmp_path, saved, caplog):
    lines = [*(f"a{i} new york b{i}" for i in range(100)), *(f"c{i} york\nnew d{i}" for i in range(9))]
    (tmp_path / "text.txt").write_text("\n".join(lines))
    params = daskw2v.Params(vector_size=4, min_count=1, sample=0, epochs=1, phrases=1, phrase_threshold=1)
    vectors = daskw2v.train(str(tmp_path / "text.txt"), work=tmp_path / "work", params=params, listener=None)
    (phrase,) = [word for word in vectors if "_" in word]
    if saved:
        vectors.save(tmp_path / "saved")
        vectors = Vectors.open(tmp_path / "saved")
    with caplog.at_level(logging.WARNING):
        (result,) = vectors.encode([phrase.replace("_", " ")])
    joined = vectors[phrase.split("_")].mean(axis=0) if saved else vectors[phrase]
    np.testing.assert_allclose(result, joined, atol=1e-6)
    assert ("Phrases of texts are not joined" in caplog.text) == saved
