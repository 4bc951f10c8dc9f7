import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskw2v import release
from daskw2v.errors import DamageError, ParameterError, StoreError, TrainingError
from daskw2v.models.stored import store as model_store
from daskw2v.models.stored.store import read_vocabulary, write_vocabulary
from daskw2v.models.stored.tables import (
    create_model,
    open_table,
    read_partition,
    read_table,
    write_partition,
    write_table_rows,
)
from daskw2v.models.versions.versions import latest_version, publish
from daskw2v.store.retries import RetryingStore
from daskw2v.store.storage import Store
from daskw2v.vocabulary.partition import Partitions
from daskw2v.vocabulary.vocabulary import Vocabulary

WORDS = [f"w{i}" for i in range(10)]
MANIFEST = {"params": {"vector_size": 3}, "corpus": {"id": "c"}, "metrics": {"loss": 0.5, "words": 7}}


@pytest.fixture(params=["local", "memory"])
def models(request, tmp_path):
    return Store(f"memory://{tmp_path.name}/work" if request.param == "memory" else str(tmp_path)) / "models"


def write_model(store, fill=1.0):
    create_model(store, {"input": (10, 3), "output": (9, 3)}, row_block=4)
    for table, rows in (("input", 10), ("output", 9)):
        for start in range(0, rows, 4):
            block = np.full((min(4, rows - start), 3), fill + start, np.float32)
            write_table_rows(store, table, start, block)
    write_vocabulary(store, Vocabulary.from_words(WORDS, range(10, 0, -1)))


def test_publish__makes_the_model_readable(models):
    store = models / "v0001-run"
    write_model(store)
    publish(models, "v0001-run", MANIFEST)
    assert latest_version(models) == "v0001-run"
    assert read_table(store, "input")[:, 0].tolist() == [1] * 4 + [5] * 4 + [9] * 2
    assert read_table(store, "output", 4, 8).tolist() == [[5] * 3] * 4
    assert read_vocabulary(store).words == WORDS
    manifest = store.read_manifest()
    assert manifest["tables"] == {"input": [10, 3], "output": [9, 3]}
    assert {name: manifest[name] for name in MANIFEST} == MANIFEST
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", manifest["created"])
    assert isinstance(manifest["daskw2v"], str)


def test_publish__knows_the_package_where_it_is_installed(models, monkeypatch):
    monkeypatch.setattr(model_store, "VERSION", "1.2.3")
    write_model(models / "v0001-run")
    publish(models, "v0001-run", MANIFEST)
    assert (models / "v0001-run").read_manifest()["daskw2v"] == "1.2.3"


def test_publish__does_without_an_installed_package(models, monkeypatch):
    def missing(name):
        raise release.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(release.metadata, "version", missing)
    monkeypatch.setattr(model_store, "VERSION", release.installed())
    write_model(models / "v0001-run")
    publish(models, "v0001-run", MANIFEST)
    assert (models / "v0001-run").read_manifest()["daskw2v"] == "unknown (not installed)"


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_publish__refuses_numbers_that_are_not_finite(models, bad):
    write_model(models / "v0001-run")
    block = np.ones((4, 3), np.float32)
    block[2, 1] = bad
    write_table_rows(models / "v0001-run", "output", 4, block)
    with pytest.raises(TrainingError, match=r"Rows 4:8 of table output"):
        publish(models, "v0001-run", MANIFEST)
    assert latest_version(models) is None
    assert (models / "v0001-run").read_manifest() is None


def test_publish__refuses_a_block_never_written(models):
    store = models / "v0001-run"
    create_model(store, {"input": (10, 3)}, row_block=4)
    write_table_rows(store, "input", 0, np.zeros((8, 3), np.float32))
    write_vocabulary(store, Vocabulary.from_words(WORDS, [1] * 10))
    with pytest.raises(DamageError, match=r"input/c/2/0 is missing"):
        publish(models, "v0001-run", MANIFEST)


@pytest.mark.parametrize("lost", ["input", "output", "vocabulary", "vocabulary/offsets"])
def test_publish__detects_lost_arrays(models, lost):
    write_model(models / "v0001-run")
    (models / "v0001-run" / lost).remove()
    with pytest.raises(DamageError, match=r"is missing|has no table|holds no Zarr group") as caught:
        publish(models, "v0001-run", MANIFEST)
    assert caught.value.url == f"{models.url}/v0001-run/{lost}"
    assert latest_version(models) is None


def test_publish__refuses_another_vocabulary(models):
    write_model(models / "v0001-run")
    write_vocabulary(models / "v0001-run", Vocabulary.from_words(["a"], [1]))
    with pytest.raises(StoreError, match="1 word and 10 input rows"):
        publish(models, "v0001-run", MANIFEST)


def test_publish__refuses_a_model_without_vocabulary(models):
    create_model(models / "v0001-run", {"input": (10, 3)}, row_block=4)
    with pytest.raises(StoreError, match="vocabulary"):
        publish(models, "v0001-run", MANIFEST)


def test_write_table_rows__accepts_blocks_of_concurrent_tasks(tmp_path):
    store, rows = Store(str(tmp_path / "m")), np.random.default_rng(0).random((1000, 3), np.float32)
    create_model(store, {"input": rows.shape}, row_block=8)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: write_table_rows(store, "input", i, rows[i : i + 8]), range(0, 1000, 8)))
    assert np.array_equal(read_table(store, "input"), rows)


@pytest.mark.parametrize(
    ("table", "start", "shape", "message"),
    [
        ("input", 2, (4, 3), "do not lie along its chunks"),
        ("input", 0, (4, 1), "do not fit"),
        ("input", 8, (4, 3), "do not fit"),
        ("nothing", 0, (4, 3), "The folder contains: input"),
    ],
)
def test_write_table_rows__refuses_rows_that_do_not_fit(models, table, start, shape, message):
    create_model(models / "v0001-run", {"input": (10, 3)}, row_block=4)
    with pytest.raises(StoreError, match=message):
        write_table_rows(models / "v0001-run", table, start, np.ones(shape, np.float32))


def test_read_table__names_the_missing_table(models):
    create_model(models / "v0001-run", {"input": (10, 3)}, row_block=4)
    with pytest.raises(StoreError, match="nothing"):
        read_table(models / "v0001-run", "nothing")


@pytest.mark.slow
@settings(deadline=None, max_examples=20)
@given(st.data())
def test_tables__are_read_in_order_of_ids_however_they_are_partitioned(data):
    n_words = data.draw(st.integers(1, 80), "words")
    n = data.draw(st.integers(1, min(n_words, 9)), "partitions")
    width, row_block = data.draw(st.integers(1, 4), "width"), data.draw(st.integers(1, 100), "row block")
    rows = np.arange(n_words * width, dtype=np.float32).reshape(n_words, width)
    store, partitions = Store(f"memory://tables/{data.draw(st.uuids())}"), Partitions(n_words, n)
    create_model(store, {"input": rows.shape}, row_block, n)
    for part in data.draw(st.permutations(range(n))):
        write_partition(store, "input", part, rows[partitions.words(part)])
    for part in range(n):
        assert np.array_equal(read_partition(store, "input", part), rows[partitions.words(part)])
    start, stop = sorted(data.draw(st.tuples(st.integers(0, n_words), st.integers(0, n_words)), "slice"))
    ids = np.array(data.draw(st.lists(st.integers(0, n_words - 1), max_size=12), "ids"), np.int64)
    table = open_table(store, "input")
    assert table.shape == rows.shape
    assert np.array_equal(read_table(store, "input"), rows)
    assert np.array_equal(read_table(store, "input", start, stop), rows[start:stop])
    assert np.array_equal(open_table(store, "input")[ids], rows[ids])
    assert np.array_equal(table[-1], rows[-1])
    assert np.array_equal(table[::-2], rows[::-2])
    assert np.array_equal(table[5:2], rows[5:2])
    assert np.array_equal(np.asarray(table, np.float64), rows)
    store.remove()


def write_partitioned(store, n=3):
    partitions = Partitions(10, n)
    create_model(store, {"input": (10, 2)}, 4, n)
    for part in range(n):
        write_partition(store, "input", part, np.full((partitions.size(part), 2), part, np.float32))
    write_vocabulary(store, Vocabulary.from_words(WORDS, range(10, 0, -1)))


def test_write_partition__reads_no_chunk(models, monkeypatch):
    read, get = [], RetryingStore.get

    async def spy(self, key, *args, **options):
        read.append(key)
        return await get(self, key, *args, **options)

    monkeypatch.setattr(RetryingStore, "get", spy)
    create_model(models, {"input": (10, 2)}, 12, 3)
    for part in range(3):
        write_partition(models, "input", part, np.ones((Partitions(10, 3).size(part), 2), np.float32))
    assert read
    assert not [key for key in read if "/c/" in key]


def test_publish__makes_a_partitioned_model_readable(models):
    write_partitioned(models / "v0001-run")
    publish(models, "v0001-run", MANIFEST)
    assert (models / "v0001-run").read_manifest()["tables"] == {"input": [10, 2]}
    assert read_table(models / "v0001-run", "input")[:, 0].tolist() == [0, 1, 2, 2, 1, 0, 0, 1, 2, 2]


def test_publish__refuses_a_partition_never_written_or_not_finite(models):
    store = models / "v0001-run"
    write_partitioned(store)
    write_partition(store, "input", 2, np.array([[1, 1]] * 3 + [[1, np.inf]], np.float32))
    with pytest.raises(TrainingError, match=r"Rows 9:10 of table input"):
        publish(models, "v0001-run", MANIFEST)
    create_model(store, {"input": (10, 2)}, 4, 3)
    write_vocabulary(store, Vocabulary.from_words(WORDS, range(10, 0, -1)))
    for part in (0, 2):
        write_partition(store, "input", part, np.zeros((Partitions(10, 3).size(part), 2), np.float32))
    with pytest.raises(DamageError, match=r"input/c/0/1/0 is missing"):
        publish(models, "v0001-run", MANIFEST)
    assert latest_version(models) is None


@pytest.mark.parametrize(("n_partitions", "sizes"), [(1, [4, 4, 2]), (3, [1] * 12)])
def test_read_chunks__gives_all_rows_a_chunk_at_a_time(models, n_partitions, sizes):
    """Three partitions have chunks of one row; behind the rows of two of them is one of zeros."""
    store, rows = models / "v0001-run", np.arange(1, 21, dtype=np.float32).reshape(10, 2)
    create_model(store, {"input": (10, 2)}, 4, n_partitions)
    if n_partitions == 1:
        for start in range(0, 10, 4):
            write_table_rows(store, "input", start, rows[start : start + 4])
    else:
        for part in range(n_partitions):
            write_partition(store, "input", part, rows[Partitions(10, n_partitions).words(part)])
    table = open_table(store, "input")
    chunks = [chunk for start in range(0, 10, table.chunk_rows) for chunk in table.read_chunks(start)]
    assert [len(chunk) for chunk in chunks] == sizes
    found = np.concatenate(chunks)
    assert sorted(map(tuple, found[found.any(axis=1)])) == list(map(tuple, rows))


def test_create_model__gives_each_partition_separate_chunks(tmp_path):
    create_model(Store(str(tmp_path / "m")), {"input": (1000, 5)}, row_block=100, n_partitions=8)
    array = Store(str(tmp_path / "m")).open_group()["input"]
    assert (array.shape, array.chunks) == ((125, 8, 5), (12, 1, 5))
    assert open_table(Store(str(tmp_path / "m")), "input").chunk_rows == 96


@pytest.mark.parametrize("n", [0, 11])
def test_create_model__refuses_partitions_without_a_word(models, n):
    write_model(models / "v0001-run")
    with pytest.raises(ParameterError, match="each needs a word"):
        create_model(models / "v0001-run", {"input": (10, 3)}, 4, n)
    assert read_table(models / "v0001-run", "input").shape == (10, 3)


@pytest.mark.parametrize(
    ("partition", "shape", "message"),
    [
        (3, (3, 2), "no partition 3.*are 0 to 2"),
        (-1, (3, 2), "no partition -1"),
        (0, (4, 2), r"\(4, 2\) do not fit partition 0 of table input, of shape \(3, 2\)"),
        (2, (3, 2), r"of shape \(4, 2\)"),
        (0, (3, 1), "do not fit"),
    ],
)
def test_write_partition__refuses_rows_that_do_not_fit(models, partition, shape, message):
    create_model(models / "v0001-run", {"input": (10, 2)}, 4, 3)
    with pytest.raises(StoreError, match=message):
        write_partition(models / "v0001-run", "input", partition, np.ones(shape, np.float32))


def test_write_table_rows__refuses_a_partitioned_table(models):
    create_model(models / "v0001-run", {"input": (10, 2)}, 4, 2)
    with pytest.raises(StoreError, match=r"has 2 partitions.*write_partition"):
        write_table_rows(models / "v0001-run", "input", 0, np.ones((4, 2), np.float32))
    with pytest.raises(StoreError, match="no partition 2"):
        read_partition(models / "v0001-run", "input", 2)


@pytest.mark.parametrize("key", [10, -11, [0, 10], 0.5, [True] * 10])
def test_stored_rows__refuse_invalid_indices(models, key):
    create_model(models / "v0001-run", {"input": (10, 2)}, 4)
    with pytest.raises(IndexError, match=r"row 10 of 10|row -11 of 10|by integers"):
        open_table(models / "v0001-run", "input")[key]


def test_create_model__replaces_an_unfinished_version(models):
    write_model(models / "v0001-a")
    create_model(models / "v0001-a", {"input": (2, 5)}, row_block=4)
    assert open_table(models / "v0001-a", "input").shape == (2, 5)
