"""After exports that are killed or find no space, the next export leaves only the exported file."""

import errno
import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from daskw2v import Vectors, export
from daskw2v.errors import StoreError
from daskw2v.models.formats.export import _FOLDER_WRITERS, _WRITERS
from daskw2v.models.stored import files
from daskw2v.vocabulary.vocabulary import Vocabulary

FORMATS = [*_WRITERS, *_FOLDER_WRITERS]


def tiny():
    return Vectors(Vocabulary.from_words(["a", "b"], [2, 1]), np.eye(2, 4, dtype=np.float32))


def exported(vectors, format, folder):
    if format == "save":
        vectors.save(f"{folder}/model")
    else:
        export(vectors, f"{folder}/model", format)


def needs(format):
    if format == "lance":
        pytest.importorskip("lance")
    if format == "parquet":
        pytest.importorskip("pyarrow")


def list_files(folder):
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file())


def kinds(folder):
    """Return how many files have each name, whose random numbers are replaced."""
    return Counter(re.sub(r"[0-9a-f-]{8,}", "#", name) for name in list_files(folder))


@pytest.mark.parametrize("format", [*FORMATS, "save"])
def test_export__after_a_killed_export_leaves_only_the_named_file(format, tmp_path, monkeypatch):
    needs(format)
    killed, complete = tmp_path / "killed", tmp_path / "whole"

    def kill(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        # It is looked whether the file is still ours before it gets its name, and before it is cleared up
        dying.setattr(os.path, "samestat", kill)
        with pytest.raises(KeyboardInterrupt):
            exported(tiny(), format, killed)
    assert any(".part" in name for name in list_files(killed))
    exported(tiny(), format, killed)
    exported(tiny(), format, complete)
    assert kinds(killed) == kinds(complete)


@pytest.mark.parametrize("format", [*FORMATS, "save"])
def test_export__that_fails_leaves_no_file_and_names_the_url(format, tmp_path, monkeypatch):
    needs(format)

    checked, samestat = [], os.path.samestat

    def full(*path):
        checked.append(path)
        if len(checked) == 1:  # later it clears up
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return samestat(*path)

    monkeypatch.setattr(os.path, "samestat", full)
    with pytest.raises(StoreError, match=rf"No space is left where {tmp_path}/.*model.* should be written\. Make room"):
        exported(tiny(), format, tmp_path)
    assert list_files(tmp_path) == []


def test_writing__by_two_processes_gives_the_file_of_the_later_one(tmp_path):
    file = tmp_path / "model.txt"
    first = files.open_for_writing(str(file))
    first.__enter__().write(b"first")
    with files.open_for_writing(str(file)) as later:
        later.write(b"later")
    with pytest.raises(StoreError, match=r"Another process writes .*model\.txt at the same time"):
        first.__exit__(None, None, None)
    assert file.read_bytes() == b"later"
    assert list_files(tmp_path) == ["model.txt"]
