import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EDGES = "".join(f"{a} {b}\n" for group in ("abcdefgh", "ABCDEFGH") for a in group for b in group if a < b) + "a A\n"
EVENTS = "user,item,time\n" + "".join(f"{u},{10 * (u % 2) + i},{i}\n" for u in range(60) for i in range(9))


def run(script, *options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, ROOT / "pipelines" / script, *options],
        env=environment, capture_output=True, text=True, timeout=250, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_walks__bring_close_what_is_connected(tmp_path):
    (tmp_path / "edges.txt").write_text(EDGES)
    options = ["--work", tmp_path, "--strings", "--length", "20", "--p", "0.5", "--q", "2", "--similar", "b"]
    (node, *near), (url,) = run("walks.py", tmp_path / "edges.txt", *options)
    assert node == "b"
    assert {word.split()[0] for word in near[:5]} <= set("acdefgh")
    assert Path(url, "manifest.json").exists()


def test_items__bring_close_what_is_met_together(tmp_path):
    pytest.importorskip("pandas")
    (tmp_path / "events.csv").write_text(EVENTS)
    options = ["--work", tmp_path, "--session-gap", "5", "--epochs", "20", "--similar", "13"]
    (item, *near), (url,) = run("items.py", tmp_path / "events.csv", *options)
    assert item == "13"
    assert {word.split()[0] for word in near[:5]} <= {str(10 + i) for i in range(9)}
    assert Path(url, "manifest.json").exists()
