"""The benchmark of faults: that it strikes when it should, tells what survived from what did not, and ends in time."""

import random
from dataclasses import replace

import pytest

trials, clusters, faults, flaky, client, main = (
    pytest.importorskip(f"benchmarks.survival.{name}", reason="no benchmarks here: run pytest as python -m pytest")
    for name in ("trial", "cluster", "faults", "flaky", "client", "__main__")
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    environment = {flaky.MOOD: str(folder / "mood"), "PYTHONPATH": str(main.ROOT)}
    with clusters.Cluster(folder, environment) as cluster:
        yield cluster


@pytest.fixture
def trial(cluster, tmp_path):
    text, work = main.write_text(tmp_path / "text.txt", 40_000), tmp_path / "work"
    job = client.Job(str(text), f"flaky://{work}", "", main.STRATEGIES["averaging"], main.RESOURCES)
    return trials.Trial(cluster, job, work, random.Random(0), tmp_path / "mood")


def test_run__begins_again_after_a_kill_and_ends_with_the_same_bits(trial, tmp_path):
    whole = trials.run(trial)
    work = tmp_path / "again"
    again = replace(trial, job=replace(trial.job, work=f"flaky://{work}"), work=work, commands=[])
    struck = trials.run(again, faults.FAULTS["client killed, a file damaged"].strike, trials.Moment("train", 0.3))
    assert (whole.commands, struck.commands, struck.struck) == (1, 2, True)
    assert whole.bits == struck.bits is not None
    assert any(" of " in note for note in again.notes), "the file that was damaged"


def test_run__tells_what_fails(trial, monkeypatch):
    trial.job = replace(trial.job, params={"objective": "none such"})
    monkeypatch.setattr(trials, "TRIES", 2)
    found = trials.run(trial)
    assert (found.bits, found.commands) == (None, 2)
    assert found.said.startswith("failed 2 times: failed ParameterError objective='none such'")


def test_run__ends_at_its_deadline(trial, monkeypatch):
    monkeypatch.setattr(trials, "DEADLINE", 0.2)
    found = trials.run(trial)
    assert (found.bits, found.said[:4]) == (None, "hung")


@pytest.mark.parametrize("mood", flaky.MOODS)
def test_filesystem__is_as_ill_as_it_is_told(tmp_path, monkeypatch, mood):
    monkeypatch.setenv(flaky.MOOD, str(tmp_path / "mood"))
    fs, path = flaky.FlakyFileSystem(), f"flaky://{tmp_path}/store/file"
    fs.pipe_file(path, b"content")
    flaky.set_mood(tmp_path / "mood", mood, 60)
    if mood in flaky.ERRORS or mood == "is stale":  # there was no such file before
        with pytest.raises(type(flaky.ERRORS.get(mood, FileNotFoundError()))):
            fs.cat_file(path)
    elif mood == flaky.FULL:
        with pytest.raises(OSError, match="No space left"):
            fs.pipe_file(path, b"more")
    else:
        assert fs.cat_file(path) == (b"con" if mood == "halves" else b"content")
        assert len(fs.ls(f"{tmp_path}/store")) == (mood == "halves")  # or it is listed late
    flaky.set_mood(tmp_path / "mood", mood, 0)
    assert fs.cat_file(path) == b"content"
