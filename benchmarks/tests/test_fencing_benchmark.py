"""The benchmark of fencing: that hosts stop where they should, and that it tells what was lost."""

import pytest

fencing = pytest.importorskip("benchmarks.fencing", reason="no benchmarks here: run pytest as python -m pytest")
BEFORE = fencing.State("v0002-b", {"v0002-b"}, {"v0002-b"}, set(), {"models/v0002-b/zarr.json"})
TAKEN = "Process 1 on second has taken over"
REFUSED, FINISHED, OTHER, OLDER, LOST = fencing.KINDS


def test_races__have_one_holder_each(tmp_path):
    found = fencing.race(tmp_path, 12, seed=0)
    assert sum(counts.total() for counts in found.values()) == 12
    assert all(counts.keys() == {1} for counts in found.values())


@pytest.mark.parametrize(
    ("second", "code", "changed", "kinds"),
    [
        ("publish 2", 2, {}, [REFUSED]),
        ("publish 2", 1, {}, [OTHER]),
        ("publish 2", 2, {"served": "v0001-a"}, [REFUSED, OLDER]),
        ("publish 2", 0, {"served": "v0003-a"}, [FINISHED, OLDER]),
        ("rollback", 0, {"served": "v0003-a"}, [FINISHED]),
        ("rollback", 0, {"served": "v0001-a", "versions": set()}, [FINISHED, OLDER, LOST]),
        ("night", 2, {"damage": {"v0002-b"}}, [REFUSED, LOST]),
        ("night", 0, {"files": set()}, [FINISHED, LOST]),
    ],
)
def test_kinds__are_what_the_first_host_did(second, code, changed, kinds):
    assert fencing.kinds_of(second, code, TAKEN, BEFORE, BEFORE._replace(**changed)) == kinds


def test_hosts__stop_and_go_on(tmp_path):
    trials, found, point = fencing.Trials(tmp_path), [], 1
    while (ended := trials.trial("publish 1", "publish 2", point)) is not None:
        found, point = [*found, ended[0]], point + 1
    assert found == [[REFUSED], [REFUSED], [FINISHED], [FINISHED]]
