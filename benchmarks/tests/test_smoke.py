"""The smoke run leaves out what its budget has no time for, says so, and begins anywhere; it sees what is wrong."""

import json

import pytest

from benchmarks import smoke
from benchmarks.harness import Smoke


@pytest.fixture
def called(monkeypatch):
    """Runs a to d, each of which takes a second; return the names of those that are called."""
    names, clock = [], [0.0]

    def call(run, seconds):
        names.append(run.name)
        clock[0] += 1.0
        return smoke.Found(0, 1.0, ["no figures"] if run.name == "d" else [], "seen")

    monkeypatch.setattr(smoke, "commands", lambda: ["a", "b", "c", "d"])
    monkeypatch.setattr(smoke, "runs_of", lambda name: [smoke.Run(name, (), Smoke({}, ()))])
    monkeypatch.setattr(smoke, "call", call)
    monkeypatch.setattr(smoke.time, "monotonic", lambda: clock[0])
    return names


@pytest.mark.parametrize(
    ("budget", "first", "expected"),
    [("2.5", "0", ["a", "b", "c"]), ("2.5", "6", ["c", "d", "a"]), ("0", "1", []), ("9", "2", ["c", "d", "a", "b"])],
)
def test_smoke__begins_anywhere_and_names_what_it_leaves_out(called, capsys, budget, first, expected):
    arguments = ["--at-once", "1", "--budget", budget, "--first", first]
    if "d" in expected:
        with pytest.raises(SystemExit):
            smoke.main(arguments)
    else:
        smoke.main(arguments)
    assert called == expected
    printed = capsys.readouterr().out
    left_out = [name for name in "abcd" if name not in expected]
    assert ("LEFT OUT" in printed) == bool(left_out)
    assert all(name in printed.partition("LEFT OUT")[2] for name in left_out)
    assert f"{len(expected)} runs" in printed


GOOD = [
    {"table": "Speed", "name": "ours", "cells": {"words": [2.0, 1.0, 3.0], "of": None}},
    {"table": "Speed", "name": "theirs", "cells": {"words": 1, "of": 0.5}},
]


@pytest.mark.parametrize(
    ("row", "cells", "problem"),
    [
        (0, {"words": [float("nan"), 1.0, 3.0]}, "1 of 5 figures are not finite"),
        (1, {"of": None}, "nothing in column 'of' of 'Speed'"),
    ],
)
def test_look__tells_what_is_wrong(row, cells, problem):
    run = smoke.Run("speed", ("--tools", "theirs"), Smoke({}, ("ours",)))
    assert smoke.look(run, 0, json.dumps(GOOD), "")[0] == []
    bad = [{**one, "cells": one["cells"] | (cells if n == row else {})} for n, one in enumerate(GOOD)]
    assert smoke.look(run, 0, json.dumps(bad), "")[0] == [problem]
    assert smoke.look(run, 0, json.dumps(GOOD[1:]), "")[0] == ["'ours' is not in the output"]
    assert smoke.look(run, 0, "[]", "")[0][0] == "no figures"
