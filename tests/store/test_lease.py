"""Two at once: who comes second is told, waits, or takes over what the first left when it died."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from daskw2v import Store
from daskw2v.errors import StoreError
from daskw2v.store import lease
from daskw2v.store.lease import hold

HOLDER = """
import sys, time
from daskw2v import Store
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
    monkeypatch.setattr(lease, "_LOOK", 0.01)


def elsewhere(monkeypatch):
    """Let this process look like another machine's to itself, as it is from now on."""
    monkeypatch.setattr(lease, "_machine", lambda: "another")


def leases_of(work):
    names = (work / "leases").children()
    return [name for name in names if not name.startswith(".")]  # a lease that is being renewed


def test_lease__is_given_back(work):
    for _ in range(2):
        with hold(work, "run", "the run") as held:
            assert leases_of(work) == ["run.json"]
            held.check()
        assert leases_of(work) == []


def test_lease__is_given_back_after_an_error(work):
    with pytest.raises(ZeroDivisionError), hold(work, "run", "the run"):
        raise ZeroDivisionError
    assert leases_of(work) == []


def test_lease__of_one_that_lives_here_is_refused_at_once(work, monkeypatch):
    monkeypatch.setattr(lease, "EXPIRY", 1e9)
    with hold(work, "run", "the run r"):
        with pytest.raises(StoreError, match=rf"Process {os.getpid()} on .* is at work on the run r\. Wait until"):
            hold(work, "run", "the run r").__enter__()
        with hold(work, "another", "another run"):
            assert leases_of(work) == ["another.json", "run.json"]
    assert leases_of(work) == []


def test_lease__of_one_that_lives_on_another_machine_is_refused_by_its_signs_of_life(work, monkeypatch):
    with hold(work, "run", "the run"):
        elsewhere(monkeypatch)
        with pytest.raises(StoreError, match="is at work on the run"):
            hold(work, "run", "the run").__enter__()


def test_lease__without_signs_of_life_is_taken(work, monkeypatch):
    dead = lease.Lease(work / "leases", "run.json", "the run")
    assert dead.take()
    elsewhere(monkeypatch)
    with hold(work, "run", "the run") as held:
        held.check()
    assert leases_of(work) == []


def test_lease__whose_file_was_cut_short_is_taken(work):
    (work / "leases").write_bytes("run.json", b"")
    with hold(work, "run", "the run") as held:
        held.check()


def test_lease__of_a_killed_process_is_taken_at_once(tmp_path, monkeypatch):
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


def test_lease__is_ours_though_it_was_not_readable_at_first(work, monkeypatch):
    read, answers = lease.Lease.read, [{"name": "", "beats": 0, "pid": "?", "host": "?", "machine": "?"}]
    monkeypatch.setattr(lease.Lease, "read", lambda self: answers.pop() if answers else read(self))
    with hold(work, "text", "the text", waiting=print) as held:
        held.check()
    assert leases_of(work) == []


def test_lease__that_was_taken_over_is_noticed(work, monkeypatch):
    monkeypatch.setattr(lease, "BEAT", 0.1)  # a beat that is being written would undo what follows
    with hold(work, "run", "the run") as held:
        values = (work / "leases").read_manifest("run.json")
        (work / "leases").write_manifest({**values, "name": "thief", "host": "elsewhere", "pid": 7}, "run.json")
        held._done.wait(0.5)
        with pytest.raises(StoreError, match=r"Process 7 on elsewhere has taken over the run"):
            held.check()
    assert leases_of(work) == ["run.json"], "it is not ours to remove"
