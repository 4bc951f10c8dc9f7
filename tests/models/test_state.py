"""The state of a work directory: which version is served, whoever changes it, and whatever happens to its files."""

import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from daskw2v.errors import StoreError
from daskw2v.models.versions.state import State, change_state, fence, read_history, read_state
from daskw2v.store.numbered import NumberedLog
from daskw2v.store.storage import Store

NAMES = [f"v000{number}-{run}" for number, run in zip((1, 2, 3), "abc", strict=True)]
OLD = {"created": "2001-01-01T00:00:00+00:00", "params": {}, "tables": {"input": [1, 2]}}


@pytest.fixture(params=["local", "memory"])
def models(request, tmp_path):
    return Store(f"memory://{tmp_path.name}/models" if request.param == "memory" else f"{tmp_path}/models")


def serve(models, name):
    return change_state(models, lambda state: state.serving(name), "publish")


def tag(models, tag, name):
    return change_state(models, lambda state: tagging(state, tag, name), "tag")


def tagging(state, tag, name):
    state.check(name)
    return replace(state, tags={**state.tags, tag: name})


def newest(models):
    return max((models / "state").children())


def test_state__of_an_earlier_release_is_what_its_files_say(models):
    models.write_bytes("LATEST", b"v0002-b\nv0001-a")
    models.write_manifest({"tags": {"stable": "v0001-a"}}, "tags.json")
    assert read_state(models) == State(("v0002-b", "v0001-a"), {"stable": "v0001-a"})
    assert models.children() == ["LATEST", "tags.json"]
    serve(models, "v0003-c")
    assert read_state(models) == State(("v0003-c", "v0002-b", "v0001-a"), {"stable": "v0001-a"})


def test_state__is_copied_for_people_and_earlier_releases(models):
    serve(models, "v0001-a")
    serve(models, "v0002-b")
    tag(models, "stable", "v0001-a")
    assert models.read_bytes("LATEST") == b"v0002-b\nv0001-a"
    assert models.read_manifest("tags.json")["tags"] == {"stable": "v0001-a"}


def test_copy__that_a_person_has_changed_changes_nothing_and_is_mended_by_the_next_change(models):
    serve(models, "v0002-b")
    models.write_bytes("LATEST", b"v0001-a")
    assert read_state(models).name == "v0002-b"
    serve(models, "v0002-b")
    assert models.read_bytes("LATEST") == b"v0002-b"


@pytest.mark.parametrize("content", [b"", b"\0" * 200, b'{"served"'])
def test_state__that_is_damaged_is_replaced_by_its_copies(models, caplog, content):
    serve(models, "v0001-a")
    tag(models, "stable", "v0001-a")
    serve(models, "v0002-b")
    (models / "state").write_bytes(newest(models), content)
    with caplog.at_level(logging.WARNING):
        assert read_state(models) == State(("v0002-b", "v0001-a"), {"stable": "v0001-a"})
    (line,) = caplog.messages
    assert f"state/{newest(models)}" in line
    assert line.endswith("v0002-b is served.")
    serve(models, "v0003-c")
    caplog.clear()
    assert read_state(models).names == ("v0003-c", "v0002-b", "v0001-a")
    assert not caplog.messages


@pytest.mark.parametrize("latest", [b"", b"\0" * 20, None])
def test_state__that_is_damaged_with_its_copies_is_replaced_by_the_one_before(models, latest):
    serve(models, "v0001-a")
    tag(models, "stable", "v0001-a")
    serve(models, "v0002-b")
    (models / "state").write_bytes(newest(models), b"")
    for name in ("LATEST", "tags.json"):
        if latest is None:
            (models / name).remove()
        else:
            models.write_bytes(name, latest)
    assert read_state(models) == State(("v0001-a",), {"stable": "v0001-a"})
    serve(models, "v0003-c")
    assert read_state(models).names == ("v0003-c", "v0001-a")
    assert models.read_bytes("LATEST") == b"v0003-c\nv0001-a"


def test_state__whose_file_was_deleted_is_the_one_before(models):
    serve(models, "v0001-a")
    serve(models, "v0002-b")
    (models / "state" / newest(models)).remove()
    assert read_state(models).name == "v0001-a"
    serve(models, "v0003-c")
    assert read_state(models).names == ("v0003-c", "v0001-a")


def test_state__all_of_which_was_deleted_is_what_the_copies_say(models):
    serve(models, "v0001-a")
    (models / "state").remove()
    assert read_state(models).name == "v0001-a"


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("served", 5),
        ("served", [5]),
        ("tags", {"a": 5}),
        ("tags", []),
        ("condemned", None),
        ("holds", []),
        ("holds", {"a": {}}),
        ("holds", {"a": {"version": 3}}),
        ("frozen", 1),
        ("change", {"action": 1}),
        ("change", {"unknown": "1"}),
    ],
)
def test_state__of_wrong_types_is_refused(models, entry, value):
    serve(models, "v0001-a")
    values = (models / "state").read_manifest(newest(models))
    (models / "state").write_manifest({**values, entry: value}, newest(models))
    with pytest.raises(StoreError, match=rf"{entry}="):
        read_state(models)


def test_state__keeps_few_files(models):
    for number in range(140):
        serve(models, f"v{number:04}-a")
    assert len((models / "state").children()) == 128
    assert len(read_state(models).names) == 100


def test_state__says_who_made_it_when_and_why(models):
    change_state(models, lambda state: state.serving("v0001-a"), "publish v0001-a", reason="first", request="r1")
    state = read_state(models)
    assert (state.number, state.change.action, state.change.reason) == (1, "publish v0001-a", "first")
    assert "@" in state.change.user
    assert datetime.now(UTC) - datetime.fromisoformat(state.change.time) < timedelta(minutes=5)


def test_state__of_this_release_without_a_change_is_read_as_states_of_earlier_releases_are(models):
    values = {"served": ["v0002-b", "v0001-a"], "tags": {"stable": "v0001-a"}, "condemned": ["v0009-z"]}
    (models / "state").create_manifest(values, "00000007.json")
    state = read_state(models)
    assert state == State(("v0002-b", "v0001-a"), {"stable": "v0001-a"}, ("v0009-z",))
    assert serve(models, "v0003-c").names == ("v0003-c", "v0002-b", "v0001-a")
    assert [state.number for state in read_history(models)] == [8, 7]


def test_history__passes_over_a_state_that_is_lost(models):
    for name in NAMES:
        serve(models, name)
    (models / "state" / "00000002.json").remove()
    assert [state.number for state in read_history(models)] == [3, 1]


def test_change__is_made_though_its_copies_cannot_be_written(models, caplog):
    serve(models, NAMES[0])
    (models / "LATEST").remove()
    (models / "LATEST").write_bytes("file", b"in the way")
    with caplog.at_level(logging.WARNING):
        assert serve(models, NAMES[1]).name == NAMES[1]
    assert read_state(models).name == NAMES[1]
    assert caplog.messages == [] or "are old" in caplog.messages[0]


def test_request__that_is_repeated_changes_nothing(models):
    for name in NAMES:
        serve(models, name)

    def back(request):
        state = change_state(models, lambda s: replace(s, names=s.names[1:]), "rollback", request=request)
        return state.requests[request].served

    assert [back(request) for request in ("r1", "r1", "r2", "r1")] == [NAMES[1], NAMES[1], NAMES[0], NAMES[1]]
    assert read_state(models).name == NAMES[0]


def test_request__without_a_change_is_known_later(models):
    serve(models, NAMES[0])
    publish = partial(change_state, models, lambda state: state.serving(NAMES[0]), "publish", request="r1")
    publish()
    serve(models, NAMES[1])
    assert publish().name == NAMES[1], "the newest state"
    assert read_state(models).requests["r1"].served == NAMES[0]


def test_fence__takes_the_number_that_a_paused_process_is_about_to_create(models, monkeypatch):
    serve(models, NAMES[0])
    append = NumberedLog.append

    def paused(self, number, values):
        monkeypatch.undo()
        fence(models, "take over")
        return append(self, number, values)

    class Lost:
        def check(self):
            if read_state(models).number > 1:
                raise StoreError("lost")

    monkeypatch.setattr(NumberedLog, "append", paused)
    with pytest.raises(StoreError, match="lost"):
        serve(models.guarded(Lost()), NAMES[1])
    assert [(state.number, state.name) for state in read_history(models)] == [(2, NAMES[0]), (1, NAMES[0])]


def test_change__by_another_process_meanwhile_is_not_overwritten(models):
    """A process is paused between reading and writing, as no lease is checked in between."""

    def slow(served):
        if "v0002-b" not in served.names:
            serve(models, "v0002-b")
        return served.serving("v0001-a")

    assert change_state(models, slow, "publish").names == ("v0001-a", "v0002-b")


def test_condemned__versions_are_neither_served_nor_tagged(models):
    change_state(models, lambda _: State(("v0002-b",), {}, ("v0001-a",)), "gc")
    for change in (serve, partial(tag, models, "stable")):
        with pytest.raises(StoreError, match="v0001-a is being deleted"):
            change(*(() if isinstance(change, partial) else (models,)), "v0001-a")
