"""daskw2v.open: models, files of other tools, and the Hugging Face Hub, which is a filesystem in memory here."""

import subprocess
import sys
from pathlib import Path

import fsspec
import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import daskw2v
from daskw2v import Vectors
from daskw2v.errors import InputError, ParameterError, StoreError
from daskw2v.models.stored.store import write_vocabulary
from daskw2v.models.stored.tables import create_model, write_table_rows
from daskw2v.models.versions.versions import publish
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary

WORDS = ["king", "queen", "apple"]
ROWS = np.random.default_rng(1).standard_normal((3, 4), np.float32)


class Hub(MemoryFileSystem):
    """Replace huggingface_hub's filesystem by one in memory, which has its own files."""

    protocol = "hf"
    store = {}  # noqa: RUF012
    pseudo_dirs = [""]  # noqa: RUF012

    @classmethod
    def _strip_protocol(cls, path):
        return "/" + path.removeprefix("hf://").strip("/")


def make_vectors():
    return Vectors(Vocabulary.from_words(WORDS, [3, 2, 1]), ROWS)


@pytest.fixture
def hub():
    """No process of tests sees the true Hub afterwards."""
    fsspec.register_implementation("hf", Hub, clobber=True)
    yield Hub
    Hub.store.clear()


def assert_same(result):
    assert result.vocabulary.words == WORDS
    np.testing.assert_array_equal(result.vectors, ROWS)


def published(folder, names):
    models = Store(str(folder)) / "models"
    for name in names:
        create_model(models / name, {"input": ROWS.shape}, 3)
        write_table_rows(models / name, "input", 0, ROWS)
        write_vocabulary(models / name, Vocabulary.from_words(WORDS, [3, 2, 1]))
        publish(models, name, {})


def test_open__opens_all_that_vectors_open(tmp_path):
    published(tmp_path / "work", ["v0001-r", "v0002-s"])
    make_vectors().save(tmp_path / "saved")
    for url in (tmp_path / "work", tmp_path / "work/models", tmp_path / "work/models/v0001-r", tmp_path / "saved"):
        assert_same(daskw2v.open(url))
    assert daskw2v.open(tmp_path / "work").url.endswith("v0002-s")
    assert daskw2v.open(tmp_path / "work", version="v0001-r").url.endswith("v0001-r")
    assert not daskw2v.open(tmp_path / "saved", in_memory=False).in_memory


@pytest.mark.parametrize("name", ["v.txt", "v.vec", "v.bin", "v.txt.gz", "v.safetensors"])
def test_open__imports_files_of_other_tools(tmp_path, name):
    make_vectors().save(tmp_path / name)
    assert_same(daskw2v.open(tmp_path / name))
    make_vectors().save(f"memory://{tmp_path}/{name}")
    assert_same(daskw2v.open(f"memory://{tmp_path}/{name}"))


def test_open__imports_models_of_fasttext(tmp_path):
    make_vectors().with_ngrams(bucket=100).save(tmp_path / "v.bin", format="fasttext")
    result = daskw2v.open(tmp_path / "v.bin")
    np.testing.assert_allclose(result["king"], ROWS[0], atol=1e-6)
    assert result.features is not None


def test_open__names_the_reader_of_a_file(tmp_path):
    (tmp_path / "glove.txt").write_text("king 1 2\nqueen 2 3\n")
    with pytest.raises(InputError, match="add a first line such as '400000 100' to a GloVe file"):
        daskw2v.open(tmp_path / "glove.txt")
    (tmp_path / "keyed.bin").write_bytes(b"\x80\x04")
    with pytest.raises(InputError, match=r"is a pickle.*daskw2v\.from_gensim"):
        daskw2v.open(tmp_path / "keyed.bin")


def test_open__names_the_reader_of_a_table(tmp_path):
    pd = pytest.importorskip("pandas")
    make_vectors().save(tmp_path / "v.parquet")
    with pytest.raises(InputError, match=r"v\.parquet is a file in the format parquet\. Read it by pandas"):
        daskw2v.open(tmp_path / "v.parquet")
    table = pd.read_parquet(tmp_path / "v.parquet")
    assert_same(Vectors(table["word"], np.stack(table["vector"])))  # as the message says


@pytest.mark.parametrize("options", [{"in_memory": False}, {"version": "stable"}])
def test_open__refuses_options_that_a_file_does_not_have(tmp_path, options):
    make_vectors().save(tmp_path / "v.txt")
    with pytest.raises(ParameterError, match=r"v\.txt is a file of another tool, which is read as a whole"):
        daskw2v.open(tmp_path / "v.txt", **options)


@pytest.mark.usefixtures("hub")
def test_open__finds_models_of_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_vectors().save("hf://me/vectors")
    for url in ("me/vectors", "hf://me/vectors"):
        assert_same(daskw2v.open(url))
        assert daskw2v.open(url).url == "hf://me/vectors"
        assert not daskw2v.open(url, in_memory=False).in_memory


@pytest.mark.usefixtures("hub")
def test_open__prefers_a_folder_that_exists(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Vectors(["other"], ROWS[:1]).save("hf://me/vectors")
    make_vectors().save("me/vectors")
    assert_same(daskw2v.open("me/vectors"))
    (tmp_path / "me/empty").mkdir()
    with pytest.raises(StoreError, match=r"^There is no model at me/empty"):
        daskw2v.open("me/empty")


@pytest.mark.usefixtures("hub")
def test_open__names_folder_and_hub_where_neither_has_a_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        StoreError, match="There is no folder me/nothing; of the Hub: There is no model at hf://me/nothing"
    ):
        daskw2v.open("me/nothing")
    with pytest.raises(StoreError, match=r"^There is no model at nothing"):
        daskw2v.open("nothing")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("me/vectors", "There is no folder me/vectors, and the Hugging Face Hub needs huggingface_hub, which is not"),
        ("hf://me/vectors", "URLs of hf:// need a package that is not installed"),
    ],
)
def test_open__says_how_to_install_the_hub(tmp_path, monkeypatch, url, message):
    """The test runs in a new interpreter, whose fsspec has no filesystem of the Hub registered."""
    lines = f"""
import sys
sys.modules["huggingface_hub"] = None
import daskw2v
try:
    daskw2v.open({url!r})
except daskw2v.Daskw2vError as error:
    print(type(error).__name__, error)
"""
    monkeypatch.setenv("PYTHONPATH", str(Path(daskw2v.__file__).parents[1]))
    ran = subprocess.run([sys.executable, "-c", lines], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.startswith(f"MissingExtraError {message}")
    assert "'daskw2v[hub]'" in ran.stdout
