"""`daskw2v versions`: what is served, tagged, compared and deleted."""

import json

import numpy as np
import pytest

from daskw2v.models.stored.store import assign_stable_ids, write_ids, write_vocabulary
from daskw2v.models.stored.tables import create_model, write_table_rows
from daskw2v.models.versions.versions import publish
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary
from tests.support.command_line import invoke
from tests.support.published import write_model

OLD, NEW = "v0001-a", "v0002-b"


def write_version(models, name, words, counts, manifest):
    """Publish a version; return its place and its vocabulary."""
    store, vocabulary = models / name, Vocabulary.from_words(words, counts)
    create_model(store, {"input": (len(words), 3)}, row_block=4)
    write_table_rows(store, "input", 0, np.ones((len(words), 3), np.float32))
    write_vocabulary(store, vocabulary)
    publish(models, name, manifest)
    return store, vocabulary


@pytest.fixture
def work(tmp_path):
    """A work directory of two versions; the second has another word, and another window."""
    for name, words, window in ((OLD, ["the", "old"], 5), (NEW, ["the", "new"], 2)):
        manifest = {"params": {"window": window}, "corpus": {"tokens": 10 * window}}
        write_version(Store(str(tmp_path)) / "models", name, words, [7, 3], manifest)
    return str(tmp_path)


def run(*args, status=0):
    result = invoke("versions", *args)
    assert result.exit_code == status, result.output
    return result.output


def test_list__marks_what_is_served(work):
    run("tag", work, OLD, "stable")
    first, second = run("list", work).splitlines()[1:]
    assert first.split()[0] == OLD
    assert first.split()[-2:] == ["2", "stable"]
    assert second.split()[:2] == ["*", NEW]
    answer = json.loads(run("list", work, "--json"))["versions"]
    assert [(v["name"], v["served"], v["tags"]) for v in answer] == [(OLD, False, ["stable"]), (NEW, True, [])]


def test_show__shows_the_metadata_of_a_version(work):
    assert json.loads(run("show", work, "--json"))["name"] == NEW
    assert json.loads(run("show", work, OLD, "--json"))["params"] == {"window": 5}
    assert "params.window" in run("show", work)


def test_publish_and_rollback__say_what_is_served_then(work):
    told, served = run("rollback", work).splitlines()
    assert served == OLD
    assert run("rollback", work, *told.split()[-2:]) == f"{OLD}\n", "the same request is one change"
    assert run("publish", work, NEW) == f"{NEW}\n"
    assert "No version was served" in run("rollback", run("rollback", work) and work, status=2)


def test_log__shows_who_changed_what_is_served_and_why(work):
    run("rollback", work, "--reason", "bad neighbours")
    header, *lines = run("log", work).splitlines()
    assert header.split() == ["time", "user", "action", "served", "reason"]
    assert len(lines) == 3
    assert lines[-1].split()[0] == "3"
    assert lines[-1].split()[3:] == ["rollback", OLD, "bad", "neighbours"]
    state = json.loads(run("log", work, "--json"))["states"][-1]
    assert (state["number"], state["names"][0], state["change"]["reason"]) == (3, OLD, "bad neighbours")


def test_rollback__given_twice_with_a_request_or_a_version_is_one_change(work):
    for _ in range(2):
        assert run("rollback", work, "--request", "ticket-7") == f"{OLD}\n"
    run("publish", work, NEW)
    for _ in range(2):
        assert run("rollback", work, "--to", OLD) == f"{OLD}\n"


def test_publish__in_place_of_another_version_is_refused(work):
    assert f"but {NEW} is served" in run("publish", work, OLD, "--expected", OLD, status=2)
    assert run("publish", work, OLD, "--expected", NEW) == f"{OLD}\n"


def test_promote__serves_what_passes_the_gates(tmp_path):
    work, config = str(tmp_path / "work"), tmp_path / "night.toml"
    write_model(tmp_path / "work", OLD, NEW)
    config.write_text("[gates]\nmin_stability = 0.9\n")
    assert run("promote", work, OLD, "--config", str(config), status=4).startswith("STOPPED min_stability")
    assert len(run("log", work).splitlines()) == 3
    config.write_text("[gates]\nmin_stability = 0.0\n")
    run("promote", work, OLD, "--config", str(config), "--reason", "checked")
    assert run("log", work).splitlines()[-1].split()[3:] == ["publish", OLD, OLD, "checked"]


def test_frozen__versions_are_not_published(work):
    run("freeze", work, "--reason", "audit")
    assert "frozen (audit)" in run("publish", work, OLD, status=2)
    run("unfreeze", work)
    run("publish", work, OLD)


def test_hold__keeps_a_version_until_its_release(work):
    key = run("hold", work, OLD, "--hours", "12", "--reason", "a job").strip()
    assert f"Its holds: {key} of {OLD}" in run("release", work, "other", status=2)
    run("release", work, key)
    run("hold", work, OLD)
    run("release", work, OLD)
    assert "Its holds: none" in run("release", work, OLD, status=2)


def test_diff__shows_words_that_entered_and_left(work):
    output = run("diff", work, OLD)
    assert "+ new" in output
    assert "- old" in output
    assert "1 word entered, 1 left, 1 stayed; 50 -> 20 tokens." in output
    assert "window: 5 -> 2" in output
    answer = json.loads(run("diff", work, NEW, OLD, "--json"))
    assert (answer["entered"], answer["left"], answer["params"]) == ([["old", 3]], [["new", 3]], {"window": [2, 5]})


def test_diff__shows_why_words_entered_and_left_and_their_ids(tmp_path):
    models = Store(str(tmp_path)) / "models"
    old, words = write_version(models, OLD, ["the", "old", "rare"], [9, 7, 5], {"params": {"min_count": 5}})
    write_ids(old, assign_stable_ids(None, words))
    new, words = write_version(models, NEW, ["the", "new"], [9, 8], {"params": {"min_count": 6}})
    write_ids(new, assign_stable_ids(old, words))
    lines = [line.split() for line in run("diff", str(tmp_path), OLD).splitlines()]
    assert lines[:4] == [
        ["word", "count", "id", "reason"],
        ["+", "new", "8", "3", "at", "least", "min_count=5"],
        ["-", "old", "7", "1", "fewer", "than", "min_count=6"],
        ["-", "rare", "5", "2", "min_count", "is", "6", "now,", "was", "5"],
    ]
    assert "1 left: min_count is 6 now, was 5" in run("diff", str(tmp_path), OLD)
    answer = json.loads(run("diff", str(tmp_path), OLD, "--json"))
    assert answer["ids"] == {"entered": [3], "left": [1, 2]}
    assert answer["reasons"]["left"] == ["fewer than min_count=6", "min_count is 6 now, was 5"]


def test_diff__of_versions_without_ids_and_rules(work):
    answer = json.loads(run("diff", work, OLD, "--json"))
    assert answer["ids"] is None
    assert answer["reasons"]["entered"] == ["unknown: the Params of a version are not known"]
    assert run("diff", work, OLD).split()[:3] == ["word", "count", "reason"]


def test_tag__is_removed(work):
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
