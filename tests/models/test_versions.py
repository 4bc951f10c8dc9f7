"""Versions: which one is served, and what may be done to them while they are read."""

import json
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from daskw2v.errors import DamageError, FrozenError, ParameterError, StoreError, SupersededError
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.store import write_vocabulary
from daskw2v.models.stored.tables import create_model, write_table_rows
from daskw2v.models.versions import versions as versions_module
from daskw2v.models.versions.finished import Version, next_version
from daskw2v.models.versions.resolving import resolve
from daskw2v.models.versions.versions import Versions, latest_version, publish, serve_version
from daskw2v.store.lease import hold_run
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary

MANIFEST = {"params": {"vector_size": 3}, "corpus": {"id": "c"}}
NAMES = [f"v000{number}-{run}" for number, run in zip((1, 2, 3, 4), "abcd", strict=True)]


@pytest.fixture(params=["local", "memory"])
def work(request, tmp_path):
    return Store(f"memory://{tmp_path.name}/work" if request.param == "memory" else str(tmp_path))


@pytest.fixture
def models(work):
    return work / "models"


@pytest.fixture
def versions(work, models):
    """Four versions, published one after another."""
    for name in NAMES:
        write_model(models / name)
        publish(models, name, MANIFEST)
    return Versions(work)


def write_model(store, value=1.0):
    create_model(store, {"input": (2, 3)}, row_block=4)
    write_table_rows(store, "input", 0, np.full((2, 3), value, np.float32))
    write_vocabulary(store, Vocabulary.from_words(["a", "b"], [2, 1]))


def names(result):
    return [version.name for version in result]


def age(models, name, hours=2):
    """Let a version be some hours old."""
    store, then = models / name, datetime.now(UTC) - timedelta(hours=hours)
    store.write_manifest({**store.read_manifest(), "created": then.isoformat(timespec="seconds")})


def test_versions__are_those_that_are_finished(versions, models):
    write_model(models / "v0005-e")
    assert names(versions.all()) == NAMES
    assert [version.served for version in versions.all()] == [False, False, False, True]


def test_versions__are_ordered_by_number(versions, models):
    for name in ("v9999-x", "v10000-y"):
        write_model(models / name)
        publish(models, name, MANIFEST)
    assert names(versions.all())[-2:] == ["v9999-x", "v10000-y"]


def test_find__takes_names_tags_and_latest(versions):
    versions.tag(NAMES[1], "stable")
    assert [versions.find(name).name for name in (NAMES[0], "stable", "LATEST")] == [NAMES[0], NAMES[1], NAMES[3]]
    with pytest.raises(StoreError, match=r"has no version 'v0009-x'.*v0002-b, stable, v0003-c"):
        versions.find("v0009-x")


def test_publish__serves_any_version(versions, work):
    assert versions.publish(NAMES[0]).served
    assert resolve(work.url).name == NAMES[0]


def test_rollback__goes_back_through_what_was_served(versions, models):
    versions.publish(NAMES[0])
    served = [versions.rollback().name for _ in range(4)]
    assert served == [NAMES[3], NAMES[2], NAMES[1], NAMES[0]]
    with pytest.raises(StoreError, match=r"No version was served in .* before v0001-a"):
        versions.rollback()
    assert latest_version(models) == NAMES[0]


def test_rollback__passes_over_versions_that_are_gone(versions, models):
    (models / NAMES[2]).remove()
    assert versions.rollback().name == NAMES[1]


def test_rollback__to_a_version_is_one_change_however_often_it_is_given(versions):
    assert [versions.rollback(to=NAMES[1]).name for _ in range(3)] == [NAMES[1]] * 3
    with pytest.raises(StoreError, match=rf"{NAMES[3]} was not served in .* before {NAMES[1]}"):
        versions.rollback(to=NAMES[3])
    assert versions.rollback().name == NAMES[0]


def test_rollback__of_a_request_that_is_repeated_is_one_change(versions):
    assert [versions.rollback(request="ticket").name for _ in range(3)] == [NAMES[2]] * 3


def test_request__of_another_action_is_refused(versions):
    versions.publish(NAMES[0], request="ticket")
    with pytest.raises(
        StoreError, match=rf"The request ticket was 'publish {NAMES[0]}', and is 'publish {NAMES[1]}' now"
    ):
        versions.publish(NAMES[1], request="ticket")
    assert versions.name_of() == NAMES[0]


def test_request__that_is_repeated_after_another_change_says_what_is_served(versions):
    assert versions.publish(NAMES[0], request="ticket").served
    versions.publish(NAMES[1])
    assert not versions.publish(NAMES[0], request="ticket").served
    assert versions.name_of() == NAMES[1]


def test_rollback__to_a_damaged_version_is_refused(versions, models):
    (models / NAMES[1] / "input").remove()
    with pytest.raises(DamageError, match=NAMES[1]):
        versions.rollback(to=NAMES[1])
    assert versions.name_of() == NAMES[3]


def test_rollback__of_another_version_than_the_one_that_was_seen_is_refused(versions, monkeypatch):
    """Another process publishes while this one waits for the lease."""
    hold = versions_module.hold

    def late(*args, **options):
        monkeypatch.undo()
        versions.publish(NAMES[0])
        return hold(*args, **options)

    monkeypatch.setattr(versions_module, "hold", late)
    with pytest.raises(SupersededError, match=rf"{NAMES[3]} was to be rolled back, but {NAMES[0]} is served"):
        versions.rollback()
    assert versions.name_of() == NAMES[0]


def test_publish__in_place_of_another_version_is_refused(versions, work):
    versions.rollback()
    for expected in (NAMES[3], None):
        with pytest.raises(SupersededError, match=rf"but {NAMES[2]} is served"):
            versions.publish(NAMES[0], expected=expected)
    assert versions.publish(NAMES[0], expected=NAMES[2]).served
    assert versions.publish(NAMES[0], expected=NAMES[2]).served, "it is served already"


def test_publish__in_place_of_a_tagged_version(versions):
    versions.tag(NAMES[3], "stable")
    assert versions.publish(NAMES[0], expected="stable").served
    assert versions.publish(NAMES[1], expected="LATEST").served


def test_freeze__lets_nothing_be_served_but_by_rollback(versions):
    versions.freeze("audit")
    with pytest.raises(FrozenError, match=r"the versions are frozen \(audit\)"):
        versions.publish(NAMES[0])
    assert versions.publish(NAMES[3]).served, "it is served already"
    assert versions.rollback().name == NAMES[2]
    versions.unfreeze()
    assert versions.publish(NAMES[0]).served


def test_gc__keeps_versions_on_hold_until_the_hold_ends(versions, models):
    for name in NAMES:
        age(models, name)
    key = versions.hold(NAMES[0], "a batch job")
    versions.hold(NAMES[1], hours=1e-9)
    assert versions.gc(keep=1) == [NAMES[1]]
    assert versions.gc(keep=1) == []
    with pytest.raises(StoreError, match=rf"has no hold 'other'.*Its holds: {key} of {NAMES[0]}"):
        versions.release("other")
    versions.release(key)
    assert versions.gc(keep=1) == [NAMES[0]]


@pytest.mark.parametrize("hours", [0, -5, float("nan"), 1e9])
def test_hold__of_hours_out_of_range_is_refused(versions, hours):
    with pytest.raises(ParameterError, match=r"hours=.* is not above 0 and at most 876,000"):
        versions.hold(NAMES[0], hours=hours)


def test_release__of_the_served_version(versions):
    versions.hold("LATEST")
    versions.release("LATEST")
    assert versions.log()[-1].holds == {}


def test_gc_damaged__keeps_versions_on_hold(versions, models):
    (models / NAMES[0] / "input").remove()
    versions.hold(NAMES[0])
    assert versions.gc(damaged=True) == []
    versions.release(NAMES[0])
    assert versions.gc(damaged=True) == [NAMES[0]]


def test_holding__keeps_what_a_reader_reads(versions, models):
    for name in NAMES:
        age(models, name)
    with versions.holding(NAMES[0]) as version:
        assert version.name == NAMES[0]
        assert versions.gc(keep=1) == [NAMES[1]]
    assert versions.gc(keep=1) == [NAMES[0]]


def test_holding__ends_quietly_if_the_hold_has_expired(versions, models):
    with versions.holding(NAMES[0], hours=1e-9):
        versions.gc()
        assert versions.log()[-1].holds == {}


def test_log__is_the_history_of_what_was_served(versions):
    versions.rollback(reason="bad")
    versions.tag(NAMES[0], "stable", reason="paper")
    states = versions.log()
    assert [state.number for state in states] == [1, 2, 3, 4, 5, 6]
    assert [state.name for state in states] == [*NAMES, NAMES[2], NAMES[2]]
    assert [(state.change.action, state.change.reason) for state in states[4:]] == [
        ("rollback", "bad"),
        (f"tag {NAMES[0]} stable", "paper"),
    ]


def test_point_to__what_is_served_changes_nothing(versions, models):
    serve_version(models, NAMES[3])
    assert versions.rollback().name == NAMES[2]


def test_tag__moves(versions):
    versions.tag(NAMES[0], "stable")
    assert versions.tag("LATEST", "stable").name == NAMES[3]
    assert versions.tags() == {"stable": NAMES[3]}
    versions.untag("stable")
    with pytest.raises(StoreError, match=r"has no tag 'stable'.*Its tags: none"):
        versions.untag("stable")


@pytest.mark.sampled(4)
def test_tag__that_another_process_removes_at_once_was_given(versions, monkeypatch):
    change = versions_module.change_state

    def change_and_untag(models, function, action, **options):
        state = change(models, function, action, **options)
        change(models, lambda state: replace(state, tags={}), "untag")
        return state

    monkeypatch.setattr(versions_module, "change_state", change_and_untag)
    assert versions.tag(NAMES[0], "stable").tags == ("stable",)
    assert versions.tags() == {}


@pytest.mark.parametrize("tag", ["", "a b", "LATEST", "v0001-a", "../x", "-x", "ä", "x" * 101])
def test_tag__that_is_no_name_is_refused(versions, tag):
    with pytest.raises(StoreError, match="is not a valid tag"):
        versions.tag(NAMES[0], tag)


def test_resolve__takes_a_version(versions, work):
    versions.tag(NAMES[1], "stable")
    assert resolve(work.url, version="stable").name == NAMES[1]
    assert Vectors.open(work.url, version=NAMES[0]).url.endswith(NAMES[0])
    with pytest.raises(StoreError, match="has no version 'none'"):
        Vectors.open(work.url, version="none")


def test_gc__keeps_what_is_new_served_tagged_or_may_be_returned_to(versions, models):
    for name in NAMES:
        age(models, name)
    versions.tag(NAMES[0], "stable")
    versions.publish(NAMES[1])
    versions.publish(NAMES[2])
    assert versions.gc(keep=1) == []
    versions.untag("stable")
    assert versions.gc(keep=1) == [NAMES[0]]
    assert names(versions.all()) == NAMES[1:]
    assert not (models / NAMES[0]).exists()


def test_gc__keeps_what_was_finished_lately(versions, models):
    for name in NAMES[:2]:
        age(models, name)
    assert versions.gc(keep=1, min_age=3 * 3600) == []
    assert versions.gc(keep=1) == NAMES[:2]


def test_gc__removes_what_was_cut_short_unless_its_run_is_at_work(versions, work, models):
    for name in ("v0005-dead", "v0006-living"):
        write_model(models / name)
    with hold_run(work, "living"):
        other = []
        # A lease held by this very thread is its own
        cleaner = threading.Thread(target=lambda: other.extend(versions.gc()))
        cleaner.start()
        cleaner.join()
    assert other == ["v0005-dead"]
    assert (models / "v0006-living").exists()


def test_open__raises_an_error_in_a_work_directory_without_a_model(work):
    with pytest.raises(StoreError, match="There is no model at"):
        Versions.open(work.url)


def test_next_version__counts_on_and_keeps_to_its_run(models):
    assert next_version(models, "a") == "v0001-a"
    write_model(models / "v0001-a")
    assert next_version(models, "a") == "v0001-a"
    publish(models, "v0001-a", MANIFEST)
    assert next_version(models, "a") == "v0001-a"
    assert next_version(models, "b") == "v0002-b"
    write_model(models / "v9999-c")
    assert next_version(models, "b") == "v10000-b"


def test_resolve__accepts_work_directory_models_and_version(models):
    work = models.url.removesuffix("/models")
    for version in ("v0001-a", "v0002-b"):
        write_model(models / version)
        publish(models, version, MANIFEST)
    for url, expected in (
        (work, "v0002-b"),
        (work + "/", "v0002-b"),
        (models.url, "v0002-b"),
        (f"{models.url}/v0001-a", "v0001-a"),
    ):
        assert resolve(url).name == expected


def test_resolve__tells_that_nothing_is_there(models):
    with pytest.raises(StoreError, match="There is no model at"):
        resolve(models.url)


def test_resolve__tells_that_training_has_not_finished(models):
    write_model(models / "v0001-a")
    with pytest.raises(StoreError, match="no finished model yet"):
        resolve(models.url.removesuffix("/models"))


def test_resolve__lists_versions_where_the_latest_is_gone(models):
    for version in ("v0001-a", "v0002-b"):
        write_model(models / version)
        publish(models, version, MANIFEST)
    (models / "v0002-b").remove()
    with pytest.raises(StoreError, match=r"names 'v0002-b'.*versions: v0001-a\."):
        resolve(models.url)


def test_resolve__refuses_a_newer_format(models):
    write_model(models / "v0001-a")
    publish(models, "v0001-a", MANIFEST)
    newer = {**(models / "v0001-a").read_manifest(), "format_version": 99}
    (models / "v0001-a").write_bytes("manifest.json", json.dumps(newer).encode())
    with pytest.raises(StoreError, match="format_version=99"):
        resolve(models.url)


@pytest.mark.parametrize("manifest", [{}, {"tables": 3}, {"tables": {"input": [1]}}])
def test_words__of_a_manifest_without_tables_are_refused(manifest):
    with pytest.raises(StoreError, match="The manifest of v0001-a holds tables="):
        _ = Version("v0001-a", manifest, (), False).words
