"""A session on a machine with a GPU, without one: how pieces run and end; and a dry run of each."""

import argparse
import io
import os
import subprocess
import sys
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

gpu, pieces, running, checks, tables, harness, records = (
    pytest.importorskip(f"benchmarks.{name}", reason="no benchmarks here: run pytest as python -m pytest")
    for name in ("gpu.__main__", "gpu.pieces", "gpu.running", "gpu.checks", "tables", "harness", "records")
)
ROOT = Path(__file__).parents[2]
ROWS = """
import sys, time
from pathlib import Path
from benchmarks.tables import Spread, Table, keeper
table = Table("numbers", ("one",), sys.stdout, ".1f", keep=keeper(Path(sys.argv[1])))
table.row("first", Spread(2.0, 1.0, 3.0))
"""


@pytest.fixture
def results(tmp_path):
    return running.Results(tmp_path / "results")


def run_code(results, code, seconds=60.0, name="speed"):
    command = ["-c", ROWS + code, str(results.path(name, "rows"))]
    return running.run_piece(pieces.PIECES[name], command, dict(os.environ), results, seconds)


@pytest.mark.parametrize(("code", "state"), [("", "done"), ("sys.exit(3)", "failed"), ("1 / 0", "failed")])
def test_piece__tells_how_it_ended_and_keeps_its_rows(results, code, state):
    ended = run_code(results, code)
    assert (ended.state, results.ended("speed").state) == (state, state)
    assert [(row["name"], row["cells"]["one"]) for row in results.rows("speed")] == [("first", [2.0, 1.0, 3.0])]
    assert ("ZeroDivisionError" in results.path("speed", "log").read_text()) == ("/" in code)


def test_piece__is_stopped_at_its_limit_with_all_that_it_started(results, tmp_path):
    pid = tmp_path / "pid"
    child = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    started = f"""
import subprocess
subprocess.Popen([sys.executable, "-c", {child!r}])
while not Path({str(pid)!r}).exists() or not Path({str(pid)!r}).read_text():
    time.sleep(0.05)
table.row("second", 5)
time.sleep(600)
"""
    ended = run_code(results, started, seconds=10.0)
    assert ended.state == "cut"
    assert len(results.rows("speed")) == 2
    for _ in range(100):
        try:
            os.kill(int(pid.read_text()), 0)
        except ProcessLookupError:
            break
        if "zombie" in Path(f"/proc/{pid.read_text()}/status").read_text():
            break
        time.sleep(0.1)
    else:
        pytest.fail("what the piece started goes on")


def test_next_pieces__are_untried_ones_first_and_then_those_without_an_end(results):
    several = [pieces.PIECES[name] for name in ("machine", "tests", "correctness", "speed", "quality")]
    for name, state in (("machine", "cut"), ("tests", "done"), ("correctness", "failed"), ("speed", "broken off")):
        results.write(running.Ended(name, state))
    found = running.next_pieces(several, results, again=False)
    assert [piece.name for piece in found] == ["quality", "machine", "speed"]
    assert running.next_pieces(several, results, again=True) == several


def test_summary__has_the_last_row_of_each_name_as_it_was_measured_and_no_half_line(results, tmp_path):
    results.write(running.Ended("speed", "cut", 12.0))
    keep = tables.keeper(results.path("speed", "rows"))
    for value in (1.0, 2.0):
        keep(tables.Row("words/s", "sgns", {"kernel": tables.Spread(value, 0.5, 3.0), "task": None}), ".1f")
    with results.path("speed", "rows").open("a") as out:
        out.write('{"table": "wor')
    session = harness.Session(argparse.Namespace(), tmp_path, io.StringIO())
    gpu.summarize(session, [pieces.PIECES[name] for name in ("machine", "speed")], pieces.measured(), results)
    ended, speed = session.tables
    assert [row.cells["state"] for row in ended.rows] == ["not tried", "cut"]
    assert speed.as_dict()["rows"] == {"sgns": [tables.Spread(2.0, 0.5, 3.0), None]}
    assert "| sgns | 2.0 (0.5..3.0) |  |" in session.out.getvalue()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("tests/contracts/test_cuda.py::test_it[gpu-on_cuda] PASSED [ 25%]", ("[gpu-on_cuda]", "passed")),
        ("[gw1] [ 50%] FAILED tests/contracts/test_cuda.py::test_it[gpu-on_cuda] ", ("[gpu-on_cuda]", "failed")),
        ("tests/a/test_b.py::test_c SKIPPED (no GPU)    [100%]", ("test_c", "skipped")),
        ("tests/a/test_b.py::test_c ", ("", "")),
        ("FAILED tests/a/test_b.py::test_c - AssertionError", ("", "")),
    ],
)
def test_outcomes__are_read_from_pytest(line, found):
    name, outcome = checks.outcome_of(line)
    assert (name.endswith(found[0]), outcome) == (True, found[1])


@pytest.mark.parametrize(
    ("code", "text", "found"),
    [
        (0, "========= ERROR SUMMARY: 0 errors", 0),
        (9, "========= ERROR SUMMARY: 12 errors", 12),
        (9, "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)", 1),
        (0, "========= RACECHECK SUMMARY: 2 hazards displayed (0 errors, 2 warnings)", 2),
        (1, "========= ERROR SUMMARY: 0 errors", "failed with exit code 1"),
        (255, "========= Error: Device not supported", "failed with exit code 255"),
    ],
)
def test_errors__are_those_that_compute_sanitizer_sums_up(code, text, found):
    assert checks.found_by(code, text) == found


def test_sanitizer__that_is_not_there_is_nothing_measured(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    session = harness.Session(checks.BENCHMARK.parse(["memcheck"]), tmp_path, io.StringIO())
    assert not checks.sanitized(session)
    assert "no compute-sanitizer" in session.out.getvalue()


def test_tests__are_those_files_that_have_some_for_a_gpu():
    assert "tests/contracts/test_cuda.py" in checks.files_of_tests()
    assert "tests/training/test_train.py" not in checks.files_of_tests()


def test_pieces__fit_into_a_command_of_ten_minutes_and_into_an_hour():
    assert all(0 < piece.usual <= piece.most <= pieces.MOST < 600 for piece in pieces.PIECES.values())
    assert sum(piece.usual for piece in pieces.PIECES.values()) <= 60 * 60
    never = [name for name, days in pieces.measured().items() if not days]
    assert sum(pieces.PIECES[name].usual for name in never) <= 40 * 60


def test_order__begins_with_what_no_record_has_and_ends_with_what_most_have(monkeypatch, tmp_path):
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    assert pieces.in_order(pieces.measured()) == list(pieces.PIECES.values())
    session = harness.Session(argparse.Namespace(seeds=None), tmp_path, io.StringIO())
    results = running.Results(tmp_path / "results")
    for name, state in (("machine", "done"), ("trainings", "done"), ("batching", "cut")):
        results.write(running.Ended(name, state))
    gpu.summarize(session, list(pieces.PIECES.values()), pieces.measured(), results)
    record = gpu.BENCHMARK.record(session, harness.this_machine(), "0123456789")
    for name in ("a", "b"):
        record.write(name)
    days = pieces.measured()
    assert {name for name, several in days.items() if several == 2 * [record.date]} == {"machine", "trainings"}
    order = [piece.name for piece in pieces.in_order(days)]
    assert order[:2] == ["tests_new", "batching"]
    assert order[-2:] == ["machine", "trainings"]


def test_slice__has_what_its_minutes_have_room_for(results, tmp_path):
    options = argparse.Namespace(dry_run=False, again=False, minutes=1.0)
    out = io.StringIO()
    gpu.run(harness.Session(options, tmp_path, out), [pieces.PIECES[n] for n in ("speed", "machine", "tests")], results)
    assert [results.ended(name).state for name in ("speed", "tests")] == ["not tried"] * 2
    assert results.ended("machine").state in ("done", "failed"), "it fails where there is no GPU"
    assert {row["name"] for row in results.rows("machine")} > {"machine", "text"}
    assert "speed: usually takes 240 s" in out.getvalue()


def test_session__wants_a_gpu(tmp_path):
    try:
        import_module("daskw2v.kernels.cuda").check_gpu()
    except import_module("daskw2v.errors").Daskw2vError:
        command = [sys.executable, "-m", "benchmarks.gpu", "--results", str(tmp_path / "results")]
        result = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)
        assert result.returncode == 1
        assert "cuda" in result.stderr
        assert not (tmp_path / "results").exists(), "nothing was tried, so that all of it still will be"
    else:
        pytest.skip("there is one")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", pieces.PIECES)
def test_piece__goes_through_all_of_its_lines_without_a_gpu(results, name):
    """So that nothing of an hour on a GPU is lost to a typing error."""
    if find_spec("numba_cuda") is None:
        pytest.skip("numba-cuda comes with daskw2v[cuda]")
    command = [sys.executable, "-m", "benchmarks.gpu", "--dry-run", "--pieces", name, "--results", str(results.folder)]
    result = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)
    log = results.path(name, "log").read_text()
    assert result.returncode == 0, log + result.stdout + result.stderr
    assert "Traceback" not in log
    assert results.path(name, "rows").read_text()
    assert results.ended(name).state == "done"
    if name == "correctness":  # what is done is not done again
        result = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=True)
        assert "at most" not in result.stdout.partition("**Pieces**")[0]
