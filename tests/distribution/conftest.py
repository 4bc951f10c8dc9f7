"""What a user gets: the archives, built as for PyPI, and an environment into which the wheel was installed."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOT_SOURCES = (".*", "__pycache__", "*.egg-info", "build", "dist", "demo-work")
BUILD_SDIST = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
# Not the script of the tests' environment, which would start that environment's Python.
DASK = '#!/bin/sh\nexec "$(dirname "$0")/python" -m dask "$@"\n'


def run(*words, **options):
    done = subprocess.run(
        list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@dataclass(frozen=True)
class Archives:
    """The two files that are uploaded."""

    sdist: Path
    wheel: Path


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel in it, and a directory from which nothing else of the project is seen."""

    environment: Path
    here: Path
    variables: dict[str, str]

    def run(self, program, *words, **options):
        """Run a program of the environment, by its name."""
        return run(self.environment / "bin" / program, *words, cwd=self.here, env=self.variables, **options)


@pytest.fixture(scope="session")
def archives(tmp_path_factory):
    """Build the sdist from a copy of the checkout, which stays as it is, and the wheel from the sdist; offline."""
    folder = tmp_path_factory.mktemp("archives")
    source = shutil.copytree(ROOT, folder / "source", ignore=shutil.ignore_patterns(*NOT_SOURCES))
    run(sys.executable, "-c", BUILD_SDIST, folder, cwd=source)
    (sdist,) = folder.glob("*.tar.gz")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel")
    run(*pip, "--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, sdist)
    (wheel,) = folder.glob("*.whl")
    return Archives(sdist, wheel)


@pytest.fixture(scope="session")
def installed(archives, tmp_path_factory):
    """Install the wheel into a fresh environment, which borrows its dependencies from that of the tests.

    Folders that a .pth file names come last, and .pth files in them are not followed: so neither an installed daskw2v
    nor an editable checkout of the tests' environment is seen before the wheel's.
    """
    folder = tmp_path_factory.mktemp("installed")
    environment, here = folder / "environment", folder / "here"
    here.mkdir()
    venv.create(environment, symlinks=True)
    python = environment / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python, "install", "--quiet")
    run(*pip, "--no-index", "--no-deps", "--no-compile", "--ignore-installed", archives.wheel)
    borrowed = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    own = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    Path(own, "borrowed.pth").write_text("".join(f"{path}\n" for path in sorted(borrowed)))
    (environment / "bin" / "dask").write_text(DASK)
    (environment / "bin" / "dask").chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DASKW2V", "COLUMNS"))}
    path = f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return Installed(environment, here, kept | {"PATH": path})
