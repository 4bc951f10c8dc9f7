"""The folder that sentence-transformers and model2vec load, and gensim's KeyedVectors."""

import json
import sys

import fsspec
import numpy as np
import pytest
from safetensors.numpy import load_file

import daskw2v
from daskw2v.errors import InputError, ParameterError
from daskw2v.models.formats.export import export
from daskw2v.models.queries import rows as rows_module
from daskw2v.models.queries.vectors import Vectors
from daskw2v.vocabulary.vocabulary import Vocabulary
from tests.support.command_line import invoke

WORDS = ["the", "日本", 'quo"te\\', "naïve", "it's", "[UNK]"]


def make(words=WORDS, **params):
    matrix = np.random.default_rng(0).standard_normal((len(words), 4), np.float32)
    counts = range(len(words), 0, -1)
    return Vectors(Vocabulary.from_words(words, counts), matrix, {"params": params} if params else {})


def exported(vectors, folder):
    export(vectors, folder, format="static")
    return str(folder)


def test_static__has_a_row_for_each_word_and_zeros_for_unknown_words(tmp_path, monkeypatch):
    monkeypatch.setattr(rows_module, "BLOCK_BYTES", 32)  # two rows at once
    vectors, folder = make(), exported(make(), tmp_path / "static")
    rows = load_file(f"{folder}/model.safetensors")["embeddings"]
    tokenizer = json.loads((tmp_path / "static/tokenizer.json").read_text("utf-8"))
    assert np.array_equal(rows, np.vstack([vectors.vectors, np.zeros(4)]))
    assert tokenizer["model"]["unk_token"] == "[[UNK]]"
    assert tokenizer["model"]["vocab"] == {word: i for i, word in enumerate([*WORDS, "[[UNK]]"])}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    assert tokenizer["added_tokens"] == [{"id": len(WORDS), "content": "[[UNK]]", "special": True, **flags}]


def test_static__goes_to_any_file_system(tmp_path):
    vectors = make()
    exported(vectors, f"memory://{tmp_path.name}/static")
    exported(vectors, tmp_path / "static")
    for path in (tmp_path / "static").iterdir():
        with fsspec.open(f"memory://{tmp_path.name}/static/{path.name}") as f:
            assert f.read() == path.read_bytes()


def test_static__refuses_tokenizers_that_no_file_can_hold(tmp_path):
    with pytest.raises(InputError, match="tokenizer is the function package:cut"):
        exported(make(tokenizer="package:cut"), tmp_path / "static")
    with pytest.raises(InputError, match="no words"):
        exported(make(words=[]), tmp_path / "static")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("tokenizer", "text", "tokens"),
    [
        ("whitespace", "The the\x00naïve\u00a0x\tit's", ["The", "the", "naïve\u00a0x", "it's"]),
        ("lower", "THE\u00a0Naïve\u3000X\u2028y", ["the", "naïve", "x", "y"]),
        ("normalize", "The, —\u00a0ＮＡＩ̈ＶＥ it’s-'x' 2‐3", ["the", "naïve", "it's", "x", "2-3"]),
        ("regex:[a-z]+", "the NAIVE it's", ["the", "it", "s"]),
    ],
)
def test_static__cuts_text_as_the_models_tokenizer_did(tmp_path, tokenizer, text, tokens):
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers comes with model2vec")
    words = sorted({"another", *tokens})
    folder = exported(make(words=words, tokenizer=tokenizer), tmp_path / "static")
    result = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json").encode(text)
    assert result.tokens == tokens
    assert result.ids == [words.index(token) for token in tokens]


@pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning")
def test_static__is_loaded_by_model2vec(tmp_path):
    model2vec = pytest.importorskip("model2vec", reason="model2vec is not installed")
    vectors = make()
    model = model2vec.StaticModel.from_pretrained(exported(vectors, tmp_path / "static"))
    assert np.allclose(model.encode("the absent naïve"), vectors[["the", "naïve"]].mean(axis=0), atol=1e-6)
    long = " ".join(["the"] * 2000 + ["naïve"] * 2000)
    assert np.allclose(model.encode(long), vectors[["the", "naïve"]].mean(axis=0), atol=1e-3)  # nothing is cut off


@pytest.mark.slow
@pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning", "default::UserWarning")
def test_static__is_loaded_by_sentence_transformers(tmp_path):
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    vectors = make()
    model = library.SentenceTransformer(exported(vectors, tmp_path / "static"), device="cpu", local_files_only=True)
    result = model.encode(["the naïve", "it's", "the absent"])
    assert np.allclose(result[0], vectors[["the", "naïve"]].mean(axis=0), atol=1e-6)
    assert np.allclose(result[1], vectors["it's"], atol=1e-6)
    assert np.allclose(result[2], vectors["the"] / 2, atol=1e-6)


def weighted(vectors, a):
    counts = vectors.vocabulary.counts
    return vectors.vectors.astype(np.float64) * (a / (a + counts / counts.sum()))[:, None]


def test_sif__scales_rows_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(rows_module, "BLOCK_BYTES", 32)  # two rows at once
    vectors = make()
    export(vectors, tmp_path / "static", format="static", sif=0.1)
    rows = load_file(tmp_path / "static/model.safetensors")["embeddings"]
    assert np.allclose(rows, np.vstack([weighted(vectors, 0.1), np.zeros(4)]), atol=1e-6)
    assert "a word of probability p counts 0.1 / (0.1 + p)" in (tmp_path / "static/README.md").read_text("utf-8")


@pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning", "default::UserWarning")
@pytest.mark.parametrize("tool", ["model2vec", "sentence_transformers"])
def test_sif__equals_the_weights_of_both_tools(tmp_path, tool):
    library, vectors = pytest.importorskip(tool, reason=f"{tool} is not installed"), make()
    export(vectors, tmp_path / "static", format="static", sif=1e-3)
    folder = str(tmp_path / "static")
    if tool == "model2vec":
        model = library.StaticModel.from_pretrained(folder)
    else:
        model = library.SentenceTransformer(folder, device="cpu", local_files_only=True)
    expected = weighted(vectors, 1e-3)[[WORDS.index("the"), WORDS.index("naïve")]].mean(axis=0)
    assert np.allclose(model.encode(["the naïve"])[0], expected, atol=1e-6)


@pytest.mark.parametrize("a", [0, -1e-3, float("nan"), float("inf"), "0.001", True])
def test_sif__is_a_number_above_0(tmp_path, a):
    with pytest.raises(ParameterError, match=r"sif=.* is not a finite number > 0\."):
        export(make(), tmp_path / "static", format="static", sif=a)


def test_sif__is_for_static_alone_and_needs_counts(tmp_path):
    with pytest.raises(ParameterError, match=r"sif=0\.001 changes nothing in text; it is for static\."):
        export(make(), tmp_path / "a.txt", sif=1e-3)
    nameless = Vectors(Vocabulary.from_words(["a"], [0]), np.ones((1, 2), np.float32))
    with pytest.raises(InputError, match="have no counts"):
        export(nameless, tmp_path / "static", format="static", sif=1e-3)
    assert list(tmp_path.iterdir()) == []


def test_command__weighs_words(tmp_path):
    vectors = make()
    vectors.save(tmp_path / "model")
    for name, more, a in (("usual", ["--sif"], 1e-3), ("given", ["--sif", "0.5"], 0.5)):
        arguments = ["export", str(tmp_path / "model"), str(tmp_path / name), "--format", "static", *more]
        result = invoke(*arguments)
        assert result.exit_code == 0, result.output
        rows = load_file(tmp_path / name / "model.safetensors")["embeddings"]
        assert np.allclose(rows[:-1], weighted(vectors, a), atol=1e-6)


def test_gensim__round_trip_keeps_the_vectors(monkeypatch):
    pytest.importorskip("gensim", reason="gensim comes with daskw2v[gensim]")
    monkeypatch.setattr(rows_module, "BLOCK_BYTES", 32)
    vectors = make()
    keyed = daskw2v.to_gensim(vectors)
    assert keyed.index_to_key == WORDS
    assert [keyed.get_vecattr(word, "count") for word in WORDS] == vectors.vocabulary.counts.tolist()
    assert keyed.most_similar("the")[0][0] == vectors.most_similar("the")[0][0]
    keyed.vectors[:] += 1  # a copy
    assert np.array_equal(vectors.vectors, make().vectors)
    back = daskw2v.from_gensim(daskw2v.to_gensim(vectors))
    assert back.vocabulary.words == WORDS
    assert np.array_equal(back.vectors, vectors.vectors)
    assert np.array_equal(back.vocabulary.counts, vectors.vocabulary.counts)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("lengths", [(3, 6), (1, 2), (4, 3)], ids=str)
def test_from_gensim__keeps_the_ngrams_of_fasttext(tmp_path, lengths):
    """With lengths that are no n-grams, unseen words have no vector."""
    models = pytest.importorskip("gensim.models", reason="gensim comes with daskw2v[gensim]")
    minn, maxn = lengths
    sentences = [["apple", "orange", "größe", "apples"], ["orange", "apple", "green"]] * 20
    wv = models.FastText(sentences, vector_size=8, min_count=1, min_n=minn, max_n=maxn, bucket=500, epochs=2).wv
    vectors = daskw2v.from_gensim(wv)
    vectors.save(tmp_path / "model")
    for result in (vectors, daskw2v.Vectors.open(tmp_path / "model")):
        np.testing.assert_allclose(result["größe"], wv["größe"], rtol=1e-6)
        if minn > maxn:
            with pytest.raises(KeyError):
                result["applesauce"]
            continue
        for word in ("applesauce", "große", "greens"):
            np.testing.assert_allclose(result[word], wv.get_vector(word), rtol=1e-5, atol=1e-7)


def test_from_gensim__refuses_other_types():
    gensim = pytest.importorskip("gensim", reason="gensim comes with daskw2v[gensim]")
    with pytest.raises(daskw2v.Daskw2vError, match="A dict is not a KeyedVectors"):
        daskw2v.from_gensim({})
    numbered = gensim.models.KeyedVectors(2)
    numbered.add_vectors([7], np.ones((1, 2), np.float32))
    with pytest.raises(daskw2v.Daskw2vError, match="The key 7 is not a word"):
        daskw2v.from_gensim(numbered)


def test_to_gensim__names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim", None)
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(daskw2v.errors.MissingExtraError, match=r"daskw2v\[gensim\]"):
        daskw2v.to_gensim(make())


def test_import__refuses_gensims_pickles(tmp_path):
    pytest.importorskip("gensim", reason="gensim comes with daskw2v[gensim]")
    daskw2v.to_gensim(make()).save(str(tmp_path / "v.kv"))
    with pytest.raises(InputError, match=r"v\.kv is a pickle.*save_word2vec_format"):
        daskw2v.import_word2vec(tmp_path / "v.kv")
