"""`daskw2v versions`: what is served, tagged, compared and deleted."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from daskw2v.cli import main
from daskw2v.models.store import create_model, write_table_rows, write_vocabulary
from daskw2v.models.versions import publish
from daskw2v.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary

OLD, NEW = "v0001-a", "v0002-b"


@pytest.fixture
def work(tmp_path):
    """A work directory of two versions; the second has another word, and another window."""
    models = Store(str(tmp_path)) / "models"
    for name, words, window in ((OLD, ["the", "old"], 5), (NEW, ["the", "new"], 2)):
        create_model(models / name, {"input": (2, 3)}, row_block=4)
        write_table_rows(models / name, "input", 0, np.ones((2, 3), np.float32))
        write_vocabulary(models / name, Vocabulary.from_words(words, [7, 3]))
        publish(models, name, {"params": {"window": window}, "corpus": {"tokens": 10 * window}})
    return str(tmp_path)


def run(*args, status=0):
    result = CliRunner().invoke(main, ["versions", *args])
    assert result.exit_code == status, result.output
    return result.output


def test_list__marks_what_is_served(work):
    run("tag", work, OLD, "stable")
    first, second = run("list", work).splitlines()[1:]
    assert first.split()[0] == OLD
    assert first.split()[-2:] == ["2", "stable"]
    assert second.split()[:2] == ["*", NEW]
    found = json.loads(run("list", work, "--json"))["versions"]
    assert [(v["name"], v["served"], v["tags"]) for v in found] == [(OLD, False, ["stable"]), (NEW, True, [])]


def test_show__tells_what_a_version_is(work):
    assert json.loads(run("show", work, "--json"))["name"] == NEW
    assert json.loads(run("show", work, OLD, "--json"))["params"] == {"window": 5}
    assert "params.window" in run("show", work)


def test_publish_and_rollback__say_what_is_served_then(work):
    assert run("rollback", work) == f"{OLD}\n"
    assert run("publish", work, NEW) == f"{NEW}\n"
    assert "No version was served" in run("rollback", run("rollback", work) and work, status=2)


def test_diff__tells_words_that_entered_and_left(work):
    told = run("diff", work, OLD)
    assert "+ new" in told
    assert "- old" in told
    assert "1 words entered, 1 left, 1 stayed; 50 -> 20 tokens." in told
    assert "window: 5 -> 2" in told
    found = json.loads(run("diff", work, NEW, OLD, "--json"))
    assert (found["entered"], found["left"], found["params"]) == ([["old", 3]], [["new", 3]], {"window": [2, 5]})


def test_tag__is_taken_away(work):
    run("tag", work, NEW, "stable")
    assert "has no tag stable" in run("tag", work, OLD, "stable", "--remove", status=2)
    run("tag", work, "stable", "stable", "--remove")
    assert "has no version 'stable'" in run("show", work, "stable", status=2)


def test_gc__names_what_it_deletes(work):
    assert run("gc", work, "--keep", "1", "--min-age", "0") == ""  # a rollback would return to it
    run("publish", work, OLD)
    run("publish", work, NEW)
    assert run("gc", work, "--keep", "1") == ""


def test_versions__of_no_work_directory(tmp_path):
    assert "There is no model at" in run("list", str(tmp_path / "none"), status=2)
