"""After a warm-up nothing is compiled; what is compiled is not compiled again."""

import os
import subprocess
import sys

import pytest

from daskw2v.errors import ParameterError, StoreError
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.training import warm_up as module
from daskw2v.training.strategies import STRATEGIES
from daskw2v.training.warm_up import list_trainings, warm_up
from tests.support.compiled import PRINT_COMPILED

# Trains by all objectives and strategies, and prints which kernels were compiled.
TRAIN_ALL = (
    PRINT_COMPILED
    + """
from distributed import Client

from daskw2v import Params, Resources, train
from daskw2v.errors import MissingExtraError
from daskw2v.training.warm_up import list_trainings

event.register("numba:compile", Compiled())
with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0") as client:
    for params in list_trainings():
        params = params.replace(vector_size=40, window=3, seed=5)
        try:
            train(folder / "text.txt", work=folder / "work", params=params, resources=Resources(threads=2),
                  client=client, listener=None)
        except MissingExtraError:
            pass
"""
)


@pytest.mark.slow
@pytest.mark.timeout(900)  # all kernels are compiled
def test_warm_up__leaves_nothing_to_compile(tmp_path):
    """For another process, text, length of vectors, window and number of threads."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def run(*command):
        line = [sys.executable, *map(str, command)]
        done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=800, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "compiled in" in run("-m", "daskw2v", "warm-up")
    assert run("-c", TRAIN_ALL, tmp_path) == ""
    assert run("-m", "daskw2v", "warm-up").startswith("All kernels are compiled: ")


def test_list_trainings__has_every_objective_and_strategy():
    assert {params.objective.name for params in list_trainings()} == set(OBJECTIVES)
    assert {params.strategy.name for params in list_trainings()} == set(STRATEGIES)


def test_warm_up__is_done_once_unless_a_file_is_lost(tmp_path, monkeypatch):
    def train_all(work, processes):
        (tmp_path / "module").mkdir(exist_ok=True)
        (tmp_path / "module" / "kernel.nbc").write_text("code")
        yield next(list_trainings()), True

    monkeypatch.setattr(module, "cache_folder", lambda: str(tmp_path))
    monkeypatch.setattr(module, "_train_all", train_all)
    first, again = warm_up(), warm_up()
    assert (len(first.trained), len(again.trained)) == (1, 0)
    (tmp_path / "module" / "kernel.nbc").unlink()
    assert len(warm_up().trained) == 1
    monkeypatch.setattr(sys.implementation, "cache_tag", "another-python")
    assert len(warm_up().trained) == 1, "kernels are of one version of Python"


def test_warm_up__refuses_a_cache_of_this_process_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "is_kept", lambda: False)
    with pytest.raises(StoreError, match=r"cannot be kept.*NUMBA_CACHE_DIR"):
        warm_up()
    with pytest.raises(ParameterError, match="processes=0"):
        warm_up(processes=0)
