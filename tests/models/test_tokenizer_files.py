"""Training on the tokens of a tokenizer of Hugging Face, and the static model that has this tokenizer."""

import copy
import json
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from daskw2v import Params, Resources, Vectors, export, retrain, train
from daskw2v.corpus import stored_tokenizers
from daskw2v.errors import DamageError, InputError, MissingExtraError, ParameterError
from daskw2v.retraining.outcome import Outcome
from daskw2v.stages import Store, build_corpus
from tests.support.command_line import invoke

tokenizers = pytest.importorskip("tokenizers")

TEXT = ["the cat sat on the mat", "naïve cats sit on mats", "the dog's mat, the cat's dog"] * 20
TOLD = "the cat's mats sit, naïve dog"
PARAMS = Params(vector_size=8, min_count=2, epochs=1, sample=0, window=2)
TINY = Resources(threads=1)


@pytest.fixture(scope="module")
def bpe():
    """A byte-level BPE that truncates texts, and has a token that no text has."""
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE())
    bpe.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<pad>"], initial_alphabet=alphabet, show_progress=False
    )
    bpe.train_from_iterator(TEXT, trainer)
    bpe.enable_truncation(4)
    bpe.enable_padding(pad_token="<pad>")
    return bpe


@pytest.fixture(scope="module")
def folder(bpe, tmp_path_factory):
    """A folder with text and tokenizer, and the model that was trained there."""
    folder = tmp_path_factory.mktemp("tokens")
    (folder / "text.txt").write_text("".join(f"{line}\n" for line in TEXT))
    bpe.save(str(folder / "bpe.json"))
    return folder


@pytest.fixture(scope="module")
def trained(folder, client):
    """Return a function that trains with a tokenizer."""

    def train_with(tokenizer, work="work", **params):
        chosen = PARAMS.replace(tokenizer=tokenizer, **params)
        return train(
            folder / "text.txt", work=folder / work, params=chosen, resources=TINY, client=client, listener=None
        )

    return train_with


@pytest.fixture(scope="module")
def vectors(trained, folder):
    return trained(str(folder / "bpe.json"))


def tokens_of(bpe, text):
    untruncated = tokenizers.Tokenizer.from_str(bpe.to_str())
    untruncated.no_truncation()
    untruncated.no_padding()
    return untruncated.encode(text, add_special_tokens=False).tokens


def test_words__are_the_tokens_of_complete_lines(vectors, bpe):
    tokens = [token for line in TEXT for token in tokens_of(bpe, line)]
    assert {*vectors} == {token for token in tokens if tokens.count(token) > 1}
    assert vectors.metadata["corpus"]["tokens"] == len(tokens)


@pytest.mark.slow
def test_tokenizer__is_known_by_its_content_alone(trained, vectors, bpe, folder):
    transformers = pytest.importorskip("transformers")
    name = vectors.metadata["params"]["tokenizer"]
    assert name.startswith("tokenizer.json#")
    (folder / "indented.json").write_text(json.dumps(json.loads((folder / "bpe.json").read_text()), indent=3))
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=bpe)
    fast.backend_tokenizer.enable_truncation(4)
    for same in (folder / "indented.json", bpe, name):
        assert trained(same).url == vectors.url
    assert {*trained(fast, work="fast")} == {*vectors}
    other = tokenizers.Tokenizer.from_str(bpe.to_str())
    other.normalizer = tokenizers.normalizers.Lowercase()
    assert trained(other).url != vectors.url


@pytest.mark.sampled(1)
@pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning", "default::UserWarning")
@pytest.mark.parametrize("tool", ["model2vec", "sentence_transformers"])
@pytest.mark.parametrize("columns", [8, 3])
def test_static_export__gives_the_mean_of_tokens_vectors(vectors, bpe, tmp_path, tool, columns):
    library = pytest.importorskip(tool, reason=f"{tool} is not installed")
    model = vectors if columns == 8 else vectors.prefix(columns)
    export(model, tmp_path / "static", format="static")
    if tool == "model2vec":
        loaded = library.StaticModel.from_pretrained(str(tmp_path / "static"))
    else:
        loaded = library.SentenceTransformer(str(tmp_path / "static"), device="cpu", local_files_only=True)
    tokens = tokens_of(bpe, f"{TOLD} zebra")
    assert any(token not in vectors for token in tokens)
    rows = [model[token] if token in model else np.zeros(columns) for token in tokens]
    np.testing.assert_allclose(loaded.encode([f"{TOLD} zebra"])[0], np.mean(rows, axis=0), atol=1e-6)
    assert "Words are tokens of `tokenizer.json`" in (tmp_path / "static/README.md").read_text("utf-8")


def test_saved_model__has_its_tokenizer(vectors, tmp_path):
    vectors.save(tmp_path / "saved")
    vectors.prefix(3).save(tmp_path / "prefix")
    for name in ("saved", "prefix"):
        saved = Vectors.open(tmp_path / name)
        assert saved.tokenizer_json() == vectors.tokenizer_json()
        export(saved, tmp_path / f"{name}-static", format="static")


def test_encode__is_the_mean_of_known_tokens_vectors(vectors, bpe, tmp_path):
    vectors.save(tmp_path / "saved")
    other = Vectors(list(vectors), np.asarray(vectors))
    for model in (vectors, vectors.prefix(3), vectors.align(other), Vectors.open(tmp_path / "saved")):
        known = [token for token in tokens_of(bpe, f"{TOLD} zebra") if token in model]
        np.testing.assert_allclose(model.encode([f"{TOLD} zebra"]), [model[known].mean(axis=0)], atol=1e-6)


def test_tokenizer_object__is_identified_by_its_content(bpe):
    params = PARAMS.replace(tokenizer=bpe)
    assert pickle.loads(pickle.dumps(params)) == copy.deepcopy(params) == params.replace(tokenizer=bpe) == params
    assert len(repr(params.tokenizer)) < 100


def test_command__trains_and_exports(vectors, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    line = ["train", "text.txt", "--work", "work", "--tokenizer", "bpe.json", "--threads", "1"]
    options = ["--vector-size", "8", "--min-count", "2", "--epochs", "1", "--sample", "0", "--window", "2"]
    result = invoke(*line, *options)
    assert vectors.url in result.stdout, "the same run"
    assert invoke("export", "work", str(tmp_path / "static"), "--format", "static").exit_code == 0
    assert len(json.loads((tmp_path / "static/tokenizer.json").read_text("utf-8"))["model"]["vocab"]) > len(vectors)


@pytest.mark.slow
def test_night__goes_on_with_the_same_tokenizer(folder, client, tmp_path):
    params = PARAMS.replace(tokenizer=folder / "bpe.json")
    asked = {"work": tmp_path / "work", "params": params, "resources": TINY, "client": client, "listener": None}
    assert retrain(folder / "text.txt", **asked).outcome is Outcome.PUBLISHED
    (tmp_path / "more.txt").write_text("".join(f"{line}\n" for line in TEXT))
    assert retrain([folder / "text.txt", tmp_path / "more.txt"], **asked).outcome is Outcome.PUBLISHED
    assert Vectors.open(tmp_path / "work").tokenizer_json() is not None


def test_damage__is_detected_and_repaired(trained, folder):
    first = trained(folder / "bpe.json", work="mended")
    chunk = next(path for path in (folder / "mended/tokenizers").rglob("json/c/*") if path.is_file())
    chunk.write_bytes(chunk.read_bytes()[:-8] + bytes(8))
    stored_tokenizers._loaded.cache_clear()
    assert trained(folder / "bpe.json", work="mended", errors="strict").url != first.url
    version = Path(first.url)
    chunk = next(path for path in (version / "tokenizer").rglob("json/c/*") if path.is_file())
    chunk.write_bytes(chunk.read_bytes()[:-8] + bytes(8))
    with pytest.raises(DamageError, match="json"):
        Vectors.open(version).tokenizer_json()


def test_tokenizers__that_cannot_be_read_are_refused(trained, folder, client):
    (folder / "words.json").write_text('["the", "cat"]')
    wrong = {
        r"nowhere\.json": folder / "nowhere.json",
        r"words\.json cannot be read .* Give a tokenizer\.json of Hugging Face": folder / "words.json",
        r"tokenizer\.json#0{20} is not in .*never": f"tokenizer.json#{'0' * 20}",
    }
    for message, tokenizer in wrong.items():
        with pytest.raises(InputError, match=message):
            trained(tokenizer, work="never")
        params, work = PARAMS.replace(tokenizer=tokenizer), Store(str(folder / "never"))
        with pytest.raises(InputError, match=message):
            build_corpus(folder / "text.txt", params=params, store=work, resources=TINY, client=client, listener=None)
    with pytest.raises(ParameterError, match="secret"):
        Params(tokenizer="https://user:secret@host/tokenizer.json")


def test_extra__is_named_where_it_is_missing(trained, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingExtraError, match=r"daskw2v\[tokenizers\]"):
        trained(folder / "bpe.json", work="never")


def test_export__of_other_vectors_names_the_remedy(vectors, tmp_path):
    apart = Vectors(list(vectors), np.asarray(vectors), vectors.metadata)
    with pytest.raises(InputError, match=r"Export the work directory or one of its versions"):
        export(apart, tmp_path / "static", format="static")


def test_export__refuses_ids_with_gaps(bpe, vectors, tmp_path, monkeypatch):
    gapped = json.loads(bpe.to_str())
    gapped["model"]["vocab"]["Ġthe"] = 5000
    monkeypatch.setattr(Vectors, "tokenizer_json", lambda self: json.dumps(gapped).encode())
    with pytest.raises(InputError, match="have gaps"):
        export(vectors, tmp_path / "static", format="static")
