"""Damaged versions are named, skipped, and deleted on request; they stop no other operation."""

import json
import shutil
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from daskw2v.errors import DamageError, StoreError
from daskw2v.models.stored.index_files import IndexSummary, describe_file, write_index
from daskw2v.models.stored.store import assign_stable_ids, read_attempt, write_ids, write_vocabulary
from daskw2v.models.stored.tables import create_model, write_table_rows
from daskw2v.models.versions.finished import next_version
from daskw2v.models.versions.resolving import resolve
from daskw2v.models.versions.versions import Versions, latest_version, publish
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary
from tests.support.command_line import invoke

NAMES = ["v0001-a", "v0002-b", "v0003-c"]
HOW = {
    "empty": lambda content: b"",
    "cut short": lambda content: content[: len(content) // 2],
    "flipped": lambda content: content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
    "missing": None,
}
METADATA = ("zarr.json", "input/zarr.json", "vocabulary/zarr.json", "vocabulary/words/zarr.json")
CHUNKS = ("input/c/1/0", "vocabulary/counts/c/0", "ids/ids/c/0")
SEEN = [("manifest.json", how) for how in HOW] + [
    (file, list(HOW)[n % len(HOW)]) for n, file in enumerate((*METADATA, *METADATA[1:], *METADATA[2:], *METADATA[3:]))
]
SEEN += [(file, how) for file in CHUNKS for how in ("empty", "missing")]
MET = [(file, "flipped") for file in CHUNKS]  # only reading shows it


@pytest.fixture(scope="module")
def intact_work(tmp_path_factory):
    """Three versions, published one after another, two hours old."""
    work, earlier = Store(str(tmp_path_factory.mktemp("whole"))), None
    then = (datetime.now(UTC) - timedelta(hours=2)).isoformat(timespec="seconds")
    for number, name in enumerate(NAMES):
        store, words = work / "models" / name, Vocabulary.from_words([f"new{number}", "a", "b"], [3, 2, 1])
        create_model(store, {"input": (3, 2)}, row_block=2)
        write_table_rows(store, "input", 0, np.full((3, 2), number, np.float32))
        write_vocabulary(store, words)
        write_ids(store, assign_stable_ids(earlier, words))
        publish(work / "models", name, {})
        store.write_manifest({**store.read_manifest(), "created": then})
        earlier = store
    return work


@pytest.fixture
def work(intact_work, tmp_path):
    """Return a copy of the work directory, to be damaged."""
    shutil.copytree(intact_work.url, tmp_path, dirs_exist_ok=True)
    return Store(str(tmp_path))


@pytest.fixture
def versions(work):
    return Versions(work)


def spoil(work, name, file, how):
    path = work.local_path + f"/models/{name}/{file}"
    change = HOW[how]
    if change is None:
        (work / "models" / name / file).remove()
    else:
        with open(path, "r+b") as f:
            content = change(f.read())
            f.seek(0)
            f.truncate()
            f.write(content)
    return path


def run(*args, status=0):
    result = invoke("versions", *args)
    assert result.exit_code == status, result.output
    return result


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("file", "how"), SEEN)
def test_damaged__names_the_file_by_a_look(work, versions, file, how):
    assert versions.damaged() == {}
    path = spoil(work, NAMES[1], file, how)
    if (file, how) == ("manifest.json", "missing"):
        versions.tag(NAMES[2], "other")  # a version that was served is known to have been finished
    (name,) = versions.damaged()
    assert name == NAMES[1]
    assert any(damage.url == path for damage in versions.damaged()[name])


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("file", "how"), SEEN + MET)
def test_verify__names_the_file(work, versions, file, how):
    assert versions.verify() == {name: [] for name in NAMES}
    path = spoil(work, NAMES[2], file, how)
    for result in (versions.verify("LATEST"), versions.verify()):
        assert path in {damage.url for damage in result[NAMES[2]]}
    assert versions.verify(NAMES[0]) == {NAMES[0]: []}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("file", "how"), SEEN)
def test_a_damaged_version__stops_nothing(work, versions, file, how):
    """If the served version is damaged, the previous one is served and tagged, and the damaged one is not."""
    spoil(work, NAMES[2], file, how)
    assert {version.name for version in versions.all()} >= set(NAMES[:2])
    assert versions.tag(NAMES[0], "stable").tags == ("stable",)
    assert versions.gc(keep=1) == []  # the newest whole version, the tagged one
    assert versions.rollback().name == NAMES[1]
    assert resolve(work.url).name == NAMES[1]
    with pytest.raises(StoreError, match=NAMES[2]):
        versions.publish(NAMES[2])
    assert latest_version(work / "models") == NAMES[1]
    ids = NAMES[1] if file == "manifest.json" or "vocabulary" in file or "ids" in file or file == "zarr.json" else None
    assert versions.newest_with_ids().name == (ids or NAMES[2])


@pytest.mark.parametrize("file", CHUNKS)
def test_ids__continue_from_the_newest_version_with_intact_ids_and_words(work, versions, file):
    spoil(work, NAMES[2], file, "flipped")
    assert versions.newest_with_ids().name == (NAMES[2] if file.startswith("input") else NAMES[1])


def test_rollback__passes_over_damaged_versions(work, versions):
    spoil(work, NAMES[1], "input/zarr.json", "empty")
    assert versions.rollback().name == NAMES[0]


def test_gc__does_not_count_damaged_versions_as_kept(work, versions):
    for name in NAMES[1:]:
        spoil(work, name, "input/c/0/0", "empty")
    assert versions.gc(keep=2) == []
    assert len(versions.all()) == 3


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("file", "how"), SEEN + MET)
def test_gc__deletes_damaged_versions_when_asked_to(work, versions, file, how):
    spoil(work, NAMES[2], file, how)
    assert versions.gc(damaged=True) == [NAMES[2]]
    assert latest_version(work / "models") == NAMES[1]
    assert versions.verify() == {NAMES[0]: [], NAMES[1]: []}


def test_gc__keeps_damaged_versions_with_tags(work, versions):
    versions.tag(NAMES[1], "paper")
    for name in NAMES[:2]:
        spoil(work, name, "zarr.json", "empty")
    assert versions.gc(damaged=True) == [NAMES[0]]


def test_gc__serves_the_newest_intact_version_if_no_served_version_remains(work, versions):
    (work / "models").write_bytes("LATEST", NAMES[2].encode())
    spoil(work, NAMES[2], "zarr.json", "empty")
    assert versions.gc(damaged=True) == [NAMES[2]]
    assert latest_version(work / "models") == NAMES[1]


def test_find__names_the_damage(work, versions):
    versions.tag(NAMES[1], "paper")
    path = spoil(work, NAMES[1], "manifest.json", "cut short")
    for name in (NAMES[1], "paper"):
        with pytest.raises(DamageError) as caught:
            versions.tag(name, "other")
        assert caught.value.url == path


def test_next_version__does_not_count_damaged_ones_of_its_run(work):
    assert next_version(work / "models", "c") == NAMES[2]
    assert next_version(work / "models", "c", {NAMES[2]}) == "v0004-c"


def test_commands__name_damaged_versions(work):
    path = spoil(work, NAMES[1], "manifest.json", "empty")
    listed = run("list", work.url)
    assert [line.split()[-4:][0] for line in listed.stdout.splitlines()[1:]] != []
    assert f"{NAMES[1]} is damaged: {path} is not JSON" in listed.stderr
    assert path in json.loads(run("list", work.url, "--json").stdout)["damaged"][NAMES[1]][0]
    assert NAMES[1] in run("gc", work.url).stderr
    rolled = run("rollback", work.url)
    assert rolled.stdout == f"{NAMES[0]}\n"
    assert "gc --damaged" in rolled.stderr
    assert run("gc", work.url, "--damaged").stdout == f"{NAMES[1]}\n"
    assert run("list", work.url).stderr == ""


def test_verify_command__exits_with_1_where_files_are_damaged(work):
    path = spoil(work, NAMES[0], "input/c/0/0", "flipped")
    assert run("verify", work.url).stdout.split() == ["version", "result", NAMES[2], "undamaged"]
    report = run("verify", work.url, "--all", status=1).stdout
    assert path in report
    assert report.count("undamaged") == 2
    result = json.loads(run("verify", work.url, NAMES[0], "--json", status=1).stdout)
    assert path in result[NAMES[0]][0]
    assert "has no version" in run("verify", work.url, "v0009-x", status=2).stderr


def test_verify__reads_the_index(work, versions):
    version, content = work / "models" / NAMES[2], np.arange(100, dtype=np.uint8)
    write_index(version, IndexSummary(3, 2, 16, 128, 1.0, 3, *describe_file(content), read_attempt(version)), content)
    assert versions.verify("LATEST")[NAMES[2]] == []
    (file,) = (name for name in (version / "index").children() if name not in ("leases", "manifest.json"))
    path = spoil(work, NAMES[2], f"index/{file}", "flipped")
    (damage,) = versions.verify("LATEST")[NAMES[2]]
    assert damage.url == path
    assert versions.damaged(full=True) == {}  # an index can be built again
