"""That kernels are compiled is counted, and told to who waits; that they are found in a cache is not."""

import re

import numba
import pytest

from daskw2v.kernels import compilation
from daskw2v.kernels.jit import kernel
from daskw2v.training.loop.strategy import RoundReport, TaskClock, TaskTotals
from daskw2v.training.rounds import make_entry, words_per_second


def double(x):
    return 2 * x


def compile_anew(x):
    return numba.njit(double)(x)


def find_in_cache(x):
    return kernel(double)(x)


def messages(client, function):
    reports = []
    with compilation.reporting_compilation(client, reports.append):
        assert client.submit(function, 4, pure=False).result() == 8
    return [(report.stage, report.message) for report in reports]


def test_reporting_compilation__tells_that_workers_compile_and_how_long(client):
    began, ended = messages(client, compile_anew)
    assert began == ("compile", "compiling kernels, once (about 7 s)")
    assert ended[0] == "compile"
    assert re.fullmatch(r"kernels were compiled in \d+ s", ended[1])


def test_reporting_compilation__says_nothing_of_kernels_that_are_cached(client, tmp_path, monkeypatch):
    monkeypatch.setattr("daskw2v.kernels.cache.cache_folder", lambda: str(tmp_path))
    find_in_cache(4)
    assert messages(client, find_in_cache) == []


def test_reporting_compilation__is_said_once_where_calls_are_nested(client):
    outer, inner = [], []
    with (
        compilation.reporting_compilation(client, outer.append),
        compilation.reporting_compilation(client, inner.append),
    ):
        client.submit(compile_anew, 4, pure=False).result()
    assert (len(outer), inner) == (2, [])


def test_reporting_compilation__survives_a_listener_that_raises(client):
    def fail(_):
        raise ValueError

    with (
        pytest.raises(ValueError),
        compilation.reporting_compilation(client, fail),
    ):  # the last word is said by our thread
        assert client.submit(compile_anew, 4, pure=False).result() == 8
    assert client.submit(double, 4).result() == 8


def test_clock__counts_what_was_compiled_meanwhile():
    clock = TaskClock()
    compile_anew(4)
    seconds, compiled = clock.read()
    assert 0 < compiled < seconds


def test_words_per_second__leave_out_what_was_compiled():
    totals = [TaskTotals(8, 2.0, True, 1000, "a", 9.0, 6.0), TaskTotals(8, 2.0, True, 1000, "b", 9.0, 8.0)]
    entry = make_entry(0, RoundReport(10, 0.1, totals, None), totals, 10.0)
    assert entry["compiling"] == 8.0
    assert words_per_second([entry]) == 1000.0
    assert words_per_second([{"words": 50, "seconds": 2.0}]) == 25.0  # of an earlier checkpoint
