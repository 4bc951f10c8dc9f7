"""Nights on a folder that gains files: only these are read; a night that learns nothing changes nothing."""

import pytest
from nights_of_text import LOOSE, ONE, PARAMS

from daskw2v import Versions, retrain
from daskw2v.corpus.sources import find_sources
from daskw2v.errors import InputError, ParameterError, TrainingError
from daskw2v.retraining.outcome import Outcome
from daskw2v.shards import encode
from tests.support.days import write_day


@pytest.fixture
def nights(tmp_path, client):
    """What runs on the folder, with its work directory in it."""

    def run(**changes):
        given = {"params": PARAMS, "resources": ONE, "gates": LOOSE, **changes}
        return retrain(tmp_path, work=tmp_path / "work", client=client, **given)

    return run


def add_day(folder, day, **size):
    """Write a partition of a day, with the marker of whoever wrote it."""
    (folder / f"day={day}").mkdir()
    write_day(folder / f"day={day}", day, **size)
    (folder / "_SUCCESS").touch()


@pytest.mark.slow
def test_folder__that_gains_files_has_only_these_read(tmp_path, nights, monkeypatch):
    add_day(tmp_path, 0)
    first = nights()
    assert nights().outcome is Outcome.NOTHING_NEW
    add_day(tmp_path, 1, sentences=40)
    read, read_block = [], encode.read_block

    def reading(block, **how):
        read.append(block.source.url)
        return read_block(block, **how)

    monkeypatch.setattr(encode, "read_block", reading)
    second = nights()
    assert set(read) == {str(tmp_path / "day=1" / "1.txt")}
    assert (second.outcome, second.figures["files_new"], second.figures["files_gone"]) == (Outcome.PUBLISHED, 1, 0)
    assert (first.version, second.version) == tuple(version.name for version in Versions.open(tmp_path / "work").all())


def test_folder__has_the_files_and_the_model_of_its_pattern(tmp_path, nights, client):
    add_day(tmp_path, 0)
    nights()
    assert find_sources(tmp_path, work=str(tmp_path / "work")) == find_sources(tmp_path / "day=*" / "*.txt")
    again = retrain(
        tmp_path / "day=*" / "*.txt", work=tmp_path / "work", params=PARAMS, resources=ONE, gates=LOOSE, client=client
    )
    assert again.outcome is Outcome.NOTHING_NEW


def test_folder__of_another_format_is_refused_and_what_is_served_stays(tmp_path, nights):
    add_day(tmp_path, 0)
    served = nights().served
    (tmp_path / "day=0" / "b.jsonl").write_text('{"text": "one"}\n')
    with pytest.raises(InputError, match="files of several formats, such as text"):
        nights()
    assert [version.name for version in Versions.open(tmp_path / "work").all() if version.served] == [served]


@pytest.mark.slow
def test_night__without_a_pair_is_an_error_and_what_is_served_stays(tmp_path, nights):
    add_day(tmp_path, 0)
    served = nights().served
    add_day(tmp_path, 1)
    with pytest.raises(TrainingError, match=r"^No pair of words was left.*nothing is published"):
        nights(params=PARAMS.replace(sample=1e-12))
    versions = Versions.open(tmp_path / "work").all()
    assert [(version.name, version.served) for version in versions] == [(served, True)]
    assert nights().outcome is Outcome.PUBLISHED


def test_inputs__that_are_no_names_are_refused(tmp_path, client):
    with pytest.raises(ParameterError, match=r"yields names of files.*Give list"):
        retrain(iter([tmp_path]), work=tmp_path / "work", client=client)
