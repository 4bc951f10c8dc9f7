"""A power loss at any moment takes nothing that a manifest names, and the same command goes on after it.

`python -m benchmarks.power_loss` plays thousands.
"""

import os
import random
import subprocess
import sys
from itertools import islice

import pytest

from daskw2v.store import durability
from daskw2v.store.storage import Store
from tests.support.power import ROOT, Content, Disk, Names, Recorder, Sync
from tests.support.power_losses import Outage, Played

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the recorder finds open files in /proc")
NEEDS = {"index": "usearch", "index, again": "usearch", "export": "pyarrow"}


def disk(*events):
    actual = Disk()
    for event in events:
        actual.apply(event)
    return actual


def possible(found):
    """Return what a disk may hold: of many draws."""
    return [found.after("random", random.Random(seed)) for seed in range(200)]


FILE = (Content(1, b""), Names(((ROOT, "a", 1),)), Content(1, b"1234"))


def test_disk__loses_names_and_contents_that_were_not_synced():
    actual = disk(*FILE)
    assert actual.after("all lost", random.Random()) == {}
    assert actual.after("contents lost", random.Random()) == {"a": b""}
    assert actual.after("all kept", random.Random()) == {"a": b"1234"}
    contents = {tree.get("a") for tree in possible(actual)}
    assert contents == {None, b"", b"\0\0\0\0", b"1", b"12", b"123", b"1234"}


def test_disk__keeps_what_was_synced():
    assert disk(*FILE, Sync(1)).after("all lost", random.Random()) == {}
    assert disk(*FILE, Sync(ROOT)).after("all lost", random.Random()) == {"a": b""}
    for syncs in ((Sync(1), Sync(ROOT)), (Sync(None),)):
        assert all(tree == {"a": b"1234"} for tree in possible(disk(*FILE, *syncs)))


def test_disk__has_either_file_where_one_was_replaced():
    replaced = Names(((ROOT, "b", None), (ROOT, "a", 2)))
    other = (Content(2, b""), Names(((ROOT, "b", 2),)), Content(2, b"new"))
    actual = disk(*FILE, Sync(None), *other, Sync(2), replaced)
    assert {tree["a"] for tree in possible(actual)} == {b"1234", b"new"}


def test_recorder__sees_all_that_is_written(tmp_path):
    recorder = Recorder(tmp_path)
    with recorder.recording():
        store = Store(str(tmp_path / "work"))
        store.create_group().create_array("x", shape=(5,), chunks=(2,), dtype="i4")[:] = 1
        store.write_manifest({"a": 1})
        store.write_manifest({"a": 2})
        store.create_manifest({"a": 2}, "created.json")
        (store / "x").remove()
        os.rename(tmp_path / "work", tmp_path / "other")
        (tmp_path / "other" / "more").write_text("more")
    recorder.check()


def test_recorder__notices_what_it_did_not_see(tmp_path):
    recorder = Recorder(tmp_path)
    with recorder.recording():
        subprocess.run(["touch", tmp_path / "unseen"], check=True)
    with pytest.raises(AssertionError, match="missed: unseen"):
        recorder.check()


def survive(played, outages):
    """Check that a command goes on after each outage."""
    failed = {}
    for outage in outages:
        tree = played.disk(outage)
        if played.is_new(tree) and (problem := played.go_on(tree)):
            failed[outage] = problem
    assert not failed


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("name", "bulk"), [("versions gc", True), ("versions rollback", True), ("export", False)])
def test_power_loss__of_a_short_command(tmp_path, client, name, bulk):
    pytest.importorskip(NEEDS.get(name, "numpy"))
    played = Played(name, tmp_path, client, bulk=bulk)
    survive(played, islice(played.outages(), 4))
    done = len(played.recorder.events)
    survive(played, (Outage(done - late, "random", seed) for late in (0, 8) for seed in range(2)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["train, averaging", "train, rotation", "retrain", "versions gc", "index, again"])
def test_power_loss__of_a_command_that_syncs_each_file(tmp_path, client, name):
    pytest.importorskip(NEEDS.get(name, "numpy"))
    played = Played(name, tmp_path, client, bulk=False)
    survive(played, islice(played.outages(), 6))


def test_power_loss__is_noticed_where_nothing_was_forced(tmp_path, client, monkeypatch):
    monkeypatch.setattr(durability, "_force_to_disk", lambda files: None)
    played = Played("train, averaging", tmp_path, client)
    problem = played.go_on(played.disk(Outage(len(played.recorder.events), "contents lost")))
    assert problem is not None
