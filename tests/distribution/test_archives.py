"""What is uploaded holds what it should and no more, and says what it is."""

import email
import re
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = {path.relative_to(ROOT).as_posix() for path in (ROOT / "daskw2v").rglob("*") if path.is_file()}
CARRIED = {name for name in PACKAGE if "__pycache__" not in name}


@pytest.fixture(scope="module")
def wheel(archives):
    """Return the names of its files and its metadata."""
    with zipfile.ZipFile(archives.wheel) as file:
        names = set(file.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        return names, email.message_from_bytes(file.read(metadata))


@pytest.mark.slow
def test_wheel__carries_the_package_whole_and_nothing_else(wheel):
    names, _ = wheel
    assert {name for name in names if ".dist-info/" not in name} == CARRIED
    assert {"daskw2v/py.typed", "daskw2v/reports/templates/page.html", "daskw2v/ARCHITECTURE.md"} <= names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


@pytest.mark.slow
def test_sdist__carries_the_package_and_pipelines_but_no_tests(archives):
    with tarfile.open(archives.sdist) as file:
        names = {name.partition("/")[2] for name in file.getnames() if not file.getmember(name).isdir()}
    assert names >= CARRIED | {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "pipelines/walks.py"}
    assert {name.partition("/")[0] for name in names if "/" in name} == {"daskw2v", "pipelines", "daskw2v.egg-info"}


def test_metadata__says_who_made_it_and_what_for(wheel):
    _, metadata = wheel
    assert metadata["Author"] == "daskw2v developers"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert "word2vec" in metadata["Keywords"].split(",")
    assert metadata.get_all("Project-URL") == ["Homepage, https://pypi.org/project/daskw2v/"]


def test_metadata__has_the_versions_of_python_that_readme_has(wheel):
    _, metadata = wheel
    ((first, last),) = re.findall(r"Python 3\.(\d+) to 3\.(\d+)", metadata.get_payload())
    named = {c.removeprefix("Programming Language :: Python :: 3.") for c in metadata.get_all("Classifier")}
    assert {int(minor) for minor in named if minor.isdigit()} == set(range(int(first), int(last) + 1))
    assert metadata["Requires-Python"] == f">=3.{first}"


def test_metadata__has_the_extras_that_readme_has(wheel):
    _, metadata = wheel
    named = set(re.findall(r"`\[(\w+)\]`", metadata.get_payload()))
    assert named
    assert named <= set(metadata.get_all("Provides-Extra"))


@pytest.mark.slow
def test_installed__is_the_wheel_and_not_the_checkout(installed):
    place = installed.run("python", "-c", "import daskw2v; print(daskw2v.__file__)").strip()
    assert Path(place).is_relative_to(installed.environment)
