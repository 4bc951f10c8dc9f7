"""Every dependency has a range, and what is installed lies in it."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

_PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
_CALENDAR = {"fsspec", "s3fs", "gcsfs", "pyarrow"}  # a new major version every year, or month, that breaks nothing
_RUNTIME = [*_PROJECT["dependencies"]] + [
    line
    for extra in ("zstd", "arrow", "s3", "gcs", "evaluation", "torch", "cuda", "umap", "schedule")
    for line in _PROJECT["optional-dependencies"][extra]
]
_TOOLS = [
    line
    for extra in ("test", "check", "fuzz", "bench", "dev")
    for line in _PROJECT["optional-dependencies"][extra]
    if not line.startswith("daskw2v")
]


def _operators(line):
    return {specifier.operator for specifier in Requirement(line).specifier}


@pytest.mark.parametrize("line", [*_RUNTIME, *_TOOLS])
def test_dependency__has_a_lower_bound(line):
    assert _operators(line) & {">=", "=="}


@pytest.mark.parametrize("line", _RUNTIME)
def test_dependency__has_an_upper_bound(line):
    assert Requirement(line).name in _CALENDAR or _operators(line) & {"<", "=="}


@pytest.mark.parametrize("line", [*_RUNTIME, *_TOOLS])
def test_dependency__is_installed_within_its_range(line):
    requirement = Requirement(line)
    try:
        found = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        pytest.skip(f"{requirement.name} is not installed")
    assert requirement.specifier.contains(re.sub(r"\+.*", "", found), prereleases=True)
