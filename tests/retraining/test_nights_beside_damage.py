"""Nights beside damaged versions: they are named and passed over, and what they held is trained again."""

import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from nights_of_text import LOOSE, ONE, PARAMS

from daskw2v import Vectors, Versions, retrain
from daskw2v.errors import FormatError, StoreError
from daskw2v.retraining.outcome import Outcome
from tests.support.days import write_day

SETTINGS = {"params": PARAMS, "resources": ONE, "gates": LOOSE}


@pytest.fixture(scope="module")
def two_nights(tmp_path_factory, client):
    """A work directory after two nights, the text, and the names of the versions."""
    place = tmp_path_factory.mktemp("nights")
    (place / "text").mkdir()
    names = []
    for day in (0, 1):
        write_day(place / "text", day, sentences=80)
        names.append(retrain(str(place / "text" / "*.txt"), work=place / "work", client=client, **SETTINGS).version)
    return place, names


@pytest.fixture
def nights(two_nights, tmp_path, client):
    """A copy of the work directory; the text is where it was, with files beside it that a night may read, too."""
    place, names = two_nights
    shutil.copytree(place / "work", tmp_path / "work")

    def run(*more, **changes):
        inputs = [str(place / "text" / "*.txt"), *map(str, more)]
        return retrain(inputs, work=tmp_path / "work", client=client, **SETTINGS, **changes)

    def write(day):
        write_day(tmp_path, day, sentences=40)
        return tmp_path / f"{day}.txt"

    models, whole = tmp_path / "work" / "models", place / "work" / "models"
    return SimpleNamespace(run=run, write=write, work=tmp_path / "work", models=models, names=names, whole=whole)


def lose_power(version):
    """Leave what was forced to the disk; all other files are there, and empty."""
    for path in version.rglob("*"):
        if path.is_file() and path.name not in ("manifest.json", "sources.json"):
            path.write_bytes(b"")


def flip(path):
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)


DAMAGE = {
    "power loss": lose_power,
    "manifest cut": lambda version: (version / "manifest.json").write_bytes(b'{"format_vers'),
    "manifest lost": lambda version: (version / "manifest.json").unlink(),
    "sources lost half": lambda version: (version / "sources.json").write_bytes(b'{"sour'),
    "metadata flipped": lambda version: flip(version / "input" / "zarr.json"),
    "chunk lost": lambda version: (version / "output" / "c" / "0" / "0").unlink(),
}


@pytest.mark.slow
@pytest.mark.parametrize("how", ["power loss", *(pytest.param(how, marks=pytest.mark.slow) for how in [*DAMAGE][1:])])
def test_a_night__trains_again_what_a_damaged_version_held(nights, how):
    """With the bits that it had, under the next number; the damaged one is named, and not touched."""
    first, second = nights.names
    DAMAGE[how](nights.models / second)
    before = {path: path.read_bytes() for path in (nights.models / second).rglob("*") if path.is_file()}
    messages = []
    summary = nights.run(listener=lambda progress: messages.append(progress.message))
    assert summary.outcome is Outcome.PUBLISHED
    assert summary.version == summary.served == second.replace("v0002", "v0003")
    assert f"Damaged and passed over: {second}." in summary.message
    assert any(f"{nights.models / second}" in text and "is passed over" in text for text in messages)
    again, whole = Vectors.open(nights.models / summary.version), Vectors.open(nights.whole / second)
    np.testing.assert_array_equal(again.vectors, whole.vectors)
    assert again.metadata["retraining"]["parent"] == first
    assert before == {path: path.read_bytes() for path in (nights.models / second).rglob("*") if path.is_file()}
    assert nights.run().outcome is Outcome.NOTHING_NEW


@pytest.mark.slow
def test_a_night__passes_over_a_version_whose_damage_only_reading_shows(nights):
    first, second = nights.names
    flip(nights.models / second / "input" / "c" / "0" / "0")
    assert nights.run().outcome is Outcome.NOTHING_NEW  # nothing reads it
    summary = nights.run(nights.write(7))
    assert summary.outcome is Outcome.PUBLISHED
    actual = Vectors.open(nights.models / summary.version)
    assert actual.metadata["retraining"]["parent"] == first
    assert "day7" in actual
    assert "day1" in actual


@pytest.mark.slow
def test_a_night__serves_the_version_before_where_that_has_the_text(nights):
    """After a rollback, and a version that was published by hand and is damaged now."""
    first, second = nights.names
    versions = Versions.open(nights.work)
    versions.publish(first)
    lose_power(nights.models / first)
    versions.publish(second)
    shutil.rmtree(nights.models / "state")  # as an earlier release left it
    (nights.models / "LATEST").write_text(f"{first}\n{second}")
    summary = nights.run()
    assert (summary.outcome, summary.served) == (Outcome.PUBLISHED, second)
    assert first in summary.message


@pytest.mark.slow
def test_nights__go_on_after_a_rollback_from_a_damaged_version(nights):
    first, second = nights.names
    lose_power(nights.models / second)
    versions = Versions.open(nights.work)
    assert versions.rollback().name == first
    files = []
    for day in (7, 8, 9):
        files.append(nights.write(day))
        summary = nights.run(*files)
        assert summary.outcome is Outcome.PUBLISHED
        assert second in summary.message
    assert versions.gc(keep=9, damaged=True) == [second]
    assert nights.run(*files).outcome is Outcome.NOTHING_NEW


def test_a_night__begins_anew_where_no_version_is_whole(nights):
    for name in nights.names:
        lose_power(nights.models / name)
    summary = nights.run()
    assert (summary.outcome, summary.version[:5]) == (Outcome.PUBLISHED, "v0003")
    assert Vectors.open(nights.work).metadata["retraining"]["parent"] is None


def test_a_night__passes_over_what_another_daskw2v_wrote(nights):
    """Versions, candidates, and records of what runs use: none is touched, and no text that they may use."""
    foreign = {
        nights.models / "v0009-abc" / "manifest.json": '{"format_version": 2}',
        nights.work / "retraining" / "0123456789ab.uses.json": '{"format_version": 2}',
        nights.work / "candidates" / "mine" / "notes.txt": "ours",
        nights.work / "runs" / "theirs" / "manifest.json": '{"format_version": 2}',
    }
    for path, text in foreign.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    shards, messages = sorted((nights.work / "shards").rglob("zarr.json")), []
    summary = nights.run(nights.write(2), listener=lambda progress: messages.append(progress.message))
    assert summary.version.startswith("v0010-")
    assert "Of another daskw2v and passed over: v0009-abc." in summary.message
    assert any("0123456789ab.uses.json is of another daskw2v" in text for text in messages)
    assert {path: path.read_text() for path in foreign} == foreign
    assert set(shards) <= {*(nights.work / "shards").rglob("zarr.json")}


def test_a_night__ends_where_another_daskw2v_wrote_what_is_served(nights):
    manifest = nights.models / nights.names[1] / "manifest.json"
    manifest.write_text('{"format_version": 2}')
    with pytest.raises(FormatError, match="Open it with the daskw2v that wrote it"):
        nights.run(nights.write(2))


@pytest.mark.parametrize("folder", ["candidates", "models", "leases", "shards"])
def test_a_night__refuses_a_link_before_anything_is_read(nights, tmp_path, folder):
    (nights.work / folder).mkdir(exist_ok=True)
    (nights.work / folder).rename(tmp_path / "others")
    (tmp_path / "others" / "mine").mkdir()
    (nights.work / folder).symlink_to(tmp_path / "others")
    before = sorted((tmp_path / "others").rglob("*"))
    with pytest.raises(StoreError, match=f"work/{folder} is a link"):
        nights.run(nights.write(2))
    assert sorted((tmp_path / "others").rglob("*")) == before
