"""The benchmark of fencing: that hosts stop where they should, and that it tells what was lost."""

import threading

import pytest

hosts, paused, races = (
    pytest.importorskip(f"benchmarks.fencing.{name}", reason="no benchmarks here: run pytest as python -m pytest")
    for name in ("hosts", "paused", "races")
)

BEFORE = {"served": "v0002-b", "number": 2, "versions": ["v0002-b"], "needed": ["v0002-b"], "damage": [], "files": []}
HELD = threading.Lock()
TAKEN = "Process 1 on second has taken over"


def test_races__have_one_holder_each(tmp_path):
    found = races.race(tmp_path, 12, seed=0)
    assert sum(row.races for row in found) == 12
    assert {(row.least, row.most) for row in found} == {(1, 1)}


@pytest.mark.parametrize(("changed", "counts"), [
    ({}, (1, 0, 0)),
    ({"served": "v0001-a", "number": 1}, (1, 1, 0)),
    ({"damage": ["v0002-b"]}, (1, 0, 1)),
])  # fmt: skip
def test_line__counts_what_the_first_host_did(changed, counts):
    line = paused.Line(paused.Scene("publish 1", "publish 2"))
    line.add(1, 2, TAKEN, BEFORE, {**BEFORE, **changed})
    assert (line.refused, line.older, line.lost) == counts


def test_line__counts_lost_files_and_other_ends():
    line = paused.Line(paused.Scene("night", "night"))
    line.add(1, 1, "Traceback", {**BEFORE, "files": ["models/v0002-b/zarr.json"]}, BEFORE)
    assert (line.refused, line.lost, len(line.other_ends)) == (0, 1, 2)


def take() -> int:
    return 0 if HELD.acquire(timeout=1) else 1


def test_hosts__have_no_locks_of_this_process():
    if (lacking := hosts.missing()) is not None:
        pytest.skip(f"no {lacking}")
    with HELD:
        assert hosts.start("host", take).wait() == 0


@pytest.mark.slow
def test_hosts__stop_and_go_on(tmp_path):
    if (lacking := hosts.missing()) is not None:
        pytest.skip(f"no {lacking}")
    trials, line = paused.Trials(tmp_path), paused.Line(paused.Scene("publish 1", "publish 2"))
    point = 1
    while trials.trial(line, point):
        point += 1
    assert (line.points, line.refused, line.finished) == (4, 2, 2), line.other_ends
    assert (line.older, line.lost, line.other_ends) == (0, 0, [])
