import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from daskw2v import Events, Gates, Notices, Params, Policy, Resources
from daskw2v.cli.config_file import make_inputs, make_settings, read_config, read_table

ROOT = Path(__file__).parents[1]
EDGES = "".join(f"{a} {b}\n" for group in ("abcdefgh", "ABCDEFGH") for a in group for b in group if a < b) + "a A\n"
EVENTS = "user,item,time\n" + "".join(f"{u},{10 * (u % 2) + i},{i}\n" for u in range(60) for i in range(9))


def run(script, *options, code=0, error="Error: "):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, ROOT / "pipelines" / script, *options],
        env=environment,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    if code == 2:
        assert error in done.stderr.splitlines()[-1]
    return [line.split("\t") for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_walks__bring_close_what_is_connected(tmp_path):
    (tmp_path / "edges.txt").write_text(EDGES)
    options = ["--work", tmp_path, "--strings", "--length", "20", "--p", "0.5", "--q", "2", "--similar", "b"]
    (node, *near), (url,) = run("walks.py", tmp_path / "edges.txt", *options)
    assert node == "b"
    assert {word.split()[0] for word in near[:5]} <= set("acdefgh")
    assert Path(url, "manifest.json").exists()


@pytest.mark.slow
def test_walks__say_that_a_node_is_not_there(tmp_path):
    (tmp_path / "edges.txt").write_text(EDGES)
    options = ["--work", tmp_path, "--strings", "--length", "5", "--epochs", "1", "--similar", "nosuch"]
    run("walks.py", tmp_path / "edges.txt", *options, code=2, error="Error: 'nosuch' is not among the 16 words")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--work", "work", "--user", "customer"), "events.csv has no single column 'customer'."),
        pytest.param(("--work", "events.csv"), "cannot be written", marks=pytest.mark.slow),
    ],
)
def test_items__say_what_is_wrong(tmp_path, monkeypatch, options, error):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events.csv").write_text(EVENTS)
    run("items.py", "events.csv", *options, code=2, error=error)


@pytest.mark.slow
def test_train_corpus__says_that_no_scheduler_answers(tmp_path):
    (tmp_path / "text.txt").write_text("a b\n")
    options = ["--work", tmp_path / "work", "--scheduler", "nowhere://1"]
    run("train_corpus.py", tmp_path / "text.txt", *options, code=2, error="Error: No scheduler answers at")


@pytest.mark.slow
def test_items__bring_close_what_is_met_together(tmp_path):
    pytest.importorskip("pandas")
    (tmp_path / "events.csv").write_text(EVENTS)
    options = ["--work", tmp_path, "--session-gap", "5", "--epochs", "20", "--similar", "13"]
    (item, *near), (url,) = run("items.py", tmp_path / "events.csv", *options)
    assert item == "13"
    assert {word.split()[0] for word in near[:5]} <= {str(10 + i) for i in range(9)}
    assert Path(url, "manifest.json").exists()


@pytest.mark.slow
def test_retrain_nightly__publishes_and_exports_and_then_finds_nothing_new(tmp_path):
    (tmp_path / "day0.txt").write_text("".join(f"a{i % 7} b{i % 5} c{i % 3} d{i % 2}\n" for i in range(400)))
    config = tmp_path / "nightly.toml"
    values = {"inputs": [f"{tmp_path}/*.txt"], "work": f"{tmp_path}/work", "workers": 1, "threads": 1, "vector_size": 8}
    config.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items()))
    (published,), (exported,) = run("retrain_nightly.py", config)
    assert published.startswith("published: v0001-")
    assert Path(exported).read_bytes()
    (nothing,) = run("retrain_nightly.py", config, code=3)
    assert nothing[0].startswith("nothing_new: ")


@pytest.mark.slow
def test_retrain_nightly__says_what_lacks_by_the_exit_code_of_a_failure(tmp_path):
    config = tmp_path / "nightly.toml"
    config.write_text('work = "here"\n')
    assert run("retrain_nightly.py", config, code=2) == []


def test_retrain_nightly__has_a_config_that_is_right():
    config = ROOT / "pipelines" / "retrain_nightly.toml"
    values = read_config(config, ("inputs", "work", "policy", "gates", "notices"))
    assert make_settings(Params, values).vector_size == 300
    assert make_settings(Resources, values).eval_analogy
    policy, gates, notices = (
        read_table(cls, values, name, config)
        for name, cls in (("policy", Policy), ("gates", Gates), ("notices", Notices))
    )
    assert (policy, gates.min_score) == (Policy(), {"similarity/ws353": 0.5})
    assert notices.summary.endswith("last-run.json")


def test_items_nightly__has_a_config_that_is_right():
    config = ROOT / "pipelines" / "items_nightly.toml"
    values = read_config(config, ("inputs", "work", "events", "policy", "gates", "notices"))
    events = make_inputs(values["inputs"], values, config)
    assert isinstance(events, Events)
    assert (events.sessions.per, events.sessions.gap, events.sessions.goal) == ("file", "30 min", "bought")
    params = make_settings(Params, values, events.params)
    assert (params.vector_size, params.window, params.shrink_windows) == (64, 100, False)
    assert make_settings(Resources, values).scheduler
    assert read_table(Gates, values, "gates", config) == Gates(min_kept=0.9, max_unknown=0.2)
    assert read_table(Policy, values, "policy", config) == Policy(keep=7)
