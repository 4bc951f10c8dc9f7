"""Stable ids in the folder of a version."""

from functools import partial

import numpy as np
import pytest

from daskw2v.errors import DamageError, ParameterError, StoreError, VocabularyError
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.store import (
    assign_stable_ids,
    finish,
    read_ids,
    read_vocabulary,
    write_ids,
    write_vocabulary,
)
from daskw2v.models.stored.tables import create_model, write_table_rows
from daskw2v.models.versions.versions import Versions
from daskw2v.store.arrays import write_array
from daskw2v.store.storage import Store
from daskw2v.vocabulary.ids import StableIds
from daskw2v.vocabulary.vocabulary import Vocabulary


@pytest.fixture(params=["local", "memory"])
def models(request, tmp_path):
    return Store(f"memory://{tmp_path.name}/models" if request.param == "memory" else str(tmp_path))


def vocabulary_of(words):
    return Vocabulary.from_words(words, range(len(words), 0, -1))


def write_version(store, words, ids):
    """Write a version with the ids that `ids` assigns to its vocabulary, or without ids."""
    vocabulary = vocabulary_of(words)
    create_model(store, {"input": (len(words), 2)}, row_block=4)
    write_table_rows(store, "input", 0, np.ones((len(words), 2), np.float32))
    write_vocabulary(store, vocabulary)
    if ids is not None:
        write_ids(store, ids(vocabulary))
    finish(store, {})


def ids_of(store):
    vectors = Vectors.open(store.url)
    return dict(zip(vectors.vocabulary.words, vectors.stable_ids.tolist(), strict=True))


def test_ids_after__go_on_from_version_to_version(models):
    first, second, third = (models / name for name in "abc")
    write_version(first, ["a", "b", "c"], lambda new: assign_stable_ids(None, new))
    write_version(second, ["d", "a"], lambda new: assign_stable_ids(first, new))
    write_version(third, ["e", "c", "a", "d"], lambda new: assign_stable_ids(second, new))
    assert [ids_of(store) for store in (first, second, third)] == [
        {"a": 0, "b": 1, "c": 2},
        {"a": 0, "d": 3},
        {"a": 0, "c": 2, "d": 3, "e": 4},
    ]


def test_ids_after__a_version_without_ids_are_its_rows(models):
    write_version(models / "a", ["a", "b", "c"], None)
    assert read_ids(models / "a") is None
    assert Vectors.open((models / "a").url).stable_ids is None
    assert assign_stable_ids(models / "a", vocabulary_of(["d", "c"])).ids.tolist() == [3, 2]


def test_newest_with_ids__knows_ids_of_versions_that_are_not_served(tmp_path):
    versions = Versions(Store(str(tmp_path)))
    assert versions.newest_with_ids() is None
    for name, words, has_ids in (("v0001-a", "ab", True), ("v0002-b", "ac", True), ("v0003-c", "ad", False)):
        ids = partial(assign_stable_ids, versions.newest_with_ids()) if has_ids else None
        write_version(versions.models / name, list(words), ids)
    versions.publish("v0001-a")
    newest = versions.newest_with_ids()
    assert newest.name == "v0002-b"
    assert assign_stable_ids(newest, vocabulary_of("adbc")).ids.tolist() == [0, 3, 1, 2]


@pytest.fixture
def version(tmp_path):
    store = Store(str(tmp_path)) / "v"
    write_version(store, ["a", "b"], StableIds.first)
    return store


def test_write_ids__refuses_ids_of_another_vocabulary(version):
    with pytest.raises(StoreError, match="has 2 words and 3 stable ids"):
        write_ids(version, StableIds.first(vocabulary_of("xyz")))
    assert read_ids(version).ids.tolist() == [0, 1]


def read_version(store):
    return Vectors.open(store.url)


@pytest.mark.parametrize("read", [read_ids, read_version, lambda store: finish(store, {})])
@pytest.mark.parametrize("lost", ["ids", "ids/ids", "ids/former_words"])
def test_read_ids__detects_lost_arrays(version, read, lost):
    (version / lost).remove()
    with pytest.raises(DamageError, match=f"{lost} is missing"):
        read(version)


@pytest.mark.parametrize("read", [read_ids, read_version, lambda store: finish(store, {})])
def test_read_ids__refuses_ids_of_another_vocabulary(version, read):
    StableIds.first(vocabulary_of("xyz")).save(version.open_group(writable=True).create_group("ids", overwrite=True))
    with pytest.raises(StoreError, match="has 2 words and 3 stable ids"):
        read(version)


def test_read_ids__refuses_an_id_of_two_words(version):
    group = (version / "ids").open_group(writable=True)
    del group["ids"]
    write_array(group, "ids", np.zeros(2, np.int64))
    with pytest.raises(VocabularyError, match="are damaged"):
        read_version(version)


@pytest.mark.parametrize("ids", [np.arange(3), np.zeros((2, 1), np.int64), np.arange(2, dtype=np.int32)], ids=str)
def test_vectors__refuse_ids_that_are_not_one_for_each_word(ids):
    with pytest.raises(ParameterError, match="Stable ids"):
        Vectors(vocabulary_of("ab"), np.ones((2, 2), np.float32), stable_ids=ids)


def test_write_vocabulary__of_a_replaced_version_has_no_ids(version):
    write_version(version, ["c"], None)
    assert read_ids(version) is None
    assert read_vocabulary(version).words == ["c"]
