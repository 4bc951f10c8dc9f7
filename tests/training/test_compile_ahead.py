"""The kernel that trains is compiled beside the reading of text, where there is none yet."""

import os
import shutil
import stat
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from daskw2v import Params, Resources
from daskw2v.training import compile_ahead
from daskw2v.training.compile_ahead import CompileAhead, compile_kernel, mark_file
from daskw2v.training.devices.exercise import exercise_distribution, exercise_partitions
from daskw2v.training.strategies import STRATEGIES
from tests.support.compiled import PRINT_COMPILED
from tests.support.refusals import refusal

# Trains by the objective and the strategy that are named, and prints which kernels are compiled
TRAIN = (
    PRINT_COMPILED
    + """
from daskw2v import Params, Resources, train
from daskw2v.training.compile_ahead import compile_kernel
from daskw2v.training.strategies import find_strategy

params = Params(vector_size=16, min_count=1, epochs=1, objective=sys.argv[2], strategy=sys.argv[3])
compile_kernel(params)
others = find_strategy(params.strategy.name).exercise_text
if others is not None:
    others(params)
event.register("numba:compile", Compiled())
train(folder / "text.txt", work=folder / "work", params=params.replace(seed=5, window=3),
      resources=Resources(threads=2), listener=None)
"""
)


READING, TRAINING = "daskw2v.shards.whitespace", ("daskw2v.objectives", "daskw2v.sampling.pairs")


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """A cache that keeps kernels from case to case, but for those that a case is about."""
    return tmp_path_factory.mktemp("kernels")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("objective", "strategy"),
    [("sgns", "rotation"), ("sg_hs", "rotation"), ("cbow_ns", "averaging"), ("sg_hs", "averaging")],
)
def test_exercise__compiles_what_trains(tmp_path, kernels, objective, strategy):
    for module in kernels.glob("*/*"):
        if module.name.startswith((READING, *TRAINING)):
            shutil.rmtree(module)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(kernels)}
    line = [sys.executable, "-c", TRAIN, str(tmp_path), objective, strategy]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=300, check=True)
    compiled = set(done.stdout.split())
    assert READING in compiled, "what reads text is compiled by the run"
    assert not {name for name in compiled if name.startswith(TRAINING)} - {
        "daskw2v.objectives.base",  # first rows
        "daskw2v.objectives.cpu.scratch",  # of several threads
    }


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(compile_ahead, "cache_folder", lambda: str(tmp_path))
    return tmp_path


@pytest.fixture
def python(tmp_path, monkeypatch):
    """A Python that writes its number and what it is given, and never ends."""
    program = tmp_path / "python"
    lines = "#!/bin/sh", f"echo $* > {tmp_path}/given", f"echo $$ > {tmp_path}/number", "exec sleep 1000", ""
    program.write_text("\n".join(lines))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "executable", str(program))
    return program


def number_of(tmp_path):
    deadline = time.monotonic() + 60
    while not (tmp_path / "number").exists() or not (tmp_path / "number").read_text().strip():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return int((tmp_path / "number").read_text())


@pytest.mark.parametrize(
    ("changes", "threads", "strategy"),
    [
        ({}, 2, "rotation"),
        ({}, 1, "averaging"),
        ({"objective": "cbow_hs"}, 2, "averaging"),
        ({"strategy": "averaging"}, 2, "averaging"),
    ],
)
def test_process__compiles_the_strategy_that_auto_will_choose_and_ends_with_the_run(
    cache, python, tmp_path, changes, threads, strategy
):
    with CompileAhead(Params(**changes), Resources(threads=threads)) as ahead:
        ahead.start()
        ahead.start()
        number = number_of(tmp_path)
        assert f'"strategy": "{strategy}"' in (tmp_path / "given").read_text()
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


@pytest.mark.parametrize(
    ("params", "resources"),
    [
        (Params(), Resources(device="cuda")),
        (Params(strategy="columns", objective="context_matrix"), Resources()),
    ],
)
def test_process__is_not_started_where_its_kernel_is_not_used(cache, python, params, resources):
    with CompileAhead(params, resources) as ahead:
        ahead.start()
        assert ahead._process is None


def test_process__is_not_started_where_the_kernel_is_there(cache, python):
    params = Params(strategy="averaging", vector_size=16)
    assert not mark_file(params).exists()
    compile_kernel(params)
    assert mark_file(params).exists()
    with CompileAhead(params, Resources()) as ahead:
        ahead.start()
        assert ahead._process is None


def test_process__is_not_started_where_nothing_is_kept(cache, python, monkeypatch):
    monkeypatch.setattr(compile_ahead, "is_kept", lambda: False)
    with CompileAhead(Params(), Resources()) as ahead:
        ahead.start()
        assert ahead._process is None


def test_run__goes_on_where_nothing_can_be_compiled_meanwhile(cache, monkeypatch):
    def fail(params):
        raise RuntimeError("no compiler")

    rotation = replace(STRATEGIES["rotation"], exercise_text=fail)
    monkeypatch.setattr(compile_ahead, "find_strategy", lambda name: rotation)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with CompileAhead(Params(), Resources(threads=2)) as ahead:
        ahead.start()
        ahead.wait()


@pytest.mark.parametrize("n_partitions", [1, 8, 1000])
def test_exercise__takes_any_number_of_partitions(n_partitions):
    assert refusal(exercise_distribution, Params(n_partitions=n_partitions)) is None
    assert refusal(exercise_partitions, Params(n_partitions=n_partitions, vector_size=16)) is None


@pytest.mark.parametrize("program", ["/bin/false", "/no/such/program"])
def test_process__that_fails_does_no_harm(cache, monkeypatch, program):
    monkeypatch.setattr(sys, "executable", program)
    params = Params(vector_size=16)
    with CompileAhead(params, Resources(threads=2)) as ahead:
        ahead.start()
        ahead.wait()
    assert not mark_file(params.replace(strategy="rotation")).exists()


def test_run__waits_for_its_kernel_for_some_time(cache, python, tmp_path):
    with CompileAhead(Params(strategy="averaging"), Resources()) as ahead:
        ahead.start()
        number = number_of(tmp_path)
        ahead.wait(0.01)
        assert ahead._process.wait(60) < 0, "it compiles no longer what the run compiles now"
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)


def test_strategies__name_what_takes_long_to_compile():
    assert {name for name, strategy in STRATEGIES.items() if strategy.exercise} == {"averaging", "rotation"}
