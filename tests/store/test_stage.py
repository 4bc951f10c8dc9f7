"""Results that are built once, whatever interrupts the build: the argument for all stages, proven here."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from daskw2v.errors import StoreError
from daskw2v.progress import message_sender
from daskw2v.store.numbered import NumberedLog
from daskw2v.store.stage import Layout, OpenStage, Stage, groups_exist, keep_only, remove_damaged, run_once
from daskw2v.store.storage import Store

LAYOUT = Layout("sums/<key>/<build>", unused="sums/<key>", remedy="Copy {url}.")
NUMBERS = [1, 2, 3]


def run(step, function, jobs):
    """Run tasks one after the other, the last one first."""
    for name in reversed(list(jobs)):
        yield name, function(*jobs[name])


def square(folder, number):
    """Write a square; a task that ran before does not run again."""
    task = folder / "squares" / str(number)

    def make(place):
        place.write_bytes("square", b"%d" % number**2)
        return {"attempt": place.name}

    made = run_once(task, task.read_manifest, make)
    return int((task / made["attempt"]).read_bytes("square"))


def add(stage):
    """Build the sum of squares: in a folder of its own, with a temporary that is deleted, on tasks that are kept."""
    place = stage.attempt()
    place.write_bytes("temporary", b"x")
    total = sum(stage.map("square", square, [(stage.folder / "tasks", n) for n in NUMBERS]))
    place.write_bytes("sum", b"%d" % total)
    stage.finish({"build": place.name}, [f"{place.name}/sum"])
    return total


def find(folder):
    manifest = folder.read_manifest()
    return None if manifest is None else int((folder / manifest["build"]).read_bytes("sum"))


def make(work, listener=lambda _: None, build=add):
    store = work if isinstance(work, Store) else Store(str(work))
    folder = store / LAYOUT.folder / "key"
    return Stage(store, folder, lambda: run, listener, "add").make(lambda: find(folder), build)


def files_of(work):
    """Return the paths of all files, without leases."""
    paths = (path.relative_to(work) for path in Path(work).rglob("*") if path.is_file())
    return sorted(str(path) for path in paths if path.parts[0] != "leases")


class Killed(BaseException):
    """As if the process had been killed."""


CALLS = ("write_bytes", "read_bytes", "create_manifest", "children", "remove")


def dying(patch, number, *, after):
    """Let the process die before or after a call of a store, or not at all; return the list of all calls."""
    calls = []

    def wrap(name):
        call = getattr(Store, name)

        def wrapped(self, *args, **options):
            if len(calls) > number:
                raise Killed  # a dead process calls nothing
            calls.append(name)
            if len(calls) > number and not after:
                raise Killed
            result = call(self, *args, **options)
            if len(calls) > number:
                raise Killed
            return result

        patch.setattr(Store, name, wrapped)

    for name in CALLS:
        wrap(name)
    return calls


def count_calls(work):
    with pytest.MonkeyPatch.context() as patch:
        calls = dying(patch, 10**6, after=False)
        make(work)
    assert set(calls) == set(CALLS)
    return len(calls)


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_stage__killed_at_any_call_of_the_store_ends_the_same(tmp_path, after):
    make(tmp_path / "whole")
    whole = files_of(tmp_path / "whole")
    for number in range(count_calls(tmp_path / "counted")):
        work = tmp_path / str(number)
        with pytest.MonkeyPatch.context() as patch:
            dying(patch, number, after=after)
            with pytest.raises(Killed):
                make(work)
        shutil.rmtree(work / "leases", ignore_errors=True)  # a dead process' lease is free: see test_lease
        assert make(work) == 14
        left = files_of(work)
        assert len(left) == len(whole) == 2, (number, left)
        assert left[-1] == whole[-1] == "sums/key/manifest.json"
        assert left[0].endswith("/sum")


def test_stage__that_is_done_is_neither_built_nor_locked_again(tmp_path, monkeypatch):
    assert make(tmp_path) == 14
    monkeypatch.setattr("daskw2v.store.stage.hold", None)
    assert make(tmp_path, build=None) == 14


def test_stage__asks_for_what_runs_tasks_before_it_takes_the_lease_and_only_to_build(tmp_path):
    work, locked = Store(str(tmp_path)), []

    def runner():
        locked.append((tmp_path / "leases").exists())
        return run

    stage = Stage(work, work / "sums" / "key", runner, lambda _: None, "add")
    assert [stage.make(lambda: find(stage.folder), add) for _ in range(2)] == [14, 14]
    assert locked == [False]


def test_stage__leaves_nothing_else_on_an_object_store(s3):
    work = Store("s3://bucket/stage", s3)
    folder = work / "sums" / "key"
    (folder / "interrupted").write_bytes("data", b"1")
    assert make(work) == make(work, build=None) == 14
    build = folder.read_manifest()["build"]
    assert folder.children() == sorted([build, "manifest.json"])
    assert (folder / build).children() == ["sum"]
    assert (work / "leases").children() == ["key", "probe"]
    assert len((work / "leases" / "key").children()) == 1


HOLDER = """
import sys
from tests.store import test_stage as stages
def build(stage):
    print("holds", flush=True)
    sys.stdin.readline()
    return stages.add(stage)
stages.make(sys.argv[1], build=build)
"""


def test_stage__waits_for_another_process_and_takes_its_result(tmp_path):
    root, reports = Path(__file__).parents[2], []
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    other = subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "holds\n"

    def listen(progress):
        reports.append(progress.message)
        other.stdin.write("go on\n")
        other.stdin.flush()

    assert make(tmp_path, listen, build=None) == 14
    assert len(reports) == 1
    assert reports[0].startswith(f"waiting for Process {other.pid} on ")
    other.communicate()
    assert other.returncode == 0


@pytest.mark.parametrize("moment", ["attempt", "map", "keep", "write", "finish"])
def test_stage__that_lost_its_lease_deletes_and_publishes_nothing(tmp_path, monkeypatch, moment):
    """At the write itself: no sign of life, and no progress, comes before."""
    monkeypatch.setattr("daskw2v.store.lease.BEAT", 1e9 if moment != "map" else 0.01)
    log, before = NumberedLog(Store(str(tmp_path)) / "leases" / "key"), []

    def build(stage):
        place = stage.attempt()
        place.write_bytes("temporary", b"x")
        assert log.append(2, {"host": "elsewhere", "machine": "other", "beats": 1, "pid": 7})
        before.extend(files_of(tmp_path))
        match moment:
            case "attempt":
                stage.attempt()
            case "map":
                while True:  # until a sign of life finds it
                    stage.map("square", lambda n: n, [(1,)])
            case "keep":
                stage.keep_only({"": []})
            case "write":
                place.write_bytes("another", b"x")
            case "finish":
                stage.finish({"build": place.name}, [])

    with pytest.raises(StoreError, match=r"Process 7 on elsewhere has taken over .*/sums/key"):
        make(tmp_path, build=build)
    assert files_of(tmp_path) == before


def test_attempt__deletes_what_no_manifest_names(tmp_path):
    folder = Store(str(tmp_path))
    for name in ("named", "interrupted"):
        (folder / name).write_bytes("data", b"1")
    folder.write_manifest({"build": "named"})
    place = OpenStage(folder, run).attempt()
    assert folder.children() == ["manifest.json", "named"]
    place.write_bytes("data", b"2")
    OpenStage(folder, run).finish({"build": place.name}, [place.name])
    assert folder.children() == sorted(["manifest.json", place.name])


def test_map__returns_results_in_order_and_reports_progress(tmp_path):
    reports = []
    stage = OpenStage(Store(str(tmp_path)), run, reports.append, "add")
    stage.expect(5, 1, "three numbers")
    assert stage.map("negate", lambda n: -n, [(n,) for n in NUMBERS]) == [-1, -2, -3]
    assert stage.map("again", lambda n: n, [(7,), (8,)], size=1) == [7, 8]
    assert [(p.stage, p.done, p.total, p.unit) for p in reports] == [
        ("add", done, 5, "tasks") for done in (1, 2, 3, 4, 4.5, 5)
    ]
    assert [p.message for p in reports[:3]] == ["three numbers", "negate: 1 of 3 tasks", "negate: 2 of 3 tasks"]


def test_stages__of_two_keys_are_built_side_by_side_but_one_thread_builds_each_once(tmp_path):
    work = Store(str(tmp_path))

    def stage(key):
        return Stage(work, work / "sums" / key, lambda: run, message_sender(lambda _: None, "add", "tasks"), "add")

    def nested(_):
        assert stage("b").make(lambda: None, lambda opened: opened.folder.name) == "b"
        return stage("a").make(lambda: None, lambda opened: "twice")

    with pytest.raises(StoreError, match="own already"):
        stage("a").make(lambda: None, nested)


def test_run_once__takes_what_another_run_of_the_task_left_meanwhile(tmp_path):
    folder = Store(str(tmp_path))

    def make(place):
        folder.write_manifest({"attempt": "theirs"})
        return {"attempt": place.name}

    assert run_once(folder, folder.read_manifest, make)["attempt"] == "theirs"
    assert run_once(folder, folder.read_manifest, None)["attempt"] == "theirs"


def test_keep_only__deletes_the_others_in_the_folders_that_it_is_given(tmp_path):
    store = Store(str(tmp_path))
    for name in ("a/1", "a/2", "b/1", "c/1"):
        (store / name).write_bytes("data", b"1")
    keep_only(store, {"a": {"2"}, "b": (), "gone": ()})
    assert [(name, (store / name).children()) for name in "abc"] == [("a", ["2"]), ("b", []), ("c", ["1"])]


def test_groups_exist__looks_at_every_path(tmp_path):
    store = Store(str(tmp_path))
    (store / "a").create_group()
    assert groups_exist(store, [])
    assert groups_exist(store, ["a", "a"])
    assert not groups_exist(store, ["a", "b"])


@pytest.mark.parametrize(
    ("path", "damaged", "unused"),
    [
        ("sums/k/b/matrix/c/0", "sums/k/b", "sums/k"),
        ("sums/k/manifest.json", "sums/k/manifest.json", "sums/k"),
        ("sums/k", None, "sums/k"),
        ("other/k/b", None, None),
    ],
)
def test_layout__names_what_is_deleted_together(path, damaged, unused):
    assert (LAYOUT.damaged_part(path), LAYOUT.unused_part(path)) == (damaged, unused)
    assert Layout("a/<b>/c/<d>").damaged_part("a/x/e/y") is None
    assert Layout("a/<b>").unused_part(path) is None


def test_remove_damaged__keeps_a_manifest_that_is_whole(tmp_path):
    work = Store(str(tmp_path))
    (work / "sums" / "k").write_bytes("manifest.json", b"{")
    remove_damaged(work, "sums/k/manifest.json")
    assert (work / "sums" / "k").children() == []
    (work / "sums" / "k").write_manifest({"a": 1})
    remove_damaged(work, "sums/k/manifest.json")
    assert (work / "sums" / "k").children() == ["manifest.json"]


def test_groups_exist__asks_for_some_at_a_time(tmp_path, monkeypatch):
    """A manifest may name a hundred thousand that are not there."""
    asked = []
    monkeypatch.setattr(Store, "read_bytes", lambda store, name: asked.append(store))
    assert not groups_exist(Store(str(tmp_path)), [str(n) for n in range(10_000)])
    assert len(asked) < 1000
