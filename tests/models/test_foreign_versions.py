"""Folders in `models/` that another daskw2v or another program wrote are named, skipped and never changed."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from daskw2v.errors import FormatError, StoreError
from daskw2v.models.stored.store import finish, write_vocabulary
from daskw2v.models.stored.tables import create_model, write_table_rows
from daskw2v.models.versions.finished import next_version
from daskw2v.models.versions.resolving import resolve
from daskw2v.models.versions.versions import Versions, serve_version
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary
from tests.support.command_line import invoke

NAMES = ["v0001-a", "v0002-b", "v0003-c"]
FOREIGN = "v0009-x"


def newer(version):
    version.write_bytes("manifest.json", json.dumps({"format_version": 2, "tables": {}}).encode())


def newer_part(version):
    write_model(version)
    (version / "sources").write_bytes("manifest.json", json.dumps({"format_version": 2}).encode())


def timeless(version):
    write_model(version)
    version.write_manifest({**version.read_manifest(), "created": "yesterday"})


def without_sizes(version):
    write_model(version)
    version.write_manifest({**version.read_manifest(), "tables": 3})


KINDS = {
    "newer": newer,
    "with a newer part": newer_part,
    "without a time": timeless,
    "without sizes": without_sizes,
    "of a web page": lambda version: version.write_bytes("manifest.json", b'{"name": "page"}'),
    "newer, with another checksum": lambda version: version.write_bytes(
        "manifest.json", b'{"format_version": 2, "checksum": "another"}'
    ),
    "a folder of that name": lambda version: version.write_bytes("manifest.json/a", b"ours"),
    "a link of that name": lambda version: replace_folder(version, lambda path: path.symlink_to("/etc/hostname")),
    "a pipe of that name": lambda version: replace_folder(version, lambda path: os.mkfifo(path)),
    "of no manifest": lambda version: version.write_bytes("notes.txt", b"ours"),
}


def replace_folder(version, make):
    Path(version.url).mkdir(parents=True)
    make(Path(version.url) / "manifest.json")


def write_model(version):
    create_model(version, {"input": (2, 3)}, row_block=4)
    write_table_rows(version, "input", 0, np.zeros((2, 3), np.float32))
    write_vocabulary(version, Vocabulary.from_words(["a", "b"], [2, 1]))
    finish(version, {})
    then = (datetime.now(UTC) - timedelta(hours=2)).isoformat(timespec="seconds")
    version.write_manifest({**version.read_manifest(), "created": then})


@pytest.fixture
def models(tmp_path):
    """Three versions, two hours old."""
    models = Store(str(tmp_path)) / "models"
    for name in NAMES:
        write_model(models / name)
        serve_version(models, name)
    return models


def contents(folder):
    """Return the entries of a folder by path: the content of files, and the type of other entries."""
    paths = Path(folder.url).rglob("*")
    return {path: path.read_bytes() if path.is_file() else path.lstat().st_mode for path in paths}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
def test_foreign_versions__are_passed_over_and_never_changed(models, tmp_path, kind):
    KINDS[kind](models / FOREIGN)
    before, versions = contents(models / FOREIGN), Versions(Store(str(tmp_path)))
    assert next_version(models, "new") == "v0010-new"
    listed = invoke("versions", "list", tmp_path)
    assert listed.exit_code == 0
    said = f"{FOREIGN} is of another daskw2v, and is passed over"
    assert (said in listed.stderr) == (kind != "of no manifest")
    assert invoke("versions", "gc", tmp_path, "--keep", "1", "--damaged").exit_code == 0
    assert versions.rollback().name == NAMES[1]
    assert {version.name for version in versions.all()} - {FOREIGN} == set(NAMES[1:])
    assert contents(models / FOREIGN) == before
    if kind != "of no manifest":
        with pytest.raises(FormatError):
            versions.publish(FOREIGN)
        verified = invoke("versions", "verify", tmp_path, "--all")
        assert (verified.exit_code, said in verified.stderr) == (0, True)


def test_link__to_a_disk_that_is_not_mounted_stays(models, tmp_path):
    link = tmp_path / "models" / "v0009-a"
    link.symlink_to("/mnt/not-mounted")
    assert invoke("versions", "gc", tmp_path, "--keep", "1").exit_code == 0
    assert link.is_symlink()


def test_foreign_version__of_the_same_run_is_not_foreign(models):
    newer(models / "v0009-c0ffee")
    assert next_version(models, "c0ffee") == "v0010-c0ffee"


def test_foreign_version__that_is_served_raises_an_error_that_lists_other_versions(models, tmp_path):
    newer(models / FOREIGN)
    serve_version(models, FOREIGN)
    with pytest.raises(FormatError, match="Open it with the daskw2v that wrote it"):
        resolve(str(tmp_path))
    (models / FOREIGN / "manifest.json").remove()
    newer(models / "v0010-y")
    with pytest.raises(StoreError, match=r"one of the versions: v0001-a, v0002-b, v0003-c\."):
        resolve(str(tmp_path))
