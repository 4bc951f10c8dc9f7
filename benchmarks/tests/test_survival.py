"""The benchmark of faults: that it strikes when it should, tells what survived from what did not, and ends in time."""

import random
import subprocess
import sys
import time

import pytest

trials, clusters, faults, flaky, main = (
    pytest.importorskip(f"benchmarks.survival.{name}", reason="no benchmarks here: run pytest as python -m pytest")
    for name in ("trial", "cluster", "faults", "flaky", "__main__")
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    environment = {flaky.MOOD: str(folder / "mood"), "PYTHONPATH": str(main.ROOT)}
    with clusters.Cluster(folder, environment=environment) as cluster:
        yield cluster


@pytest.fixture
def trial(cluster, tmp_path):
    text = main.write_text(tmp_path / "text.txt", 40_000)
    return trials.Trial(
        cluster, str(text), tmp_path / "work", f"flaky://{tmp_path / 'work'}", main.STRATEGIES["averaging"],
        main.RESOURCES, random.Random(0), tmp_path / "mood",
    )  # fmt: skip


def test_run__begins_again_after_a_kill_and_ends_with_the_same_bits(trial, tmp_path):
    whole = trials.run(trial)
    trial.work, trial.url = tmp_path / "again", f"flaky://{tmp_path / 'again'}"
    struck = trials.run(trial, faults.FAULTS["client killed, a file damaged"].strike, trials.Moment("train", 0.3))
    assert (whole.commands, struck.commands, struck.struck) == (1, 2, True)
    assert whole.digest == struck.digest is not None
    assert any(" of " in note for note in trial.notes), "the file that was damaged"


def test_run__tells_what_fails(trial, monkeypatch):
    trial.params = {"objective": "none such"}
    monkeypatch.setattr(trials, "TRIES", 2)
    found = trials.run(trial)
    assert (found.digest, found.commands) == (None, 2)
    assert found.said.startswith("failed 2 times: failed ParameterError objective='none such'")


def test_run__ends_at_its_deadline(trial, monkeypatch):
    monkeypatch.setattr(trials, "DEADLINE", 0.2)
    found = trials.run(trial)
    assert (found.digest, found.said[:4]) == (None, "hung")


@pytest.mark.parametrize("mood", flaky.MOODS)
def test_filesystem__is_as_ill_as_it_is_told(tmp_path, monkeypatch, mood):
    monkeypatch.setenv(flaky.MOOD, str(tmp_path / "mood"))
    monkeypatch.setattr(flaky, "STALL", 0.2)
    monkeypatch.setattr(flaky, "SLOW", 0.2)
    fs, path = flaky.FlakyFileSystem(), f"flaky://{tmp_path}/file"
    fs.pipe_file(path, b"content")
    assert fs.cat_file(path) == b"content"
    flaky.set_mood(tmp_path / "mood", mood, 60, 1.0)
    began = time.monotonic()
    if mood in flaky.ERRORS:
        with pytest.raises(type(flaky.ERRORS[mood])):
            fs.cat_file(path)
    elif mood == "is stale":
        with pytest.raises(FileNotFoundError):  # there was no such file before
            fs.cat_file(path)
    else:
        assert fs.cat_file(path) == (b"con" if mood == "halves" else b"content")
    assert (time.monotonic() - began >= 0.2) == (mood in ("stalls", "is slow"))
    flaky.set_mood(tmp_path / "mood", mood, 0, 1.0)
    assert fs.cat_file(path) == b"content"


def test_clock__is_that_of_dask_too(tmp_path, monkeypatch):
    monkeypatch.setenv(flaky.MOOD, str(tmp_path / "mood"))
    flaky.set_mood(tmp_path / "mood", flaky.CLOCK, 60, offset=-86_400)
    asked = (
        "import time, distributed.metrics; from benchmarks.survival import flaky; flaky.register(); "
        "print(time.time(), distributed.metrics.time())"
    )
    said = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True, cwd=main.ROOT)
    assert [float(told) for told in said.stdout.split()] == pytest.approx([time.time() - 86_400] * 2, abs=60)


def test_table__counts_what_was_struck(capsys):
    lines = {("a", "b"): main.Line(3, 2, 1, [1.0, 5.0, 2.0]), ("c", "d"): main.Line(0, 0, 4)}
    main.table(lines)
    out = capsys.readouterr().out
    assert "| a | b | 3 | 2 | 2.0 | 5.0 |" in out
    assert "| all | | 3 | 2 | | |" in out
    assert "| c |" not in out
