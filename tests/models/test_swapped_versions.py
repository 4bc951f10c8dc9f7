"""Swapped, stale or foreign files of versions are refused by name, and not read as data."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import zarr

from daskw2v import Vectors
from daskw2v.errors import DamageError
from daskw2v.models.index.vectors import IndexedVectors, build_index
from daskw2v.models.stored.store import (
    finish,
    finish_tables,
    read_ids,
    read_sources,
    read_vocabulary,
    write_ids,
    write_sources,
    write_vocabulary,
)
from daskw2v.models.stored.tables import create_model, write_partition, write_table_rows
from daskw2v.models.versions.versions import Versions, publish
from daskw2v.store.checksums import LOCATION, compute_checksum
from daskw2v.store.storage import Store
from daskw2v.vocabulary.ids import StableIds
from daskw2v.vocabulary.vocabulary import Vocabulary
from tests.support.command_line import invoke

NAMES = ["v0001-a", "v0002-b"]
FOREIGN = "is of another place, version or attempt"


def rows(seed, shape=(6, 2)):
    return np.random.default_rng(seed).random(shape, np.float32)


def write_version(store, seed):
    """Write two versions of one shape, chunks and words."""
    words = Vocabulary.from_words(list("abcdef"), [6, 5, 4, 3, 2, 1])
    create_model(store, {"input": (6, 2), "output": (6, 2)}, row_block=2)
    for k, name in enumerate(("input", "output")):
        finish_tables(store, [write_table_rows(store, name, 0, rows(10 * seed + k))])
    write_vocabulary(store, words)
    write_ids(store, StableIds.first(words))
    write_sources(store, [])


@pytest.fixture(scope="module")
def intact_models(tmp_path_factory):
    work = Store(str(tmp_path_factory.mktemp("whole")))
    for seed, name in enumerate(NAMES):
        write_version(work / "models" / name, seed)
        publish(work / "models", name, {})
    return work


@pytest.fixture
def models(intact_models, tmp_path):
    """Return a copy of the versions, as versions may be moved."""
    shutil.copytree(intact_models.url, tmp_path / "copy")
    return tmp_path / "copy" / "models"


def swap(one, other):
    between = one.with_name("between")
    for source, target in ((one, between), (other, one), (between, other)):
        source.rename(target)


def read_all(version):
    """Read all parts of a version, as queries and a later training do."""
    vectors = Vectors.open(version, in_memory=True)
    store = Store(str(version))
    np.testing.assert_array_equal(vectors.vectors, rows(0 if version.name == NAMES[0] else 10))
    for name in ("input", "output"):
        zarr_array = store.open_group()[name]
        assert np.isfinite(zarr_array[...]).all()
    read_sources(store)


SWAPS = {
    "input and output": ("input/c/1/0", "output/c/1/0"),
    "chunks of a table": ("input/c/0/0", "input/c/2/0"),
    "tables": ("input", "output"),
    "metadata of tables": ("input/zarr.json", "output/zarr.json"),
    "arrays of the words": ("vocabulary/counts", "vocabulary/offsets"),
}
STALE = [
    "input/c/1/0", "output/c/2/0", "input", "output", "input/zarr.json", "zarr.json", "vocabulary", "vocabulary/words",
    "vocabulary/zarr.json", "ids", "ids/ids", "manifest.json", "sources.json",
]  # fmt: skip


@pytest.mark.parametrize("pair", SWAPS.values(), ids=list(SWAPS))
def test_version__with_swapped_files_is_refused(models, pair):
    one, other = (models / NAMES[0] / path for path in pair)
    swap(one, other)
    with pytest.raises(DamageError, match=FOREIGN) as caught:
        read_all(models / NAMES[0])
    assert any(caught.value.url.startswith(str(path)) for path in (one, other))
    result = Versions(Store(str(models.parent))).verify(NAMES[0])[NAMES[0]]
    assert {Path(damage.url) for damage in result if FOREIGN in damage.problem} <= {
        path for folder in (one, other) for path in (folder, *folder.rglob("*"))
    }
    assert any(FOREIGN in damage.problem for damage in result)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("path", STALE)
def test_version__with_files_of_another_version_is_refused(models, path):
    swap(models / NAMES[0] / path, models / NAMES[1] / path)
    for name in NAMES:
        with pytest.raises(DamageError) as caught:
            read_all(models / name)
        assert caught.value.url.startswith(str(models / name))
        assert FOREIGN in caught.value.problem
        result = Versions(Store(str(models.parent))).verify(name)[name]
        assert [damage for damage in result if FOREIGN in damage.problem]


def test_version__is_valid_in_another_folder(models, tmp_path):
    read_all(models / NAMES[0])
    moved = tmp_path / "elsewhere" / NAMES[0]
    shutil.move(models / NAMES[0], moved)
    read_all(moved)


@pytest.mark.parametrize("n_partitions", [1, 2])
def test_finish__refuses_a_chunk_of_an_earlier_attempt(tmp_path, n_partitions):
    """A write of an abandoned attempt may arrive after the writes of the attempt that counts."""
    store = Store(str(tmp_path / "v"))
    chunk = tmp_path / "v" / "input" / "c" / ("0/0" if n_partitions == 1 else "0/0/0")
    late = []
    for attempt in range(2):
        create_model(store, {"input": (6, 2)}, 2, n_partitions)
        if n_partitions == 1:
            written = [write_table_rows(store, "input", at, rows(attempt)[at : at + 2]) for at in (0, 2, 4)]
        else:
            written = [write_partition(store, "input", part, rows(attempt, (3, 2))) for part in range(2)]
        late.append(chunk.read_bytes())
    finish_tables(store, written)
    write_vocabulary(store, Vocabulary.from_words(list("abcdef"), [6, 5, 4, 3, 2, 1]))
    chunk.write_bytes(late[0])
    with pytest.raises(DamageError, match=FOREIGN) as caught:
        finish(store, {})
    assert caught.value.url == str(chunk)


def test_finish_tables__refuses_chunks_that_were_not_written(tmp_path):
    store = Store(str(tmp_path / "v"))
    create_model(store, {"input": (6, 2)}, 2)
    written = [write_table_rows(store, "input", at, rows(0)[at : at + 2]) for at in (0, 4)]
    with pytest.raises(DamageError, match="input/c/1/0 was not written"):
        finish_tables(store, written)


def test_verify__misses_the_checksums_of_a_table(models):
    """A declaration of a table that arrives late replaces the metadata of the finished one."""
    file = models / NAMES[0] / "output" / "zarr.json"
    values = json.loads(file.read_text())
    del values["attributes"][LOCATION]["chunks"], values["attributes"]["seal"]
    values["attributes"]["seal"] = compute_checksum(values)
    file.write_text(json.dumps(values))
    (damage,) = Versions(Store(str(models.parent))).verify(NAMES[0])[NAMES[0]]
    assert damage.problem == f"{file} lacks the checksums of its chunks."


def test_index__of_another_version_is_refused(models):
    pytest.importorskip("usearch")
    for name in NAMES:
        build_index(models / name)
    swap(models / NAMES[0] / "index", models / NAMES[1] / "index")
    for name in NAMES:
        with pytest.raises(DamageError, match=f"The index in {models / name}/index is of another version"):
            IndexedVectors.open(models / name)
        result = Versions(Store(str(models.parent))).verify(name)[name]
        assert [damage.url for damage in result] == [f"{models / name}/index/manifest.json"]


def test_damage__is_distinguished_from_foreign_files(models):
    path = models / NAMES[0] / "input" / "c" / "1" / "0"
    for at in (0, -1):  # in the content, and in the checksum itself
        content = path.read_bytes()
        changed = bytearray(content)
        changed[at] ^= 1
        path.write_bytes(changed)
        with pytest.raises(DamageError, match="is damaged"):
            read_all(models / NAMES[0])
        path.write_bytes(content)


def make_old(version):
    """Delete the attributes that older versions did not write."""
    for file in version.rglob("*.json"):
        values = json.loads(file.read_text())
        holder = values["attributes"] if file.name == "zarr.json" else values
        for name in ("seal", LOCATION, *(["attempt"] if file.name != "zarr.json" else [])):
            holder.pop(name, None)
        holder["seal"] = compute_checksum(values)
        file.write_text(json.dumps(values))


def test_versions__of_older_daskw2v_are_read_and_verify_names_missing_parts(models):
    make_old(models / NAMES[0])
    read_all(models / NAMES[0])
    assert len(read_vocabulary(Store(str(models / NAMES[0])))) == len(read_ids(Store(str(models / NAMES[0]))))
    versions = Versions(Store(str(models.parent)))
    assert not any(versions.verify().values())
    assert [versions.is_bound(name) for name in NAMES] == [False, True]
    result = invoke("versions", "verify", str(models.parent), "--all")
    assert result.exit_code == 0
    old, new = (next(line for line in result.output.splitlines() if name in line) for name in NAMES)
    assert "an older daskw2v wrote it: its checksums lack paths" in old
    assert "older" not in new


def test_versions__other_readers_of_zarr_read_them(models):
    group = zarr.open_group(models / NAMES[0], mode="r")
    np.testing.assert_array_equal(group["input"][...], rows(0))
