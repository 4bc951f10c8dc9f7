"""Uploads to the Hugging Face Hub; the calls that would go to the network are fakes."""

import inspect
import shutil
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import daskw2v
from daskw2v import Vectors
from daskw2v.errors import MissingExtraError
from daskw2v.vocabulary.vocabulary import Vocabulary

WORDS = ["the", "king", "queen"]
ROWS = np.random.default_rng(1).standard_normal((3, 4), np.float32)
SECRET = "secretbucket"
METADATA = {
    "params": {"tokenizer": "lower", "alpha": 0.05, "features": f"s3://{SECRET}/f.parquet#1", "frozen_words": SECRET},
    "corpus": {"tokens": 123, "report": {"first_offence": f"s3://{SECRET}/text.txt"}},
    "metrics": {"workers": [{"host": SECRET}]},
    "resources": {"scheduler": SECRET},
}


def make_vectors():
    return Vectors(Vocabulary.from_words(WORDS, [9, 5, 1]), ROWS, METADATA).with_ngrams(bucket=50)


@pytest.fixture
def api(monkeypatch, tmp_path):
    """Record calls of huggingface_hub's HfApi; uploaded folders are copied to tmp_path / "uploaded"."""
    asked = []

    class Api:
        def __init__(self, token):
            asked.append(("token", token))

        def create_repo(self, repo_id, private, exist_ok):
            asked.append(("create", repo_id, private, exist_ok))
            return SimpleNamespace(repo_id=repo_id if "/" in repo_id else f"me/{repo_id}")

        def upload_folder(self, repo_id, folder_path, commit_message):
            asked.append(("upload", repo_id, commit_message))
            shutil.copytree(folder_path, tmp_path / "uploaded")

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(HfApi=Api))
    return asked


def test_push_to_hub__uploads_a_model_that_opens(api, tmp_path):
    url = make_vectors().push_to_hub("vectors", private=True, token="t", commit_message="new")
    assert url == "hf://me/vectors"
    assert api == [("token", "t"), ("create", "vectors", True, True), ("upload", "me/vectors", "new")]
    result = daskw2v.open(tmp_path / "uploaded")
    np.testing.assert_array_equal(result.vectors, ROWS)
    np.testing.assert_array_equal(result["kings"], make_vectors()["kings"])
    assert result.vocabulary.counts.tolist() == [9, 5, 1]
    assert result.metadata["params"] == {"tokenizer": "lower", "alpha": 0.05}
    np.testing.assert_array_equal(result.encode(["The KING"]), make_vectors().encode(["The KING"]))


@pytest.mark.parametrize("format", ["daskw2v", "static"])
def test_push_to_hub__uploads_nothing_private(api, tmp_path, format):
    make_vectors().push_to_hub("me/vectors", format=format)
    files = [path for path in (tmp_path / "uploaded").rglob("*") if path.is_file()]
    assert len(files) > 4
    assert [str(path) for path in files if SECRET.encode() in path.read_bytes()] == []
    card = (tmp_path / "uploaded/README.md").read_text("utf-8")
    own = "daskw2v", "daskw2v.open("
    library, call = own if format == "daskw2v" else ("model2vec", "StaticModel.from_pretrained(")
    assert f"library_name: {library}\n" in card
    assert call in card
    assert "3 words in 4 dimensions, trained by daskw2v on 123 tokens" in card


def test_push_to_hub__leaves_the_model_as_it_is(api):
    vectors = make_vectors()
    vectors.push_to_hub("me/vectors")
    assert vectors.metadata == METADATA


def test_push_to_hub__names_the_package_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r"huggingface_hub is not installed.*pip install 'daskw2v\[hub\]'"):
        make_vectors().push_to_hub("me/vectors")


def test_push_to_hub__calls_functions_that_huggingface_hub_has():
    """The fake has the parameters of the package."""
    hub = pytest.importorskip("huggingface_hub")
    for method, names in {
        "__init__": {"token"},
        "create_repo": {"repo_id", "private", "exist_ok"},
        "upload_folder": {"repo_id", "folder_path", "commit_message"},
    }.items():
        assert names <= {*inspect.signature(getattr(hub.HfApi, method)).parameters}
