"""Tables for other tools hold the model's words, counts and vectors; workers read them from a store."""

import pickle
import sys

import dask
import numpy as np
import pytest

from daskw2v import IndexedVectors, Vectors, build_index
from daskw2v.errors import MissingExtraError, ParameterError, StoreError
from daskw2v.models.queries import frames
from daskw2v.models.queries import rows as module
from daskw2v.models.stored.store import write_vocabulary
from daskw2v.models.versions.versions import publish
from daskw2v.objectives.subwords.network import Alphabet, Subwords
from daskw2v.objectives.subwords.training import initial_weights
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary
from tests.support.tables import write_input

pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
dd = pytest.importorskip("dask.dataframe")

V, D, ROW_BLOCK = 103, 5, 12
WORDS = [f"w{i}é" for i in range(V)]
ROWS = np.random.default_rng(1).standard_normal((V, D), np.float32)
WIDE = [f"v{i}" for i in range(D)]


@pytest.fixture(scope="module", params=[1, 4])
def url(request, tmp_path_factory):
    """A model with so many partitions, in a store."""
    n, models = request.param, Store(str(tmp_path_factory.mktemp("work"))) / "models"
    store = models / "v0001-r"
    write_input(store, ROWS, ROW_BLOCK, n)
    write_vocabulary(store, Vocabulary.from_words(WORDS, range(V, 0, -1)))
    publish(models, "v0001-r", {"params": {"seed": 3}})
    return store.url


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Two chunks of the store are read at once."""
    monkeypatch.setattr(module, "BLOCK_BYTES", 24 * D * 4)


@pytest.fixture(params=["from the store", "mapped", "an array", "in memory alone"])
def vectors(request, url):
    match request.param:
        case "from the store":
            return Vectors.open(url, in_memory=False)
        case "mapped":
            return Vectors.open(url, in_memory=True)
        case "an array":
            opened = Vectors.open(url)
            assert isinstance(opened.vectors, np.ndarray)
            return opened
    return Vectors(Vocabulary.from_words(WORDS, range(V, 0, -1)), ROWS)


def assert_frame(result, first=0, stop=V):
    assert list(result.columns) == ["word", "count", *WIDE]
    assert result["word"].tolist() == WORDS[first:stop]
    assert result["count"].tolist() == list(range(V - first, V - stop, -1))
    assert result["count"].dtype == np.int64
    np.testing.assert_array_equal(result[WIDE].to_numpy(), ROWS[first:stop])
    assert {*result[WIDE].dtypes} == {np.dtype(np.float32)}
    assert result.index.tolist() == list(range(first, stop))


def test_to_pandas__has_words_counts_and_numbers(vectors):
    assert_frame(vectors.to_pandas())


def test_to_arrow__has_vectors_of_fixed_size(vectors):
    table = vectors.to_arrow()
    assert table.schema.field("vector").type == pa.list_(pa.float32(), D)
    assert table["word"].to_pylist() == WORDS
    assert table["count"].to_pylist() == list(range(V, 0, -1))
    np.testing.assert_array_equal(table["vector"].combine_chunks().flatten().to_numpy().reshape(V, D), ROWS)
    assert table["word"].num_chunks == 5


def test_to_dask_array__has_rows_in_order_of_ids(vectors):
    array = vectors.to_dask_array()
    assert (array.shape, array.dtype) == ((V, D), np.float32)
    assert array.numblocks == (5, 1)
    np.testing.assert_array_equal(array.compute(), ROWS)
    np.testing.assert_array_equal(array[[100, 3, 40]].compute(), ROWS[[100, 3, 40]])


def test_to_dask_dataframe__equals_to_pandas(vectors):
    table = vectors.to_dask_dataframe()
    assert table.npartitions == 5
    assert table.known_divisions
    assert_frame(table.compute())
    assert_frame(table.loc[30:40].compute(), 30, 41)
    assert table.dtypes.astype(str).to_dict() == table.compute().dtypes.astype(str).to_dict()


def test_outputs__of_no_words_are_empty(tmp_path):
    Vectors(Vocabulary.from_words([], []), ROWS[:0]).save(tmp_path / "none")
    for vectors in (Vectors(Vocabulary.from_words([], []), ROWS[:0]), Vectors.open(tmp_path / "none")):
        assert vectors.to_dask_array().compute().shape == (0, D)
        assert list(vectors.to_pandas().columns) == ["word", "count", *WIDE]
        assert vectors.to_dask_dataframe().compute().shape == (0, D + 2)
        assert vectors.to_arrow().num_rows == 0
        assert "<td>0</td>" in vectors._repr_html_()


@pytest.mark.parametrize("in_memory", [True, False])
def test_dask_outputs__hold_no_rows_of_a_stored_model(url, in_memory):
    """The graph does not hold the numbers and texts of the 103 words."""
    vectors = Vectors.open(url, in_memory=in_memory)
    for output in (vectors.to_dask_array(), vectors.to_dask_dataframe()):
        graph = pickle.dumps(dict(output.__dask_graph__()))
        assert ROWS[3].tobytes() not in graph
        assert WORDS[50].encode() not in graph


def test_dask_outputs__read_a_chunk_when_it_is_computed(url, monkeypatch):
    read, asked = frames.read_table, []
    monkeypatch.setattr(frames, "read_table", lambda *args: asked.append(args[2:]) or read(*args))
    vectors = Vectors.open(url, in_memory=False)
    array, table = vectors.to_dask_array(), vectors.to_dask_dataframe()
    assert asked == []
    with dask.config.set(scheduler="sync"):
        array[50].compute()
        assert asked == [(48, 72)]
        table.partitions[1].compute()
    assert asked == [(48, 72), (24, 48)]


def test_dask_outputs__are_read_by_workers(url, two_processes):
    vectors = Vectors.open(url)
    np.testing.assert_array_equal(vectors.to_dask_array().compute(), ROWS)
    assert_frame(vectors.to_dask_dataframe().compute())


@pytest.mark.slow
def test_dask_outputs__read_object_stores(s3):
    vectors, url = Vectors(Vocabulary.from_words(WORDS, range(V, 0, -1)), ROWS), "s3://bucket/outputs/model"
    vectors.save(url, storage_options=s3)
    opened = Vectors.open(url, s3)
    np.testing.assert_array_equal(opened.to_dask_array().compute(), ROWS)
    assert_frame(opened.to_dask_dataframe().compute())


def test_dask_outputs__of_indexed_vectors_are_read_from_the_store(url):
    build_index(url, kind="int8")
    vectors = IndexedVectors.open(url)
    assert ROWS[3].tobytes() not in pickle.dumps(dict(vectors.to_dask_array().__dask_graph__()))
    np.testing.assert_array_equal(vectors.to_dask_array().compute(), ROWS)


def test_vectors__are_pickled_without_storage_options(url):
    again = pickle.loads(pickle.dumps(Vectors.open(url, {"auto_mkdir": "a-secret"})))
    assert b"a-secret" not in pickle.dumps(Vectors.open(url, {"auto_mkdir": "a-secret"}))
    np.testing.assert_array_equal(again.to_dask_array().compute(), ROWS)


@pytest.mark.parametrize(
    ("ask", "missing", "extra"),
    [("to_pandas", "pandas", "events"), ("to_arrow", "pyarrow", "arrow"), ("to_dask_dataframe", "pandas", "events")],
)
def test_outputs__name_the_extra_that_is_missing(url, monkeypatch, ask, missing, extra):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError, match=rf"{missing} is not installed\. Run: pip install 'daskw2v\[{extra}\]'"):
        getattr(Vectors.open(url), ask)()


def test_save__writes_a_model_that_open_reads(vectors, tmp_path):
    vectors.save(tmp_path / "saved")
    again = Vectors.open(tmp_path / "saved")
    np.testing.assert_array_equal(again.vectors, ROWS)
    assert again.vocabulary.words == WORDS
    assert again.vocabulary.counts.tolist() == list(range(V, 0, -1))
    assert again.metadata.get("params") == vectors.metadata.get("params")
    assert again.most_similar("w7é") == vectors.most_similar("w7é")
    assert again.url == str(tmp_path / "saved")


def test_save__keeps_the_subword_network(tmp_path):
    alphabet = Alphabet.from_words(WORDS)
    network = Subwords(alphabet, initial_weights(D, len(alphabet), seed=1))
    vectors = Vectors(Vocabulary.from_words(WORDS, range(V, 0, -1)), ROWS, subwords=network)
    vectors.save(tmp_path / "saved")
    np.testing.assert_array_equal(Vectors.open(tmp_path / "saved")["w5w5"], vectors["w5w5"])


def test_save__replaces_nothing(tmp_path):
    (tmp_path / "saved").mkdir()
    vectors = Vectors(Vocabulary.from_words(WORDS, range(V, 0, -1)), ROWS)
    vectors.save(tmp_path / "saved")
    with pytest.raises(
        StoreError, match=r"There is something at .*saved, which is not replaced\. Give a folder of its"
    ):
        vectors.save(tmp_path / "saved")
    np.testing.assert_array_equal(Vectors.open(tmp_path / "saved").vectors, ROWS)


def test_save__leaves_no_file_if_it_fails(tmp_path):
    rows = ROWS.copy()
    rows[60] = np.nan
    with pytest.raises(StoreError, match="The vector of 'w60é' is not finite"):
        Vectors(Vocabulary.from_words(WORDS, range(V, 0, -1)), rows).save(tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


@pytest.mark.parametrize("url", [None, 5, "", "s3://key:secret@bucket/model"])
def test_save__refuses_values_that_are_no_url(url):
    with pytest.raises(ParameterError):
        Vectors(Vocabulary.from_words(["a"], [1]), ROWS[:1]).save(url)


def test_repr_html__shows_the_source_of_words(url):
    shown = Vectors.open(url)._repr_html_()
    for text in (f"<td>{V}</td>", f"<td>{D}</td>", f"<td>{url}</td>", "<td>w0é, w1é, ", "w9é, ...</td>"):
        assert text in shown
    assert "w10é" not in shown


def test_repr_html__escapes_words():
    words = ["<script>alert(1)</script>", "a\u202eb", "&amp;"]
    shown = Vectors(Vocabulary.from_words(words, [3, 2, 1]), ROWS[:3], url="<b>")._repr_html_()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;, a\\u202eb, &amp;amp;</td>" in shown
    assert "<td>&lt;b&gt;</td>" in shown
    assert "<td>memory</td>" in Vectors(Vocabulary.from_words(words, [3, 2, 1]), ROWS[:3])._repr_html_()
