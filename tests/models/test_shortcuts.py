"""Methods of Vectors that call other modules, and the batched query."""

import numpy as np
import pytest

import daskw2v
from daskw2v import Vectors
from daskw2v.errors import ParameterError, StoreError
from daskw2v.models.formats.export import export
from daskw2v.objectives.subwords.network import Alphabet, Subwords
from daskw2v.objectives.subwords.training import initial_weights
from daskw2v.vocabulary.vocabulary import Vocabulary

V, D = 40, 6
WORDS = [f"w{i}" for i in range(V)]
ROWS = np.random.default_rng(1).standard_normal((V, D), np.float32)
VECTORS = Vectors(Vocabulary.from_words(WORDS, range(V, 0, -1)), ROWS)


def test_evaluate__is_the_functions(tmp_path):
    (tmp_path / "pairs.txt").write_text("".join(f"w{i} w{i + 1} {i}\n" for i in range(20)))
    pairs = [tmp_path / "pairs.txt"]
    assert VECTORS.evaluate(pairs) == VECTORS.evaluate(similarity=pairs) == daskw2v.evaluate(VECTORS, pairs)


def test_report__is_the_functions(tmp_path):
    url = VECTORS.report(tmp_path / "method.html", words=["w1", "w2"])
    assert url == str(tmp_path / "method.html")
    daskw2v.report(VECTORS, tmp_path / "function.html", words=["w1", "w2"])
    sizes = [(tmp_path / name).stat().st_size for name in ("method.html", "function.html")]
    assert sizes[0] == sizes[1] > 10_000  # Bokeh draws the ids of a drawing


@pytest.mark.parametrize(
    ("name", "format"),
    [("v.txt", None), ("v.bin", None), ("v", "text"), ("v.safetensors", None), ("v.txt.gz", None), ("v.x", "binary")],
)
def test_save__writes_the_files_of_export(tmp_path, name, format):
    VECTORS.save(tmp_path / name, format)
    export(VECTORS, tmp_path / f"exported-{name}", format)
    assert (tmp_path / name).read_bytes() == (tmp_path / f"exported-{name}").read_bytes()


def test_save__writes_a_folder_if_the_name_has_no_format(tmp_path):
    for name in ("model", "model.v1", "texts"):
        VECTORS.save(tmp_path / name)
        np.testing.assert_array_equal(Vectors.open(tmp_path / name).vectors, ROWS)
    with pytest.raises(StoreError):
        VECTORS.save(tmp_path / "model")


def test_save__refuses_options_that_no_format_reads(tmp_path):
    with pytest.raises(ParameterError, match=r"sif=0\.1 changes nothing in text"):
        VECTORS.save(tmp_path / "v.txt", sif=0.1)
    with pytest.raises(ParameterError, match="has no suffix of a format"):
        VECTORS.save(tmp_path / "model", sif=0.1)
    with pytest.raises(ParameterError, match="format='hdf5' of"):
        VECTORS.save(tmp_path / "model", "hdf5")
    assert list(tmp_path.iterdir()) == []


def test_to_polars__has_words_counts_and_vectors():
    pl = pytest.importorskip("polars")
    table = VECTORS.to_polars()
    assert table.schema == {"word": pl.String, "count": pl.Int64, "vector": pl.Array(pl.Float32, D)}
    assert table["word"].to_list() == WORDS
    assert table["count"].to_list() == list(range(V, 0, -1))
    np.testing.assert_array_equal(table["vector"].to_numpy(), ROWS)
    assert Vectors([], np.ones((0, 3))).to_polars().shape == (0, 3)


@pytest.mark.parametrize("restrict_vocab", [None, 11])
@pytest.mark.parametrize("topn", [1, 7, 1000])
def test_nearest__of_words_equals_most_similar_of_each(topn, restrict_vocab):
    words = ["w3", "w30", "w3"]
    ids, cosines = VECTORS.nearest(words, topn, restrict_vocab)
    assert (ids.dtype, cosines.dtype) == (np.int64, np.float32)
    width = min(topn, (restrict_vocab or V) - 1)
    assert ids.shape == cosines.shape == (3, width)
    for word, row, scores in zip(words, ids.tolist(), cosines, strict=True):
        expected = VECTORS.most_similar(word, topn=topn, restrict_vocab=restrict_vocab)[:width]
        assert [WORDS[i] for i in row] == [word for word, _ in expected]
        np.testing.assert_allclose(scores, [cosine for _, cosine in expected], atol=1e-6)
    one = VECTORS.nearest("w3", topn, restrict_vocab)
    assert one[0].tolist() == VECTORS.nearest(["w3"], topn, restrict_vocab)[0][0].tolist()
    for queries in (np.array(words), tuple(words), iter(words)):
        assert VECTORS.nearest(queries, topn, restrict_vocab)[0].tolist() == ids.tolist()


def test_nearest__of_equal_words_leaves_the_word_itself_out():
    vectors = Vectors(WORDS[:6], np.ones((6, 2)))
    for ids, itself in zip(vectors.nearest(WORDS[:6], 2)[0].tolist(), range(6), strict=True):
        assert len({*ids} - {itself}) == 2


def test_nearest__of_words_outside_the_vocabulary():
    alphabet = Alphabet.from_words(WORDS)
    vectors = Vectors(WORDS, ROWS, subwords=Subwords(alphabet, initial_weights(D, len(alphabet), seed=1)))
    ids, _ = vectors.nearest(["w3w3", "w4w4"], V)
    assert ids.shape == (2, V)
    assert vectors.nearest(["w3w3", "w4"], V)[0].shape == (2, V - 1)
    assert [WORDS[i] for i in ids[0]] == [word for word, _ in vectors.most_similar("w3w3", topn=V)]


def test_nearest__of_no_queries_is_empty():
    for nothing in ([], np.empty((0, D))):
        ids, cosines = VECTORS.nearest(nothing, 3)
        assert ids.shape == cosines.shape == (0, 3)


def test_nearest__of_words_by_an_index(tmp_path):
    VECTORS.save(tmp_path / "model")
    daskw2v.build_index(tmp_path / "model", kind="int8")
    indexed = daskw2v.IndexedVectors.open(tmp_path / "model")
    for search in (indexed.nearest, indexed.exact):
        ids, cosines = search(["w3", "w30"], 5)
        assert ids.tolist() == VECTORS.nearest(["w3", "w30"], 5)[0].tolist()
        np.testing.assert_allclose(cosines, VECTORS.nearest(["w3", "w30"], 5)[1], atol=1e-6)
    assert search("w3", 5)[0].tolist() == ids[0].tolist()
    with pytest.raises(ParameterError, match="an index always searches all words"):
        indexed.nearest("w3", restrict_vocab=5)


@pytest.mark.parametrize("name", ["neighbours", "neighbours_of"])
def test_old_names__are_gone(name):
    assert not hasattr(VECTORS, name)
