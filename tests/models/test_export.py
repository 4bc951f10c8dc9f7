import sys
from types import SimpleNamespace

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file

from daskw2v import to_gensim
from daskw2v.errors import InputError, MissingExtraError, ParameterError
from daskw2v.features.keys import FeatureColumn, FeatureKeys, HashedNGrams
from daskw2v.models.formats.export import _FOLDER_WRITERS, _WRITERS, WITH_NGRAMS, export
from daskw2v.models.queries import rows as rows_module
from daskw2v.models.queries.features import FeatureVectors
from daskw2v.models.queries.vectors import Vectors
from daskw2v.vocabulary.vocabulary import Vocabulary

WORDS = ["the", "New York", "日本", "naïve", ""]


@pytest.fixture(scope="module")
def vectors():
    matrix = np.random.default_rng(0).standard_normal((5, 3), np.float32)
    return Vectors(Vocabulary.from_words(WORDS, [9, 7, 5, 3, 1]), matrix)


def test_export__writes_parquet(vectors, tmp_path, monkeypatch):
    monkeypatch.setattr(rows_module, "BLOCK_BYTES", 24)  # two rows in a row group
    export(vectors, str(tmp_path / "v.parquet"))
    table = pq.read_table(tmp_path / "v.parquet")
    assert table.schema.field("vector").type == pa.list_(pa.float32(), 3)
    assert table["word"].to_pylist() == WORDS
    assert table["count"].to_pylist() == [9, 7, 5, 3, 1]
    assert np.array_equal(np.array(table["vector"].to_pylist(), np.float32), vectors.vectors)
    assert pq.ParquetFile(tmp_path / "v.parquet").num_row_groups == 3


def test_export__writes_safetensors(vectors, tmp_path):
    export(vectors, str(tmp_path / "v.safetensors"))
    tensors = load_file(tmp_path / "v.safetensors")
    words = Vocabulary(tensors["words"], tensors["offsets"], tensors["counts"])
    assert np.array_equal(tensors["vectors"], vectors.vectors)
    assert words.words == WORDS
    assert words.counts.tolist() == [9, 7, 5, 3, 1]


def test_export__writes_the_projectors_two_files(vectors, tmp_path):
    export(vectors, str(tmp_path / "projector"), format="projector")
    result = np.loadtxt(tmp_path / "projector" / "vectors.tsv", delimiter="\t", dtype=np.float32)
    assert np.array_equal(result, vectors.vectors)
    lines = (tmp_path / "projector" / "metadata.tsv").read_text("utf-8").split("\n")
    assert lines == ["word\tcount", "the\t9", "New York\t7", "日本\t5", "naïve\t3", "\t1", ""]


def test_export__refuses_words_that_break_the_projectors_lines(tmp_path):
    words = Vocabulary.from_words([f"a\t{i}" for i in range(7)], [1] * 7)
    with pytest.raises(InputError, match=r"The projector cannot represent 7 .*, \.\.\.\."):
        export(Vectors(words, np.ones((7, 2), np.float32)), str(tmp_path / "p"), format="projector")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["v.parquet", "v.safetensors"])
def test_export__writes_to_any_file_system(vectors, tmp_path, name):
    export(vectors, f"memory://{tmp_path.name}/{name}")
    export(vectors, str(tmp_path / name))
    with fsspec.open(f"memory://{tmp_path.name}/{name}") as f:
        assert f.read() == (tmp_path / name).read_bytes()


def test_export__prefers_the_format_argument(vectors, tmp_path):
    export(vectors, str(tmp_path / "v.txt"), format="safetensors")
    assert np.array_equal(load_file(tmp_path / "v.txt")["vectors"], vectors.vectors)


def test_export__writes_no_words(tmp_path):
    nothing = Vectors(Vocabulary.from_words([], []), np.empty((0, 3), np.float32))
    for name in ("v.txt", "v.bin", "v.parquet", "v.safetensors"):
        export(nothing, str(tmp_path / name))
    assert (tmp_path / "v.txt").read_bytes() == b"0 3\n"
    assert load_file(tmp_path / "v.safetensors")["vectors"].shape == (0, 3)
    assert pq.read_table(tmp_path / "v.parquet").num_rows == 0


COLUMN = FeatureColumn("a", 1.0, ("b",))
PARTS = {  # what a model may have besides the vectors of its words, and how a warning names it
    "n-grams": {"features": FeatureVectors(FeatureKeys(ngrams=HashedNGrams(3, 3, 9)), np.zeros((0, 3), np.float32))},
    "features": {"features": FeatureVectors(FeatureKeys((COLUMN,)), np.ones((1, 3), np.float32))},
    "subword network": {"subwords": SimpleNamespace(vector_size=3)},
    "phrases": {"metadata": {"phrases": [{}]}},
}


@pytest.mark.parametrize("format", [*_WRITERS, *_FOLDER_WRITERS])
@pytest.mark.parametrize("part", PARTS)
def test_export__names_the_parts_that_a_format_lacks(tmp_path, caplog, format, part):
    if format == "lance":
        pytest.importorskip("lance", reason="it comes with daskw2v[lance]")
    model = Vectors(["one", "two"], np.eye(2, 3), **PARTS[part])
    if (format, part) in {(format, "features") for format in WITH_NGRAMS}:
        return  # they refuse it
    export(model, str(tmp_path / "exported"), format)
    messages = [record.getMessage() for record in caplog.records if record.name.startswith("daskw2v")]
    if part == "n-grams" and format in WITH_NGRAMS:
        assert messages == []
        return
    (message,) = messages
    assert message.startswith(f"{tmp_path}/exported lacks parts of the model: {part} (")


def test_export__of_vectors_alone_logs_no_warning(vectors, tmp_path, caplog):
    export(vectors, str(tmp_path / "v.parquet"))
    assert caplog.records == []


def test_to_gensim__names_omitted_parts(caplog):
    pytest.importorskip("gensim")
    to_gensim(Vectors(["one"], np.eye(1, 3), **PARTS["phrases"]))
    assert caplog.messages == ["KeyedVectors lacks parts of the model: phrases (how words of new text are joined)."]


@pytest.mark.parametrize(("name", "format"), [("v.dat", None), ("v.txt", "glove")])
def test_export__refuses_an_unknown_format(vectors, tmp_path, name, format):
    with pytest.raises(
        ParameterError, match="Give one of text, binary, parquet, safetensors, fasttext, ftz, projector"
    ):
        export(vectors, str(tmp_path / name), format)


@pytest.mark.parametrize("name", ["v.parquet.gz", "v.safetensors.gz"])
def test_export__refuses_to_compress_a_compressed_format(vectors, tmp_path, name):
    with pytest.raises(ParameterError, match="not compressed with gzip"):
        export(vectors, str(tmp_path / name))


def test_export__names_the_extra_that_parquet_needs(vectors, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"daskw2v\[arrow\]"):
        export(vectors, str(tmp_path / "v.parquet"))
    assert list(tmp_path.iterdir()) == []
