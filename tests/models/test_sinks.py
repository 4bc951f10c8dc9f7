"""Exported files are read by the tools that they are for, which find the model's words, vectors and neighbours."""

import csv
import json
import re
import subprocess
import sys

import fsspec
import numpy as np
import pytest
from safetensors.numpy import load_file

from daskw2v.errors import InputError, MissingExtraError, ParameterError, StoreError
from daskw2v.models.formats.export import export
from daskw2v.models.queries import rows as rows_module
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.blocks import normalize_rows
from daskw2v.vocabulary.vocabulary import Vocabulary

V, D = 50, 6
WORDS = [f"naïve{i}" for i in range(V)]
EMPTY = Vectors(Vocabulary.from_words([], []), np.empty((0, D), np.float32))


@pytest.fixture
def vectors(monkeypatch):
    monkeypatch.setattr(rows_module, "BLOCK_BYTES", 4 * D * 8)  # eight rows at once
    matrix = np.random.default_rng(0).standard_normal((V, D), np.float32)
    matrix[7] = 0
    return Vectors(Vocabulary.from_words(WORDS, range(V, 0, -1)), matrix)


@pytest.fixture
def faiss():
    return pytest.importorskip("faiss", reason="faiss-cpu is not installed")


def test_faiss__finds_the_models_neighbours(vectors, tmp_path, faiss):
    export(vectors, tmp_path / "v.faiss")
    index = faiss.read_index(str(tmp_path / "v.faiss"))
    words = (tmp_path / "v.faiss.words").read_text("utf-8").split("\n")[:-1]
    assert words == WORDS
    cosines, ids = index.search(vectors.units([3, 20]), 11)
    for word, scores, result in zip((WORDS[3], WORDS[20]), cosines, ids, strict=True):
        wanted = vectors.most_similar(word, topn=10)
        assert [words[i] for i in result] == [word, *(neighbour for neighbour, _ in wanted)]
        assert np.allclose(scores[1:], [cosine for _, cosine in wanted], atol=1e-6)


def test_faiss__has_the_bytes_of_the_faiss_library(vectors, tmp_path, faiss):
    for exported in (vectors, EMPTY):
        export(exported, tmp_path / "ours.faiss")
        index = faiss.IndexFlatIP(D)
        index.add(normalize_rows(exported.rows(slice(0, len(exported)))))
        faiss.write_index(index, str(tmp_path / "theirs.faiss"))
        assert (tmp_path / "ours.faiss").read_bytes() == (tmp_path / "theirs.faiss").read_bytes()


def test_faiss__goes_to_any_file_system(vectors, tmp_path):
    export(vectors, f"memory://{tmp_path.name}/v.faiss")
    export(vectors, tmp_path / "v.faiss")
    for name in ("v.faiss", "v.faiss.words"):
        with fsspec.open(f"memory://{tmp_path.name}/{name}") as f:
            assert f.read() == (tmp_path / name).read_bytes()


def test_faiss__refuses_words_of_two_lines(tmp_path):
    words = Vocabulary.from_words(["a", "b\nc"], [2, 1])
    with pytest.raises(InputError, match=r"list of lines cannot represent 1 of the words.*'b\\nc'"):
        export(Vectors(words, np.ones((2, D), np.float32)), tmp_path / "v.faiss")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def lance():
    return pytest.importorskip("lance", reason="Lance comes with daskw2v[lance]")


def test_lance__holds_the_table(vectors, tmp_path, lance):
    for exported, fragments in ((vectors, 7), (EMPTY, 0)):
        export(exported, tmp_path / f"{len(exported)}.lance")
        result = lance.dataset(str(tmp_path / f"{len(exported)}.lance"))
        assert result.to_table().equals(exported.to_arrow())
        assert len(result.get_fragments()) == fragments
        assert result.version == 1


def test_lance__finds_the_nearest(vectors, tmp_path, lance):
    export(vectors, tmp_path / "v.lance")
    asked = {"column": "vector", "q": vectors[WORDS[3]], "k": 3, "metric": "cosine"}
    result = lance.dataset(str(tmp_path / "v.lance")).to_table(nearest=asked)
    wanted = vectors.most_similar(WORDS[3], topn=2)
    assert result["word"].to_pylist() == [WORDS[3], *(word for word, _ in wanted)]
    assert np.allclose(1 - result["_distance"].to_numpy()[1:], [cosine for _, cosine in wanted], atol=1e-6)


def test_lance__replaces_nothing(vectors, tmp_path, lance):
    export(vectors, tmp_path / "v.lance")
    with pytest.raises(StoreError, match=r"There is something at .*v\.lance, which is not replaced"):
        export(vectors, tmp_path / "v.lance")
    assert lance.dataset(str(tmp_path / "v.lance")).version == 1


@pytest.mark.usefixtures("lance")
def test_lance__leaves_no_files_if_it_fails(vectors, tmp_path):
    vectors.vectors[40] = np.nan  # in the last but one block
    with pytest.raises(StoreError, match="The vector of 'naïve40' is not finite"):
        export(vectors, tmp_path / "v.lance")
    assert list(tmp_path.iterdir()) == []


def test_lance__is_written_to_local_folders_alone(vectors, tmp_path):
    with pytest.raises(ParameterError, match=r"memory://v\.lance is not on this machine.*local folder"):
        export(vectors, "memory://v.lance")


def test_lance__names_its_extra(vectors, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lance", None)
    monkeypatch.setitem(sys.modules, "lance.fragment", None)
    with pytest.raises(MissingExtraError, match=r"lance is not installed.*daskw2v\[lance\]"):
        export(vectors, tmp_path / "v.lance")
    assert list(tmp_path.iterdir()) == []


def test_parquet__is_arrays_of_duckdb(vectors, tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    export(vectors, tmp_path / "v.parquet")
    table = f"(SELECT word, count, vector::FLOAT[{D}] AS vector FROM '{tmp_path}/v.parquet')"
    rows = duckdb.sql(f"SELECT word, count, vector FROM {table}").fetchall()
    assert [row[:2] for row in rows] == [(word, V - i) for i, word in enumerate(WORDS)]
    assert np.array_equal(np.array([row[2] for row in rows], np.float32), vectors.vectors)
    cosine = "array_cosine_similarity(a.vector, b.vector)"
    result = duckdb.execute(
        f"SELECT b.word, {cosine} FROM {table} a, {table} b WHERE a.word = ? AND a.word != b.word AND b.word != ? "
        f"ORDER BY {cosine} DESC LIMIT 5",
        [WORDS[3], WORDS[7]],  # the vector of the latter is zero, which has no cosine
    ).fetchall()
    wanted = vectors.most_similar(WORDS[3], topn=5)
    assert [word for word, _ in result] == [word for word, _ in wanted]
    assert np.allclose([score for _, score in result], [score for _, score in wanted], atol=1e-6)


def test_parquet__becomes_a_table_of_pgvector(vectors, tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    export(vectors, tmp_path / "v.parquet")
    duckdb.sql(f"COPY (SELECT word, vector::VARCHAR FROM '{tmp_path}/v.parquet') TO '{tmp_path}/v.csv' (HEADER false)")
    with open(tmp_path / "v.csv", encoding="utf-8", newline="") as f:
        words, texts = zip(*csv.reader(f), strict=True)
    assert list(words) == WORDS
    assert all(re.fullmatch(r"\[[-+.e\d]+(, [-+.e\d]+){5}\]", text) for text in texts)  # the text of its type `vector`
    assert np.array_equal(np.array([json.loads(text) for text in texts], np.float32), vectors.vectors)


@pytest.mark.parametrize("name", ["v.txt", "v.vec.gz"])
def test_text__becomes_vectors_of_spacy(vectors, tmp_path, name):
    pytest.importorskip("spacy", reason="spacy is not installed")
    export(vectors, tmp_path / name)
    command = [sys.executable, "-m", "spacy", "init", "vectors", "en", str(tmp_path / name), str(tmp_path / "en")]
    subprocess.run(command, check=True, capture_output=True)
    show = "import json, spacy, sys; nlp = spacy.load(sys.argv[1]); words = sys.argv[2:];"
    show += "print(json.dumps([nlp.vocab.get_vector(word).tolist() for word in words]))"
    read = subprocess.run([sys.executable, "-c", show, tmp_path / "en", *WORDS], check=True, capture_output=True)
    assert np.array_equal(np.array(json.loads(read.stdout), np.float32), vectors.vectors)


def test_static__is_a_folder_of_the_hugging_face_hub(vectors, tmp_path):
    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    metadata = {
        "params": {"tokenizer": "lower", "epochs": 3, "vocabulary": "s3://private/list", "features": None},
        "corpus": {"tokens": 1234},
        "metrics": {"evaluations": [{"scores": {"ws353": 0.1}}, {"scores": {"ws353": 0.625, "simlex": None}}]},
        "retraining": {"scores": {"similarity:men": {"value": 0.5}}},
    }
    export(Vectors(vectors.vocabulary, vectors.vectors, metadata, "s3://private/work"), tmp_path / "hub", "static")
    card = hub.ModelCard.load(tmp_path / "hub/README.md")
    assert (card.data.library_name, card.data.pipeline_tag) == ("model2vec", "feature-extraction")
    assert {"daskw2v", "word2vec", "sentence-transformers"} <= set(card.data.tags)
    assert card.data.license is None
    assert "50 words in 6 dimensions, trained by daskw2v on 1,234 tokens." in card.text
    assert _section(card.text, "Scores") == {"ws353": 0.625, "simlex": None, "similarity:men": 0.5}
    assert _section(card.text, "Parameters") == {
        "tokenizer": "lower",
        "epochs": 3,
        "vocabulary": True,
        "features": None,
    }
    assert "private" not in card.text
    rows = load_file(tmp_path / "hub/model.safetensors")["embeddings"]
    words = json.loads((tmp_path / "hub/tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    assert all(np.array_equal(rows[words[word]], vectors[word]) for word in WORDS)


def test_static__of_imported_vectors_has_a_card_of_their_sizes(vectors, tmp_path):
    export(vectors, tmp_path / "hub", "static")
    card = (tmp_path / "hub/README.md").read_text("utf-8")
    assert "50 words in 6 dimensions. A text" in card
    assert "##" not in card


def _section(card, title):
    return json.loads(card.partition(f"## {title}\n")[2].partition("##")[0])
