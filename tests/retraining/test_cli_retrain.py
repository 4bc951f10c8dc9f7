"""`daskw2v retrain`: what a file and the command line say, what is printed, and the exit codes schedulers go by."""

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from daskw2v import EdgeList, Events, Gates, Graph, Notices, Policy, Sessions, Walks
from daskw2v.cli import retraining
from daskw2v.errors import TrainingError
from daskw2v.retraining.outcome import Outcome, Summary
from tests.support.command_line import invoke

CONFIG = """
inputs = ["text/*.txt"]
work = "here"
vector_size = 12
threads = 1

[policy]
text = "new"
keep = 3

[gates]
max_drop = 0.2
[gates.min_score]
"similarity/ws" = 0.5

[notices]
summary = "/tmp/last.json"
"""


@pytest.fixture(autouse=True)
def handler():
    """Keep the handler of SIGTERM, which the command sets."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def calls(monkeypatch):
    """Replace what retrains: it comes to `calls["outcome"]`."""
    seen = {"outcome": Outcome.PUBLISHED}

    def retrain(inputs, **given):
        seen.update(given, inputs=inputs)
        return Summary(
            outcome=seen["outcome"],
            work="here",
            message="It is so.",
            started=datetime(2026, 1, 1, tzinfo=UTC),
            seconds=1.5,
            version="v0002-a",
            served="v0002-a",
            figures={"words": 1234.0},
        )

    monkeypatch.setattr(retraining, "retrain", retrain)
    return seen


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "retrain.toml"
    path.write_text(CONFIG)
    return path


def run(*args, **env):
    return invoke("retrain", *args, env=env)


def test_config__says_all(calls, config):
    result = run("--config", config)
    assert result.exit_code == 0, result.output
    assert (calls["inputs"], calls["work"], calls["full"]) == (["text/*.txt"], "here", False)
    assert (calls["params"].vector_size, calls["resources"].threads) == (12, 1)
    assert calls["policy"] == Policy(text="new", keep=3)
    assert calls["gates"] == Gates(max_drop=0.2, min_score={"similarity/ws": 0.5})
    assert calls["notices"] == Notices(summary="/tmp/last.json")


def test_command_line__wins_over_environment_and_file(calls, config):
    run("a.txt", "b.txt", "--work", "there", "--full", "--config", config, DASKW2V_VECTOR_SIZE="9")
    assert (calls["inputs"], calls["work"], calls["full"]) == (["a.txt", "b.txt"], "there", True)
    assert calls["params"].vector_size == 9


def test_without_config__defaults_hold(calls):
    assert run("a.txt", "--work", "there").exit_code == 0
    assert (calls["policy"], calls["gates"], calls["notices"]) == (Policy(), Gates(), Notices())


def test_config__makes_inputs_events(calls, tmp_path):
    path = tmp_path / "items.toml"
    path.write_text('inputs = ["a.parquet"]\nwork = "w"\nvector_size = 9\n[events]\ngap = 30\nper = "file"\n')
    assert run("--config", path, "--epochs", "2").exit_code == 0
    assert calls["inputs"] == Events(["a.parquet"], Sessions(gap="30", per="file"))
    assert calls["params"] == Events.params.replace(vector_size=9, epochs=2)
    run("b.parquet", "--config", path)
    assert calls["inputs"].inputs == ["b.parquet"]


def test_config__makes_inputs_a_graph(calls, tmp_path):
    path = tmp_path / "nodes.toml"
    path.write_text('inputs = ["a.parquet"]\nwork = "w"\n[graph]\ndirected = true\n[walks]\nlength = 9\n')
    assert run("--config", path, "--epochs", "2").exit_code == 0
    assert calls["inputs"] == Graph(["a.parquet"], EdgeList(directed=True), Walks(length=9))
    assert calls["params"] == Graph.params.replace(epochs=2)


def test_webhook__comes_from_the_environment_and_is_never_shown(calls, config):
    result = run("--config", config, DASKW2V_WEBHOOK="https://hooks.example/secret")
    assert calls["notices"].webhook == "https://hooks.example/secret"
    assert calls["notices"].summary == "/tmp/last.json"
    assert "secret" not in result.output
    bad = run("--config", config, DASKW2V_WEBHOOK="ftp://secret")
    assert bad.exit_code == 2
    assert "webhook" in bad.output
    assert "secret" not in bad.output.replace("may hold secrets", "")


@pytest.mark.parametrize("outcome", list(Outcome))
def test_exit_code__is_the_outcome(calls, outcome):
    calls["outcome"] = outcome
    result = run("a.txt", "--work", "w")
    assert result.exit_code == outcome.value
    assert result.stdout.splitlines()[-1].split() == ["outcome", f"{outcome.label}:", "It", "is", "so."]
    assert "1,234" in result.stdout


def test_json__is_the_summary(calls):
    assert json.loads(run("a.txt", "--work", "w", "--json").stdout)["figures"] == {"words": 1234.0}


def test_error__leaves_with_2(calls, monkeypatch):
    def diverge(*_, **__):
        raise TrainingError("It diverged.", "Lower alpha.")

    monkeypatch.setattr(retraining, "retrain", diverge)
    result = run("a.txt", "--work", "w")
    assert result.exit_code == Outcome.FAILED.value
    assert "Error: It diverged. Lower alpha." in result.stderr


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("work = 'w'", "There is no inputs. Give INPUT"),
        ("inputs = ['a']", "There is no work. Give --work"),
        ("inputs = ['a']\nwork = 'w'\npolicies = 1", "sets policies, which is not a parameter"),
        ("inputs = ['a']\nwork = 'w'\npolicy = 'new'", "sets policy, which is a table. Write [policy]"),
        ("inputs = ['a']\nwork = 'w'\n[gates]\nmin_scores = 1", "[gates] of"),
        ("inputs = ['a']\nwork = 'w'\n[events]\nusers = 'u'", "[events] of"),
        ("inputs = ['a']\nwork = 'w'\n[events]\nper = 'day'", "per='day' is not one of file, folder or None"),
        ("inputs = ['a']\nwork = 'w'\n[walks]\nlength = 9", "has a table [walks], but no table [graph]"),
        ("inputs = ['a']\nwork = 'w'\n[events]\n[graph]", "has tables [events] and [graph]"),
        ("inputs = ['a']\nwork = 'w'\n[policy]\nkeep = 0", "keep=0 is not an integer >= 2"),
        ("inputs = ['a']\nwork = 'w'\n[gates]\nmin_score = 0.5", "min_score=0.5 is not a mapping"),
    ],
)
def test_config__that_is_wrong_is_refused(calls, tmp_path, text, problem):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    result = run("--config", path)
    assert result.exit_code == 2
    assert problem in result.stderr
    assert "inputs" not in calls


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_sigterm__leaves_in_order(tmp_path):
    """The lease is released, so that the next run, wherever it is, need not wait for it to expire."""
    (tmp_path / "a.txt").write_text("\n".join(f"w{i % 97} w{i % 89} w{i % 83}" for i in range(20_000)))
    command = [
        sys.executable,
        "-m",
        "daskw2v",
        "retrain",
        "a.txt",
        "--work",
        "work",
        "--workers",
        "1",
        "--epochs",
        "10000",
    ]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env=os.environ)
    for line in process.stderr:
        if line.startswith("train"):
            break
    leases = tmp_path / "work" / "leases"
    assert (leases / "retrain" / "00000001.json").exists()
    process.terminate()
    process.stderr.close()
    assert process.wait(60) == 143
    assert all("released" in file.read_text() for file in leases.rglob("*.json"))
    assert {file.parent.name for file in leases.rglob("*.json")} >= {"retrain"}
