"""The text of the demo: sentences of Python's own library."""

from pathlib import Path

import pytest

from daskw2v.cli import demo
from daskw2v.errors import InputError


def make_library(folder: Path) -> Path:
    (folder / "test").mkdir(parents=True)
    (folder / "test" / "skipped.py").write_text("'''Tests are no prose of the library.'''")
    (folder / "broken.py").write_text("print 'This is no Python of today.'\n# But it has a good comment.\n")
    (folder / "a.py").write_text(
        '"""Open a file; don\'t close it.\n\nReturn the file\nthat was opened."""\n'
        "# A comment over\n# two lines here.\nx = 'too short'\ny = '\\d is a bad escape'\n"
    )
    return folder


def test_write_text__takes_sentences_of_strings_and_comments(tmp_path):
    strings, comments = demo.write_text(tmp_path / "text", make_library(tmp_path / "lib"))
    assert strings.read_text().splitlines() == ["return the file that was opened", "d is a bad escape"]
    assert comments.read_text().splitlines() == ["a comment over two lines here", "but it has a good comment"]


def test_write_text__leaves_finished_files_alone(tmp_path):
    library = make_library(tmp_path / "lib")
    before = [path.stat().st_mtime_ns for path in demo.write_text(tmp_path / "text", library)]
    assert [path.stat().st_mtime_ns for path in demo.write_text(tmp_path / "text", library)] == before


def test_write_text__needs_sources(tmp_path):
    with pytest.raises(InputError, match="holds no Python source"):
        demo.write_text(tmp_path / "text", tmp_path)
