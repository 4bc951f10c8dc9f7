"""Swapped, stale and foreign files of stores: refused by name, or made again with the same bits."""

import base64
import json
import shutil
from itertools import combinations
from pathlib import Path

import google_crc32c
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from daskw2v.errors import DamageError
from daskw2v.stages import Store
from daskw2v.store.arrays import create_array, finish_arrays, open_array, read_array, write_array, write_rows
from daskw2v.store.checksums import LOCATION, compute_checksum
from daskw2v.store.partfile import read_part, write_parts
from daskw2v.store.verification import find_damage
from tests.support.one_shard import write_shard

FOREIGN = "is of another place, version or attempt"
NAMES = ("plain", "other", "noise", "shard", "wide")


def values_of(seed, name):
    """Return values that do not compress: then chunks of a shard have equal lengths, and so have equal indexes."""
    rng = np.random.default_rng([seed, NAMES.index(name)])
    return rng.integers(np.iinfo(np.int64).min, np.iinfo(np.int64).max, (64, 3) if name == "wide" else 64)


def write_group(store, seed):
    group = store.create_group()
    for name in NAMES[:3]:
        write_array(group, name, values_of(seed, name), 16)
    write_shard(group, "shard", values_of(seed, "shard"), 16)
    wide = create_array(group, "wide", (64, 3), np.int64, 8, shard_rows=32)
    parts = []
    for start in (0, 32):  # by tasks of their own
        array = open_array(store.open_group(writable=True), "wide")
        write_rows(array, start, values_of(seed, "wide")[start : start + 32])
        parts.append(array.chunk_checksums())
    assert not wide.is_finished
    finish_arrays(store.open_group(writable=True), parts)


def read_group(store):
    group = store.open_group()
    actual = {name: read_array(group, name) for name in NAMES}
    for name in ("shard", "wide"):  # a part of a file
        np.testing.assert_array_equal(open_array(group, name)[17:20], actual[name][17:20])
        open_array(group, name)[:32]
    return actual


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Three attempts of the same result."""
    home = tmp_path_factory.mktemp("whole") / "home"
    for seed in range(3):
        write_group(Store(str(home / f"attempt{seed}" / "0")), seed)
    return home


@pytest.fixture
def home(whole, tmp_path):
    return Path(shutil.copytree(whole, tmp_path / "home"))


def swap(one, other):
    between = one.with_name("between")
    for source, target in ((one, between), (other, one), (between, other)):
        source.rename(target)


def outcome(function, *args):
    """Return what a call returns, or else the damage that it finds."""
    try:
        return function(*args), None
    except DamageError as damage:
        return None, damage


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", NAMES)
def test_array__of_another_attempt_is_refused_chunk_by_chunk(home, name):
    store = Store(str(home / "attempt0" / "0"))
    for chunk in files_of(home / "attempt0" / "0" / name / "c"):
        other = home / "attempt1" / chunk.relative_to(home / "attempt0")
        swap(chunk, other)
        with pytest.raises(DamageError, match=FOREIGN) as caught:
            read_group(store)
        assert caught.value.url == str(chunk)
        actual = find_damage(store, full=True)
        assert [damage.url for damage in actual] == [str(chunk)]
        swap(chunk, other)
    np.testing.assert_array_equal(read_group(store)[name], values_of(0, name))


def test_shard__of_equal_lengths_is_refused_where_a_part_is_read(home):
    """Its index is the same, so the chunks that it names are compared."""
    chunk, other = (home / f"attempt{n}" / "0" / "shard" / "c" / "0" for n in range(2))
    assert chunk.read_bytes()[-68:] == other.read_bytes()[-68:]
    swap(chunk, other)
    with pytest.raises(DamageError, match=f"{chunk} {FOREIGN}"):
        open_array(Store(str(home / "attempt0" / "0")).open_group(), "shard")[17:20]


@pytest.mark.parametrize("path", ["zarr.json", "plain", "plain/zarr.json", "wide/zarr.json"])
def test_group__with_metadata_of_another_attempt_is_refused(home, path):
    swap(home / "attempt0" / "0" / path, home / "attempt1" / "0" / path)
    with pytest.raises(DamageError, match=FOREIGN) as caught:
        read_group(Store(str(home / "attempt0" / "0")))
    assert caught.value.url.startswith(str(home / "attempt0" / "0" / path))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_files_swapped__are_refused_or_change_no_answer(whole, tmp_path_factory, data):
    home = tmp_path_factory.mktemp("swaps") / "home"
    shutil.copytree(whole, home)
    files = files_of(home)
    for _ in range(data.draw(st.integers(1, 3))):
        one, other = data.draw(st.lists(st.sampled_from(files), min_size=2, max_size=2, unique=True))
        swap(one, other)
    for seed in range(3):
        store = Store(str(home / f"attempt{seed}" / "0"))
        actual, damage = outcome(read_group, store)
        if damage is None:
            for name in NAMES:
                np.testing.assert_array_equal(actual[name], values_of(seed, name))
        else:
            assert damage.url.startswith(store.url)
            assert find_damage(store, full=True)
    shutil.rmtree(home)


def test_home__may_be_moved(home, tmp_path):
    moved = shutil.move(home, tmp_path / "elsewhere")
    np.testing.assert_array_equal(read_group(Store(f"{moved}/attempt1/0"))["plain"], values_of(1, "plain"))


def test_other_readers__of_zarr_read_arrays(home):
    group = zarr.open_group(home / "attempt0" / "0", mode="r")
    for name in NAMES:
        np.testing.assert_array_equal(group[name][...], values_of(0, name))


def test_arrays__without_locations_are_read(home):
    """As those of older versions."""
    for file in files_of(home):
        if file.name == "zarr.json":
            values = json.loads(file.read_text())
            del values["attributes"][LOCATION], values["attributes"]["seal"]
            values["attributes"]["seal"] = compute_checksum(values)
            file.write_text(json.dumps(values))
    store = Store(str(home / "attempt0" / "0"))
    assert not open_array(store.open_group(), "plain").is_finished
    np.testing.assert_array_equal(read_group(store)["wide"], values_of(0, "wide"))


@pytest.mark.parametrize(
    "place",
    [
        7,
        {},
        {"path": 7},
        {"path": "plain", "chunks": 7},
        {"path": "plain", "chunks": "?"},
        {"path": "plain", "chunks": base64.b64encode(bytes(8)).decode()},
        {"path": "plain", "attempt": []},
    ],
)
def test_place__of_another_form_is_refused(home, place):
    file = home / "attempt0" / "0" / "plain" / "zarr.json"
    values = json.loads(file.read_text())
    del values["attributes"]["seal"]
    values["attributes"][LOCATION] = place
    values["attributes"]["seal"] = compute_checksum(values)
    file.write_text(json.dumps(values))
    with pytest.raises(DamageError, match=r"attempt0/0/plain"):
        read_group(Store(str(home / "attempt0" / "0")))


def test_finish__refuses_an_array_that_lacks_a_chunk(tmp_path):
    array = create_array(Store(str(tmp_path)).create_group(), "values", (30,), np.int32, 10, held=True)
    array[:20] = np.arange(20)
    with pytest.raises(DamageError, match="values/c/2 was not written"):
        array.finish()
    assert not (tmp_path / "values" / "zarr.json").exists(), "of an array that is held, metadata come last"


def test_chunks__of_a_large_model_take_little_room(tmp_path):
    """1,200 files, as of 1,000,000 x 300 in partitions: 4 bytes each."""
    write_array(Store(str(tmp_path)).create_group(), "values", np.zeros(1200, np.int8), 1)
    assert (tmp_path / "values" / "zarr.json").stat().st_size < 1200 * 4 * 4 / 3 + 2000


def test_parts__of_another_file_or_location_are_refused(tmp_path):
    items = np.arange(24, dtype=np.int32).reshape(-1, 2)
    homes = [Store(str(tmp_path / name)) for name in ("one", "other")]
    for home in homes:
        write_parts(home, "rows", [0, 6, 12], items)
        write_parts(home, "entries", [0, 6, 12], items)
    paths = [tmp_path / name / file for name in ("one", "other") for file in ("rows", "entries")]
    for one, other in combinations(paths, 2):
        swap(one, other)
        for path in (one, other):
            with pytest.raises(DamageError, match=f"{path} is not what was written"):
                read_part(Store(str(path.parent)), path.name, 2, 1, np.int32, 2)
        swap(one, other)
    content = paths[0].read_bytes()
    paths[0].write_bytes(content[:48] + content[96:] + content[48:96])  # its parts
    with pytest.raises(DamageError, match="is not what was written"):
        read_part(homes[0], "rows", 2, 0, np.int32, 2)


def test_parts__of_older_versions_are_read(tmp_path):
    items = np.arange(6, dtype=np.int32)
    records = np.array([[0, google_crc32c.value(items.tobytes())], [6, 0]])
    (tmp_path / "rows").write_bytes(records.tobytes() + items.tobytes())
    np.testing.assert_array_equal(read_part(Store(str(tmp_path)), "rows", 1, 0, np.int32, 1)[:, 0], items)


@pytest.mark.parametrize("n_parts", [1, 4, 5000])
def test_parts__of_zeros_are_refused(tmp_path, n_parts):
    """A power loss may leave a file's length without its content."""
    store = Store(str(tmp_path))
    write_parts(store, "rows", [0, *[3] * n_parts], np.arange(3, dtype=np.int32), named=False)
    (tmp_path / "rows").write_bytes(bytes((tmp_path / "rows").stat().st_size))
    for part in {0, n_parts - 1}:
        with pytest.raises(DamageError, match="is not what was written"):
            read_part(store, "rows", n_parts, part, np.int32, 1)


def test_parts__that_are_empty_are_read(tmp_path):
    store = Store(str(tmp_path))
    write_parts(store, "rows", [0, 0, 0], np.empty(0, np.int32), named=False)
    assert [len(read_part(store, "rows", 2, part, np.int32, 1)) for part in (0, 1)] == [0, 0]


def test_manifest__of_another_folder_is_refused(tmp_path):
    homes = [Store(str(tmp_path / name)) for name in ("one", "other")]
    for number, home in enumerate(homes):
        home.write_manifest({"number": number})
        home.finish_manifest({"number": number}, "free.json", portable=True)
    swap(tmp_path / "one" / "manifest.json", tmp_path / "other" / "manifest.json")
    swap(tmp_path / "one" / "free.json", tmp_path / "other" / "free.json")
    with pytest.raises(DamageError, match=f"one/manifest.json {FOREIGN}"):
        homes[0].read_manifest()
    assert homes[0].read_manifest("free.json")["number"] == 1
    shutil.move(tmp_path / "other" / "free.json", tmp_path / "other" / "manifest.json")
    with pytest.raises(DamageError, match=FOREIGN):
        homes[1].read_manifest()
