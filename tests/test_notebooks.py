"""Every notebook runs from its first cell to its last, as a script; what it claims, it asserts."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "pipelines" / "notebooks").glob("*.py"))
NEEDED = {"gensim": "gensim", "moto": "moto[server]", "pandas": "pandas", "s3fs": "s3fs"}


def test_notebooks__are_all_on_the_page_of_pipelines_and_on_the_site():
    page = (ROOT / "pipelines" / "README.md").read_text(encoding="utf-8")
    index = (ROOT / "pipelines" / "docs" / "index.md").read_text(encoding="utf-8")
    assert NOTEBOOKS
    for path in NOTEBOOKS:
        assert page.count(f"(notebooks/{path.name})") == 1
        assert f"(pipelines/notebooks/{path.stem}.ipynb)" in index


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook__is_a_lesson(path):
    """It begins with a title, explains before it shows, and says by an assert what must come out."""
    cells = re.split(r"^# %%", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    explained = [cell.startswith(" [markdown]") for cell in cells]
    assert cells[0].startswith(" [markdown]\n# # ")
    assert sum(explained) >= len(cells) / 3
    assert re.search(r"^ *assert ", "".join(cells), flags=re.MULTILINE)
    assert "benchmarks" not in re.findall(r"^ *(?:from|import) (\w+)", "".join(cells), flags=re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook__runs(path, tmp_path):
    text = path.read_text(encoding="utf-8")
    imported = set(re.findall(r"^ *(?:from|import) (\w+)", text, flags=re.MULTILINE))
    for module in imported & NEEDED.keys():
        pytest.importorskip(module, reason=f"the notebook needs {NEEDED[module]}")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, path], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=290, check=False
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []  # it cleans up what it wrote
