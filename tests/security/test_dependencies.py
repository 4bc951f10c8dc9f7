"""Every dependency has a range, and what is installed lies in it."""

import contextlib
import re
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

_PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
_CALENDAR = {
    "dask",
    "fsspec",
    "s3fs",
    "gcsfs",
    "pyarrow",
}  # a new major version each year that breaks nothing
_RUNTIME = [*_PROJECT["dependencies"]] + [
    line
    for extra in ("zstd", "arrow", "s3", "gcs", "evaluation", "torch", "cuda", "umap", "lance")
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


def test_dependencies__have_a_lower_bound():
    assert [line for line in (*_RUNTIME, *_TOOLS) if not _operators(line) & {">=", "=="}] == []


def test_dependencies__have_an_upper_bound():
    bounded = [line for line in _RUNTIME if _operators(line) & {"<", "=="}]
    assert {Requirement(line).name for line in _RUNTIME} - {Requirement(line).name for line in bounded} <= _CALENDAR


def test_dependencies__are_installed_within_their_ranges():
    """Those that are there: CI has all of them."""
    outside, seen = {}, 0
    for line in (*_RUNTIME, *_TOOLS):
        requirement = Requirement(line)
        with contextlib.suppress(metadata.PackageNotFoundError):
            found = re.sub(r"\+.*", "", metadata.version(requirement.name))
            seen += 1
            if not requirement.specifier.contains(found, prereleases=True):
                outside[line] = found
    assert outside == {}
    assert seen >= len(_PROJECT["dependencies"])
