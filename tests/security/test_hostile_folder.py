"""Commands in a folder of a stranger's data: no module that lies there is imported."""

import os
import shutil
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import daskw2v
from daskw2v.corpus.tokenizers import is_import_path

TEXT = "the quick brown fox jumps over the lazy dog\n" * 20
ARGUMENTS = [
    "text.txt", "--work", "work", "--vector-size", "4", "--min-count", "1", "--epochs", "1", "--sample", "0",
    "--workers", "1", "--threads", "1",
]  # fmt: skip
# What -m itself imports from the current directory, before any of our lines runs: only -P keeps that out
_OF_RUNPY = {"daskw2v", "runpy", "pkgutil", "contextlib", "collections", "functools", "types", "typing"}


@pytest.fixture
def folder(tmp_path):
    """A folder with text, and a module for each name that can be imported, which says that it was."""
    (tmp_path / "text.txt").write_text(TEXT)
    installed = {name.partition(".")[0] for name in packages_distributions()}
    optional = {"zstandard", "cupy", "torch", "umap", "ipywidgets", "gensim", "uvloop", "lz4", "snappy", "asyncssh"}
    for name in installed | optional | sys.stdlib_module_names | {"daskw2v", "sitecustomize", "usercustomize"}:
        if name.isidentifier():
            code = f"open({str(tmp_path / 'imported')!r}, 'a').write({name!r} + chr(10))\nraise ImportError({name!r})\n"
            (tmp_path / f"{name}.py").write_text(code)
    return tmp_path


def environment():
    """Return an environment in which the package is found, as if it were installed."""
    root = str(Path(daskw2v.__file__).parents[1])
    return {**{k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH"}, "PYTHONPATH": root}


def run(folder, *line):
    return subprocess.run(line, cwd=folder, env=environment(), capture_output=True, text=True, timeout=240)


def imported(folder):
    return set((folder / "imported").read_text().split()) if (folder / "imported").exists() else set()


@pytest.fixture
def program(tmp_path_factory):
    """The program as pip installs it."""
    path = tmp_path_factory.mktemp("bin") / "daskw2v"
    path.write_text("import sys\nfrom daskw2v.cli import run\nif __name__ == '__main__':\n    sys.exit(run())\n")
    return [sys.executable, str(path)]


@pytest.mark.slow
def test_program__imports_nothing_from_the_current_directory(folder, program):
    done = run(folder, *program, "info", "work")
    assert done.returncode == 2, done.stderr
    assert "There is no model at" in done.stderr
    assert imported(folder) == set()


@pytest.mark.slow
def test_training__imports_nothing_from_the_current_directory_and_nor_do_its_workers(folder, program):
    done = run(folder, *program, "train", *ARGUMENTS)
    assert done.returncode == 0, done.stderr
    assert imported(folder) == set()


@pytest.mark.slow
def test_tokenizer__of_the_current_directory_is_found_and_takes_the_place_of_nothing(folder, program):
    mine = folder / "my_words.py"
    mine.write_text("def cut(lines):\n    return [line.split() for line in lines]\n")
    for name in ("click", "jinja2", "numpy", "dask", "json", "socket", "multiprocessing"):
        assert (folder / f"{name}.py").exists()
    for path in folder.glob("*.py"):  # what is not installed would be found here: that is what the tokenizer asks for
        if path != mine and path.stem not in {"click", "jinja2", "numpy", "dask", "json", "socket", "multiprocessing"}:
            path.unlink()
    done = run(folder, *program, "train", *ARGUMENTS, "--tokenizer", "my_words:cut")
    assert done.returncode == 0, done.stderr
    assert imported(folder) == set()


def test_module__imports_nothing_of_ours_from_the_current_directory(folder):
    for name in _OF_RUNPY:
        (folder / f"{name}.py").unlink(missing_ok=True)
    done = run(folder, sys.executable, "-m", "daskw2v", "info", "work")
    assert "There is no model at" in done.stderr
    assert not imported(folder) & {"click", "jinja2", "zarr", "numpy", "fsspec", "rich", "zstandard"}


@pytest.mark.slow
def test_module__with_a_safe_path_imports_nothing_from_the_current_directory(folder):
    done = run(folder, sys.executable, "-P", "-m", "daskw2v", "info", "work")
    assert "There is no model at" in done.stderr
    assert imported(folder) == set()


@pytest.mark.parametrize(
    ("spec", "expected"),
    [("my.words:cut", True), ("regex:a:b", False), ("lower", False), ("nothing", False), (len, False)],
)
def test_import_path__is_told_from_other_tokenizers(spec, expected):
    assert is_import_path(spec) is expected


def test_installed_program__is_the_safe_one():
    found = shutil.which("daskw2v", path=str(Path(sys.executable).parent))
    project = (Path(daskw2v.__file__).parents[1] / "pyproject.toml").read_text()
    assert 'daskw2v = "daskw2v.cli:run"' in project
    assert found is None or "daskw2v.cli" in Path(found).read_text()
