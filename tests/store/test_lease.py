"""Two at once: who comes second is told, waits, or takes over what the first left when it died."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from daskw2v.errors import BusyError, DamageError, StoreError
from daskw2v.stages import Store
from daskw2v.store import lease
from daskw2v.store.lease import hold
from daskw2v.store.numbered import NumberedLog

HOLDER = """
import sys, time
from daskw2v.stages import Store
from daskw2v.store.lease import hold
with hold(Store(sys.argv[1]), "run", "the run"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture(params=["local", "memory"])
def work(request, tmp_path):
    return Store(str(tmp_path) if request.param == "local" else f"memory://{tmp_path.name}")


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    monkeypatch.setattr(lease, "BEAT", 0.02)
    monkeypatch.setattr(lease, "EXPIRY", 0.5)
    monkeypatch.setattr(lease, "POLL", 0.01)


def elsewhere(monkeypatch):
    """Let this process look like another machine's to itself, as it is from now on."""
    monkeypatch.setattr(lease, "_get_machine", lambda: "another")


def held_leases(work):
    """Return the names of leases that somebody holds."""
    return [name for name in (work / "leases").children() if not newest(work, name)[1].get("released")]


def newest(work, name):
    """Return the number of the newest entry of a lease, and the entry."""
    log = NumberedLog(work / "leases" / name)
    number = log.newest_number()
    return number, log.read(number)


def take_over(work, name, **values):
    """Take over a lease, whoever holds it, as another machine would."""
    log = NumberedLog(work / "leases" / name)
    assert log.append(
        log.newest_number() + 1, {"beats": 0, "pid": 7, "host": "elsewhere", "machine": "other", **values}
    )


@pytest.fixture
def forgetful(monkeypatch):
    """A store in memory that ignores the condition of exclusive creation."""
    pipe = MemoryFileSystem.pipe_file
    monkeypatch.setattr(MemoryFileSystem, "pipe_file", lambda fs, path, value, **_: pipe(fs, path, value))


@pytest.mark.usefixtures("forgetful")
def test_lease__in_a_store_that_creates_nothing_exclusively_is_refused(tmp_path):
    work = Store(f"memory://{tmp_path.name}")
    for _ in range(2):
        with pytest.raises(StoreError, match=r"creates no file exclusively.*If-None-Match"):
            hold(work, "run", "the run").__enter__()
    assert not work.exists()


def test_store__whose_probe_was_interrupted_is_probed_again(work):
    probe = NumberedLog(work / "leases" / "probe")
    assert probe.append(1, {"released": True, "first": True})
    with hold(work, "run", "the run"):
        pass
    assert probe.read(3)["exclusive"]


def test_store__is_probed_once(work, monkeypatch):
    for name in ("run", "another"):
        with hold(work, name, "the run"):
            pass
    assert NumberedLog(work / "leases" / "probe").read(2)["exclusive"]
    monkeypatch.setattr(NumberedLog, "append", lambda *_: pytest.fail("it is probed again"))
    NumberedLog(work / "leases" / "probe").probe()


def test_lease__is_given_back(work):
    for _ in range(2):
        with hold(work, "run", "the run") as held:
            assert held_leases(work) == ["run"]
            held.check()
        assert held_leases(work) == []


def test_lease__is_given_back_after_an_error(work):
    with pytest.raises(ZeroDivisionError), hold(work, "run", "the run"):
        raise ZeroDivisionError
    assert held_leases(work) == []


def test_lease__of_one_that_lives_here_is_refused_at_once(work, monkeypatch):
    monkeypatch.setattr(lease, "EXPIRY", 1e9)
    with hold(work, "run", "the run r"):
        with pytest.raises(StoreError, match=rf"Process {os.getpid()} on .* is at work on the run r\. Wait until"):
            hold(work, "run", "the run r").__enter__()
        with hold(work, "another", "another run"):
            assert held_leases(work) == ["another", "run"]
    assert held_leases(work) == []


def test_lease__of_one_that_lives_on_another_machine_is_refused_by_its_signs_of_life(work, monkeypatch):
    with hold(work, "run", "the run"):
        elsewhere(monkeypatch)
        with pytest.raises(StoreError, match="is at work on the run"):
            hold(work, "run", "the run").__enter__()


def test_lease__without_heartbeats_is_acquired(work):
    take_over(work, "run")
    with hold(work, "run", "the run") as held:
        held.token.check()
    assert held_leases(work) == []


@pytest.mark.parametrize("content", [b"", b"\0" * 300, b"{"])
@pytest.mark.parametrize("place", [("leases/run", "00000001.json"), ("leases", "run.json")])
def test_lease__whose_file_cannot_be_read_is_acquired(work, place, content):
    folder, file = place
    (work / folder).write_bytes(file, content)
    with hold(work, "run", "the run") as held:
        held.token.check()
    assert held_leases(work) == []


def test_lease__whose_file_is_damaged_stays_its_holders_who_writes_it_again(work):
    with hold(work, "run", "the run") as held:
        (work / "leases" / "run").write_bytes("00000001.json", b"")
        held.token.check()
        while newest_or_none(work, "run") is None:
            time.sleep(0.01)
        held.token.check()
        assert len(held_leases(work)) == 1
    assert held_leases(work) == []


def newest_or_none(work, name):
    try:
        return newest(work, name)
    except DamageError:
        return None


def test_lease__of_an_earlier_release_is_respected_while_it_gives_signs_of_life(work):
    values = {"name": "earlier", "beats": 0, "pid": 7, "host": "elsewhere", "machine": "other", "thread": 1}
    beats, stop = iter(range(10**6)), threading.Event()

    def live():
        while not stop.wait(0.02):
            (work / "leases").write_manifest({**values, "beats": next(beats)}, "run.json")

    holder = threading.Thread(target=live)
    holder.start()
    try:
        while (work / "leases").read_bytes("run.json") is None:
            time.sleep(0.01)
        with pytest.raises(BusyError, match="Process 7 on elsewhere is at work on the run"):
            hold(work, "run", "the run").__enter__()
    finally:
        stop.set()
        holder.join()
    with hold(work, "run", "the run") as held:
        held.token.check()
    assert (work / "leases").read_bytes("run.json") is None


def test_lease__of_a_killed_process_is_acquired_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(lease, "EXPIRY", 1e9)
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    with pytest.raises(StoreError, match=f"Process {process.pid} on"):
        hold(Store(str(tmp_path)), "run", "the run").__enter__()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with hold(Store(str(tmp_path)), "run", "the run") as held:
        held.check()


def test_lease__of_a_stopped_process_on_this_machine_expires(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    os.kill(process.pid, signal.SIGSTOP)
    taken_over = []
    try:
        time.sleep(lease.EXPIRY * 1.5)
        with hold(Store(str(tmp_path)), "run", "the run", taken_over=taken_over.append) as held:
            held.check()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert taken_over == [f"Process {process.pid} on {os.uname().nodename}"]


def test_taken_over__is_called_with_a_holder_that_did_not_release_the_lease(work):
    taken_over = []
    with hold(work, "run", "the run", taken_over=taken_over.append):
        pass
    take_over(work, "run")
    with hold(work, "run", "the run", taken_over=taken_over.append):
        pass
    with hold(work, "run", "the run", taken_over=taken_over.append):
        pass
    assert taken_over == ["Process 7 on elsewhere"]


@pytest.mark.parametrize("answer", [None, {"beats": 0, "pid": 7, "entry": "of another one"}])
def test_lease__is_not_lost_if_the_store_answers_once_with_old_content(work, monkeypatch, answer):
    read, answers = NumberedLog.read, []
    with hold(work, "run", "the run") as held:
        held.stop()  # signs of life read, too
        answers.append(answer)
        monkeypatch.setattr(NumberedLog, "read", lambda self, n: answers.pop() if answers else read(self, n))
        held.token.check()
        assert not answers


def test_lease__is_waited_for_where_asked(work):
    messages, order = [], []

    def second():
        with hold(work, "text", "the text", waiting=messages.append):
            order.append("second")

    with hold(work, "text", "the text"):
        thread = threading.Thread(target=second)
        thread.start()
        while not messages:
            time.sleep(0.01)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    assert messages == [f"waiting for Process {os.getpid()} on {os.uname().nodename}"]


def test_lease__that_is_this_threads_own_is_not_waited_for(work):
    with hold(work, "text", "The text"), pytest.raises(StoreError, match="The text is this thread's own already"):
        hold(work, "text", "The text", waiting=print).__enter__()


def test_lease__that_was_taken_over_is_lost(work, monkeypatch):
    with hold(work, "run", "the run") as held:
        take_over(work, "run")
        while not is_lost(held):
            time.sleep(0.01)
        with pytest.raises(StoreError, match=r"Process 7 on elsewhere has taken over the run"):
            held.check()
    assert newest(work, "run")[1]["pid"] == 7, "it is not ours to release"


def is_lost(held):
    try:
        held.check()
    except StoreError:
        return True
    return False


CHANGES = {
    "write_bytes": lambda store: store.write_bytes("file", b"new"),
    "write_manifest": lambda store: store.write_manifest({}, "file"),
    "finish_manifest": lambda store: store.finish_manifest({}, "file"),
    "create_manifest": lambda store: store.create_manifest({}, "another"),
    "write_raw": lambda store: store.write_raw("file", np.ones(1), named=False),
    "remove": lambda store: store.remove(),
    "remove a file": lambda store: (store / "file").remove(),
    "create_group": lambda store: store.create_group(),
    "create_group below": lambda store: (store / "below").create_group(),
    "open_group": lambda store: store.open_group(writable=True),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("released", [False, True])
def test_guard__refuses_each_change_once_the_lease_is_lost(work, monkeypatch, change, released):
    """It reads the store: no sign of life has to come first."""
    monkeypatch.setattr(lease, "BEAT", 1e9)
    (work / "place").write_bytes("file", b"old")
    with hold_ends_quietly(work) as held:
        guarded = pickle.loads(pickle.dumps(held.guard(work) / "place"))  # as a worker has it
        take_over(work, "run", released=released)
        with pytest.raises(StoreError, match="has taken over the run"):
            change(guarded)
    assert work.children() == ["leases", "place"]
    assert (work / "place").children() == ["file"]
    assert (work / "place").read_bytes("file") == b"old"


@contextmanager
def hold_ends_quietly(work):
    """Hold a lease whose thread of signs of life ends at once."""
    with hold(work, "run", "the run") as held:
        try:
            yield held
        finally:
            held.stop()


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_guard__lets_each_change_pass_while_the_lease_is_held(work, change):
    (work / "place").create_group()
    (work / "place").write_bytes("file", b"old")
    before = contents(work / "place")
    with hold(work, "run", "the run") as held:
        change(held.guard(work) / "place")
    assert contents(work / "place") != before or change is CHANGES["open_group"]


def contents(store):
    return {path: store.read_bytes(path) for path in store.sizes()} if store.exists() else None


def test_guard__of_a_host_that_is_paused_right_before_it_names_a_file_that_nobody_else_does_takes_it_back(
    tmp_path, monkeypatch
):
    work, link = Store(str(tmp_path)), os.link

    def paused(source, target):
        if target.endswith("/manifest.json"):
            take_over(work, "run")
        link(source, target)

    monkeypatch.setattr(os, "link", paused)
    with hold(work, "run", "the run") as held, pytest.raises(StoreError, match="has taken over the run"):
        (held.guard(work) / "place").finish_manifest({})
    assert contents(work / "place") in (None, {})


@pytest.mark.parametrize("cleared", [False, True], ids=["", "its file is deleted"])
def test_guard__of_a_host_that_is_paused_right_before_it_names_a_file_leaves_that_of_its_successor(
    tmp_path, monkeypatch, cleared
):
    work, link = Store(str(tmp_path)), os.link

    def paused(source, target):
        if target.endswith("/manifest.json"):
            monkeypatch.undo()
            take_over(work, "run")
            if cleared:
                (work / "place").remove()
            (work / "place").finish_manifest({"by": "the successor"})
        link(source, target)

    monkeypatch.setattr(os, "link", paused)
    with hold(work, "run", "the run") as held, pytest.raises(StoreError, match="has taken over the run"):
        (held.guard(work) / "place").finish_manifest({"by": "who was paused"})
    assert (work / "place").read_manifest()["by"] == "the successor"


@pytest.mark.parametrize("name", ["place", "place/file"])
@pytest.mark.parametrize("created", [False, True], ids=["", "created again"])
def test_guard__renames_back_what_it_deletes_if_the_lease_was_lost_meanwhile(tmp_path, monkeypatch, name, created):
    """The process is paused after its check, right before it deletes."""
    work, rename = Store(str(tmp_path)), os.rename
    (work / "place").write_bytes("file", b"theirs")

    def paused(source, target):
        rename(source, target)
        if source.endswith(name) and target.endswith(".deleted"):
            take_over(work, "run")
            if created:
                (work / "place").write_bytes("file", b"new")

    monkeypatch.setattr(os, "rename", paused)
    with hold(work, "run", "the run") as held, pytest.raises(StoreError, match="has taken over the run"):
        (held.guard(work) / name).remove()
    assert (work / "place").read_bytes("file") == (b"new" if created else b"theirs")
    monkeypatch.undo()
    (work / name).remove()
    assert contents(work / "place") in (None, {})
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".deleted")]


def test_acquire__gives_a_dead_holders_lease_to_one_of_many(work, monkeypatch):
    """All have read that the holder is dead before the first of them takes the lease."""
    take_over(work, "run")
    monkeypatch.setattr(lease, "_is_alive", lambda entry, now: entry["pid"] != 7)
    append, all_read, taken = NumberedLog.append, threading.Barrier(8), []

    def racing(self, number, values):
        all_read.wait()
        return append(self, number, values)

    def take():
        try:
            taken.append(lease._acquire(work / "leases", "run", "the run", None))
        except BusyError as busy:
            taken.append(busy)

    def once(self, number, values):
        return racing(self, number, values) if number == 2 else append(self, number, values)

    monkeypatch.setattr(NumberedLog, "append", once)
    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 8
    assert [type(actual) for actual in taken].count(tuple) == 1  # of the token and the dead holder


def test_release__by_a_holder_that_lost_the_lease_leaves_its_successors_alone(work):
    """The number after its own may be free again: entries before the newest are deleted."""
    with hold(work, "run", "the run"):
        take_over(work, "run")
        take_over(work, "run", pid=8)
    number, entry = newest(work, "run")
    assert (number, entry["pid"]) == (3, 8)


def test_token__is_lost_where_the_store_let_another_process_overwrite_the_entry(work, monkeypatch):
    monkeypatch.setattr(lease, "BEAT", 1e9)
    with hold_ends_quietly(work) as held:
        values = (work / "leases" / "run").read_manifest("00000001.json")
        (work / "leases" / "run").write_manifest({**values, "entry": "another", "pid": 7}, "00000001.json")
        with pytest.raises(StoreError, match=r"Process 7 on .* has taken over the run"):
            held.token.check()


def test_lease__on_an_object_store_goes_to_one_and_refuses_who_lost_it(s3, monkeypatch):
    monkeypatch.setattr(lease, "BEAT", 1e9)
    work = Store("s3://bucket/leases-of-tests", s3)
    with hold_ends_quietly(work) as held:
        log = NumberedLog(work / "leases" / "run")
        assert log.append(1, {"beats": 0}) is None, "the number is taken"
        held.token.check()
        held.guard(work).write_bytes("file", b"ours")
        take_over(work, "run")
        with pytest.raises(StoreError, match="Process 7 on elsewhere has taken over the run"):
            held.guard(work).write_bytes("file", b"late")
    assert work.read_bytes("file") == b"ours"
    assert newest(work, "run")[1]["pid"] == 7
