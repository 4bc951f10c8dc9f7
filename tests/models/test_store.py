import json
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from daskw2v.errors import StoreError, TrainingError
from daskw2v.models import store as model_store
from daskw2v.models.store import (
    create_model,
    latest_version,
    next_version,
    publish,
    read_table,
    read_vocabulary,
    resolve,
    write_table_rows,
    write_vocabulary,
)
from daskw2v.storage import Store
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
    monkeypatch.setattr(model_store.metadata, "version", lambda name: {"daskw2v": "1.2.3"}[name])
    write_model(models / "v0001-run")
    publish(models, "v0001-run", MANIFEST)
    assert (models / "v0001-run").read_manifest()["daskw2v"] == "1.2.3"


def test_publish__does_without_an_installed_package(models, monkeypatch):
    def missing(name):
        raise model_store.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(model_store.metadata, "version", missing)
    write_model(models / "v0001-run")
    publish(models, "v0001-run", MANIFEST)
    assert (models / "v0001-run").read_manifest()["daskw2v"] == "unknown (not installed)"


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_publish__refuses_what_is_not_finite(models, bad):
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
    with pytest.raises(TrainingError, match=r"Rows 8:10 .* never written"):
        publish(models, "v0001-run", MANIFEST)


def test_publish__refuses_another_vocabulary(models):
    write_model(models / "v0001-run")
    write_vocabulary(models / "v0001-run", Vocabulary.from_words(["a"], [1]))
    with pytest.raises(StoreError, match="1 words and 10 input rows"):
        publish(models, "v0001-run", MANIFEST)


def test_publish__refuses_a_model_without_vocabulary(models):
    create_model(models / "v0001-run", {"input": (10, 3)}, row_block=4)
    with pytest.raises(StoreError, match="vocabulary"):
        publish(models, "v0001-run", MANIFEST)


def test_write_table_rows__takes_blocks_from_many_tasks_at_once(tmp_path):
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
        ("nothing", 0, (4, 3), "Its tables are: input"),
    ],
)
def test_write_table_rows__refuses_what_does_not_fit(models, table, start, shape, message):
    create_model(models / "v0001-run", {"input": (10, 3)}, row_block=4)
    with pytest.raises(StoreError, match=message):
        write_table_rows(models / "v0001-run", table, start, np.ones(shape, np.float32))


def test_read_table__names_what_is_missing(models):
    create_model(models / "v0001-run", {"input": (10, 3)}, row_block=4)
    with pytest.raises(StoreError, match="nothing"):
        read_table(models / "v0001-run", "nothing")


def test_next_version__counts_on_and_keeps_to_its_run(models):
    assert next_version(models, "a") == "v0001-a"
    write_model(models / "v0001-a")
    assert next_version(models, "a") == "v0001-a"
    publish(models, "v0001-a", MANIFEST)
    assert next_version(models, "a") == "v0001-a"
    assert next_version(models, "b") == "v0002-b"
    write_model(models / "v9999-c")
    assert next_version(models, "b") == "v10000-b"


def test_resolve__accepts_work_directory_models_and_version(models):
    work = models.url.removesuffix("/models")
    for version in ("v0001-a", "v0002-b"):
        write_model(models / version)
        publish(models, version, MANIFEST)
    for url, expected in (
        (work, "v0002-b"),
        (work + "/", "v0002-b"),
        (models.url, "v0002-b"),
        (f"{models.url}/v0001-a", "v0001-a"),
    ):
        assert resolve(url).name == expected


def test_resolve__tells_that_nothing_is_there(models):
    with pytest.raises(StoreError, match="There is no model at"):
        resolve(models.url)


def test_resolve__tells_that_training_has_not_finished(models):
    write_model(models / "v0001-a")
    with pytest.raises(StoreError, match="no finished model yet"):
        resolve(models.url.removesuffix("/models"))


def test_resolve__lists_versions_where_the_latest_is_gone(models):
    for version in ("v0001-a", "v0002-b"):
        write_model(models / version)
        publish(models, version, MANIFEST)
    (models / "v0002-b").remove()
    with pytest.raises(StoreError, match=r"names 'v0002-b'.*versions: v0001-a\."):
        resolve(models.url)


def test_resolve__refuses_a_newer_format(models):
    write_model(models / "v0001-a")
    publish(models, "v0001-a", MANIFEST)
    newer = {**(models / "v0001-a").read_manifest(), "format_version": 99}
    (models / "v0001-a").write_bytes("manifest.json", json.dumps(newer).encode())
    with pytest.raises(StoreError, match="format_version=99"):
        resolve(models.url)


def test_create_model__replaces_what_was_cut_short(models):
    write_model(models / "v0001-a")
    create_model(models / "v0001-a", {"input": (2, 5)}, row_block=4)
    assert read_table(models / "v0001-a", "input").shape == (2, 5)
