"""Damage of every file of a work directory: named, or made again with the same bits; never taken for data."""

import shutil
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from distributed.core import error_message
from distributed.protocol.pickle import dumps, loads

from daskw2v import Params, Resources, Vectors, train
from daskw2v.errors import DamageError, StoreError
from daskw2v.models.stored.store import write_vocabulary
from daskw2v.stages import Store
from daskw2v.store.arrays import create_array, open_array, read_array, write_array
from daskw2v.store.partfile import read_part, write_parts
from daskw2v.store.retries import RetryingStore
from tests.support.one_shard import write_shard

SHAPE = {"vector_size": 6, "min_count": 1, "epochs": 1, "sample": 1.0, "window": 2}
RUNS = {
    "averaging": Params(**SHAPE, n_replicas=2, rounds_per_epoch=3, objective="sg_hs"),
    "rotation": Params(**SHAPE, strategy="rotation", n_partitions=2, passes_per_epoch=3),
    "columns": Params(**SHAPE, objective="context_matrix", strategy="columns", context_size=48, gather_every=12),
}
RESOURCES = Resources(threads=1, block_size="4 KiB", checkpoint_seconds=0)


class CutShort(Exception):
    """As if the client had been killed."""


def interrupted(text, work, params, client):
    """Train until half of the text is done."""

    def stop(progress):
        if progress.stage == "train" and 2 * progress.done > progress.total > 0:
            raise CutShort

    with pytest.raises(CutShort):
        train(text, work=work, params=params, resources=RESOURCES, client=client, listener=stop)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    rng = np.random.default_rng(5)
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(" ".join(f"w{w}" for w in rng.zipf(1.5, 9) % 60) + "\n" for _ in range(300)))
    return path


def files_of(folder):
    """Return the files of a folder, without its leases, which hold no data."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and "leases" not in path.parts)


def spoil(path, how):
    content = bytearray(path.read_bytes())
    if how == "lost":
        path.unlink()
    elif how in ("cut short", "empty"):
        path.write_bytes(content[: len(content) // 2 if how == "cut short" else 0])
    else:
        place = {"first byte": 0, "middle byte": len(content) // 2, "last byte": -1}[how]
        content[place] ^= 0x10
        path.write_bytes(content)


def outcome(function, *args, **options):
    """Return what a call returns, or else the error of the store that it raises."""
    try:
        return function(*args, **options), None
    except StoreError as error:
        return None, error


def note_stage(stages, progress):
    stages.append(progress.stage)


def trained_again(client, text, work, strategy):
    """Train in a work directory; return the vectors, or the error of the store, and the number of repairs."""
    stages = []
    vectors, damage = outcome(
        train,
        text,
        work=work,
        params=RUNS[strategy],
        resources=RESOURCES,
        client=client,
        listener=partial(note_stage, stages),
    )
    return vectors, damage, stages.count("repair")


HOW = ("first byte", "middle byte", "last byte", "cut short", "empty", "lost")


@pytest.mark.parametrize(
    ("strategy", "n_files"), [("averaging", 2), *(pytest.param(name, 18, marks=pytest.mark.slow) for name in RUNS)]
)
def test_train__goes_on_from_what_is_whole(client, text, tmp_path, strategy, n_files):
    """One file at a time, each in another way by turns; the matrix, which may have grown, is named instead."""
    undisturbed = train(text, work=tmp_path / "whole", params=RUNS[strategy], resources=RESOURCES, client=client)
    interrupted(text, tmp_path / "cut", RUNS[strategy], client)
    names = [path.relative_to(tmp_path / "cut") for path in files_of(tmp_path / "cut")]
    assert {name.parts[0] for name in names} >= {"corpora", "shards", "vocabulary", "runs"}
    repaired = 0
    for number, name in enumerate(names[:: max(1, len(names) // n_files)]):
        work = tmp_path / str(number)
        shutil.copytree(tmp_path / "cut", work)
        spoil(work / name, HOW[number % len(HOW)])
        vectors, damage, repairs = trained_again(client, text, work, strategy)
        if damage is None:
            np.testing.assert_array_equal(vectors.vectors[:], undisturbed.vectors[:], err_msg=str(name))
        else:
            assert isinstance(damage, DamageError)
            assert name.parts[0] == "matrices", damage
            assert damage.url.startswith(str(work / "matrices"))
        repaired += repairs
        shutil.rmtree(work)
    assert repaired > n_files / 6


def test_train__writes_a_model_again_that_lost_a_table_before_it_was_published(client, text, tmp_path, monkeypatch):
    stages, losses = [], ["output"]

    def lose(store, vocabulary):
        write_vocabulary(store, vocabulary)
        while losses:
            (store / losses.pop() / "zarr.json").remove()

    monkeypatch.setattr(sys.modules["daskw2v.training.version"], "write_vocabulary", lose)
    vectors = train(
        text,
        work=tmp_path,
        params=RUNS["averaging"],
        resources=RESOURCES,
        client=client,
        listener=partial(note_stage, stages),
    )
    assert stages.count("repair") == 1
    assert vectors.metadata["tables"] == {"input": [60, 6], "output": [59, 6]}


@pytest.mark.slow
def test_train__begins_a_matrix_anew_whose_pieces_were_damaged(client, text, tmp_path):
    undisturbed = train(text, work=tmp_path / "whole", params=RUNS["columns"], resources=RESOURCES, client=client)
    stages = []

    def spoil_once(progress):
        stages.append(progress.stage)
        if progress.message.startswith("sample: 1 of") and "repair" not in stages:
            (piece,) = (tmp_path / "work" / "matrices").glob("*/*/text/0/*/entries")
            spoil(piece, "middle byte")

    vectors = train(
        text, work=tmp_path / "work", params=RUNS["columns"], resources=RESOURCES, client=client, listener=spoil_once
    )
    assert stages.count("repair") == 1
    np.testing.assert_array_equal(vectors.vectors[:], undisturbed.vectors[:])
    assert len(list((tmp_path / "work" / "matrices").glob("*/*/"))) == 1


@pytest.mark.slow
def test_train__tells_what_helps_where_a_matrix_is_damaged(client, text, tmp_path):
    undisturbed = train(text, work=tmp_path / "whole", params=RUNS["columns"], resources=RESOURCES, client=client)
    interrupted(text, tmp_path / "cut", RUNS["columns"], client)
    shutil.copytree(tmp_path / "cut", tmp_path / "work")  # of what lies there no worker has read anything
    (matrix,) = (tmp_path / "work" / "matrices").iterdir()
    (chunk,) = matrix.glob("*/matrix/contexts/c/0/0")
    spoil(chunk, "last byte")
    again = {"work": tmp_path / "work", "params": RUNS["columns"], "resources": RESOURCES, "client": client}
    with pytest.raises(DamageError, match=rf"contexts/c/0/0 is damaged .*Restore {matrix} from a copy\. Or delete it"):
        train(text, **again)
    shutil.rmtree(matrix)
    np.testing.assert_array_equal(train(text, **again).vectors[:], undisturbed.vectors[:])


@pytest.mark.slow
def test_vectors__are_never_made_of_damage(client, text, tmp_path):
    whole = train(text, work=tmp_path / "work", params=RUNS["averaging"], resources=RESOURCES, client=client)
    model = Path(whole.url)
    for number, path in enumerate(files_of(model)):
        for how in HOW:
            copy = tmp_path / f"{number}-{how}"
            shutil.copytree(model, copy)
            spoil(copy / path.relative_to(model), how)
            actual, damage = outcome(Vectors.open, copy)
            if damage is None:
                assert actual.vocabulary.words == whole.vocabulary.words
                np.testing.assert_array_equal(actual.vectors[:], whole.vectors[:])
                assert actual.metadata == whole.metadata
            elif isinstance(damage, DamageError):
                assert str(copy) in damage.url
            else:
                assert (path.name, how) == ("manifest.json", "lost"), damage
            shutil.rmtree(copy)


def test_array__names_the_chunk_that_is_damaged(tmp_path):
    store = Store(str(tmp_path))
    values = np.arange(300, dtype=np.int64)
    write_array(store.create_group(), "values", values, chunk_rows=100)
    spoil(tmp_path / "values" / "c" / "1", "middle byte")
    array = open_array(store.open_group(), "values")
    np.testing.assert_array_equal(array[:100], values[:100])
    with pytest.raises(DamageError, match=r"values/c/1 is damaged .*checksum"):
        array[50:150]
    spoil(tmp_path / "values" / "c" / "1", "lost")
    with pytest.raises(DamageError, match=r"values/c/1 is missing"):
        array.take(np.array([3, 120]))


def mask_of(*rows):
    mask = np.zeros(100, bool)
    mask[list(rows)] = True
    return mask


@pytest.mark.parametrize(
    ("ask", "files"),
    [
        (lambda array: array[35:61], {"3/0", "3/1", "4/0", "4/1", "5/0", "5/1", "6/0", "6/1"}),
        (lambda array: array[35:61:9, -3:], {"3/1", "4/1", "5/1"}),
        (lambda array: array[-51, 3], {"4/0"}),
        (lambda array: array[mask_of(12, 47), 7], {"1/1", "4/1"}),
        (lambda array: array.take((np.array([48, -1, 40]), slice(0, 5))), {"4/0", "9/0"}),
        (lambda array: array[...], {f"{row}/{column}" for row in range(10) for column in range(2)}),
    ],
)
def test_array__looks_for_damage_only_where_it_was_read(tmp_path, monkeypatch, ask, files):
    array = create_array(Store(str(tmp_path)).create_group(), "values", (100, 8), np.int64, 10, chunk_columns=5)
    array[...] = np.arange(800).reshape(100, 8)
    for column in range(2):
        spoil(tmp_path / "values" / "c" / "4" / str(column), "middle byte")
    asked, get = set(), RetryingStore.get

    def note(self, key, *args, **options):
        asked.add(key)
        return get(self, key, *args, **options)

    array = open_array(Store(str(tmp_path)).open_group(), "values")
    monkeypatch.setattr(RetryingStore, "get", note)
    with pytest.raises(DamageError, match=r"values/c/4/[01] is damaged"):
        ask(array)
    assert asked == {f"values/c/{file}" for file in files}


def test_array__of_one_shard_is_checked_chunk_by_chunk(tmp_path):
    store = Store(str(tmp_path))
    values = np.random.default_rng(0).integers(0, 1 << 30, (300, 2))
    write_shard(store.create_group(), "values", values, 100)
    spoil(tmp_path / "values" / "c" / "0" / "0", "first byte")
    array = open_array(store.open_group(), "values")
    np.testing.assert_array_equal(array[200:], values[200:])
    with pytest.raises(DamageError, match=r"values/c/0/0 is damaged"):
        array[:100]
    spoil(tmp_path / "values" / "c" / "0" / "0", "empty")  # as a crash leaves it: Zarr would read zeros
    for rows in (slice(None), slice(0, 100)):
        with pytest.raises(DamageError, match=r"values/c/0/0 is (cut short|damaged)"):
            array[rows]


def test_array__that_is_being_written_has_no_chunks_yet(tmp_path):
    group = Store(str(tmp_path)).create_group()
    create_array(group, "values", (10,), np.int32, 5, fill_value=-1)
    assert open_array(group, "values")[:].tolist() == [-1] * 10
    with pytest.raises(DamageError, match="is missing"):
        read_array(Store(str(tmp_path)).open_group(), "values")


def test_metadata__of_any_node_are_sealed(tmp_path):
    store = Store(str(tmp_path))
    write_shard(store.create_group(), "values", np.arange(10), 10, {"edges": [1, 2]})
    for path in (tmp_path / "zarr.json", tmp_path / "values" / "zarr.json"):
        content = path.read_text()
        path.write_text(content.replace("zarr_format", "zarr_form4t"))
        with pytest.raises(DamageError, match=r"zarr\.json is not what was written"):
            read_array(store.open_group(), "values")
        path.write_text(content)
    assert read_array(store.open_group(), "values").tolist() == list(range(10))


def test_parts__are_checked_one_by_one(tmp_path):
    store, items = Store(str(tmp_path)), np.arange(24, dtype=np.int32).reshape(-1, 2)
    write_parts(store, "file", [0, 5, 5, 12], items)
    parts = [read_part(store, "file", 3, k, np.int32, 2) for k in range(3)]
    np.testing.assert_array_equal(np.concatenate(parts), items)
    assert [len(part) for part in parts] == [5, 0, 7]
    spoil(tmp_path / "file", "last byte")
    np.testing.assert_array_equal(read_part(store, "file", 3, 0, np.int32, 2), items[:5])
    with pytest.raises(DamageError, match="file is not what was written"):
        read_part(store, "file", 3, 2, np.int32, 2)


def test_manifest__is_sealed(tmp_path):
    store = Store(str(tmp_path))
    store.write_manifest({"answer": 42})
    content = (tmp_path / "manifest.json").read_text()
    (tmp_path / "manifest.json").write_text(content.replace("42", "43"))
    with pytest.raises(DamageError, match=r"manifest\.json is not what was written"):
        store.read_manifest()


def swap(one, other):
    between = one.with_name("between")
    for source, target in ((one, between), (other, one), (between, other)):
        source.rename(target)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "n_swaps"), [("averaging", 2), *(pytest.param(name, 8, marks=pytest.mark.slow) for name in RUNS)]
)
def test_train__takes_no_swapped_file_for_data(client, text, tmp_path, strategy, n_swaps):
    """Random pairs: what is a stage's or a checkpoint's is made again; a matrix, and what is no manifest, are named."""
    undisturbed = train(text, work=tmp_path / "whole", params=RUNS[strategy], resources=RESOURCES, client=client)
    interrupted(text, tmp_path / "cut", RUNS[strategy], client)
    files = [path.relative_to(tmp_path / "cut") for path in files_of(tmp_path / "cut")]
    kinds = [[f for f in files if (f.suffix == ".json") == json] for json in (True, False)]
    rng, repaired = np.random.default_rng(len(strategy)), 0
    for number in range(n_swaps):
        work = tmp_path / str(number)
        shutil.copytree(tmp_path / "cut", work)
        pair = [work / kinds[number % 2][i] for i in rng.choice(len(kinds[number % 2]), 2, replace=False)]
        swap(*pair)
        vectors, damage, repairs = trained_again(client, text, work, strategy)
        if damage is None:
            np.testing.assert_array_equal(vectors.vectors[:], undisturbed.vectors[:], err_msg=str(pair))
        else:
            assert any(str(path) in str(damage) for path in pair) or f"{work}/matrices" in str(damage), damage
        repaired += repairs
        shutil.rmtree(work)
    assert repaired or n_swaps < 3


@pytest.mark.slow
def test_train__goes_back_to_whole_rows_where_a_checkpoint_has_those_of_another(client, text, tmp_path):
    """The chunks of two checkpoints of a run are of one shape and name."""
    params = RUNS["averaging"].replace(rounds_per_epoch=5)
    undisturbed = train(text, work=tmp_path / "whole", params=params, resources=RESOURCES, client=client)
    interrupted(text, tmp_path / "cut", params, client)
    shutil.copytree(tmp_path / "cut", tmp_path / "work")
    earlier, later = sorted((tmp_path / "work").glob("runs/*/checkpoints/*"))
    shutil.copy(earlier / "input" / "c" / "0" / "0", later / "input" / "c" / "0" / "0")
    messages = []
    vectors = train(
        text,
        work=tmp_path / "work",
        params=params,
        resources=RESOURCES,
        client=client,
        listener=lambda progress: messages.append(progress.message),
    )
    np.testing.assert_array_equal(vectors.vectors[:], undisturbed.vectors[:])
    assert any(f"{later}/input/c/0/0 is of another place, version or attempt." in message for message in messages)


def test_open_group__that_is_missing_raises_on_workers_too(tmp_path):
    """Zarr's own errors cannot be read by another process."""
    with pytest.raises(DamageError) as report:
        Store(str(tmp_path)).open_group()
    error_message(report.value)  # as workers do, it makes classes of errors known to pickle
    again = loads(dumps(report.value))
    assert (type(again), str(again)) == (DamageError, str(report.value))
