"""Compiles the kernel that trains in a process of its own, while the run reads its text.

On a machine that has no kernels yet, this one takes as long as all others of a run together.
"""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from dask.system import CPU_COUNT

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.features.settings import has_features
from daskw2v.kernels.cache import cache_folder, is_kept
from daskw2v.training.devices import find_device
from daskw2v.training.strategies import find_strategy, usable


class CompileAhead:
    """The process that compiles the kernel of a run, if one is needed; it ends with the block.

    Its failure costs nothing but time: the run then compiles the missing kernel.

    Parameters
    ----------
    params, resources
        The run's, on workers of this machine.
    """

    def __init__(self, params: Params, resources: Resources) -> None:
        self._params, self._resources = params, resources
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "CompileAhead":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def start(self) -> None:
        """Start to compile, unless that was done before."""
        params = _foreseen(self._params, self._resources)
        if self._process is not None or params is None or mark(params).exists() or not (sys.executable and is_kept()):
            return
        self._params = params
        environment = {**os.environ, "PYTHONSAFEPATH": "1"}
        line = [sys.executable, "-m", "daskw2v.training.compile_ahead", json.dumps(params.as_dict())]
        nothing = subprocess.DEVNULL
        with suppress(OSError):  # no room for another process
            self._process = subprocess.Popen(line, stdin=nothing, stdout=nothing, stderr=nothing, env=environment)

    def wait(self, longest: float = 60.0) -> None:
        """Wait until the kernel is compiled; meanwhile compile the other kernels of training here.

        After `longest` seconds the process is killed: the run compiles its kernel itself.
        """
        if self._process is None:
            return
        others = find_strategy(self._params.strategy.name).exercise_text
        with suppress(Exception):  # the run raises the error
            if others is not None:
                others(self._params)
        try:
            self._process.wait(longest)
        except subprocess.TimeoutExpired:
            self._process.kill()


def _foreseen(params: Params, resources: Resources) -> Params | None:
    """Return Params with the strategy that a run will probably have; None if its kernel is not compiled here."""
    if not find_device(resources.device.name).runs_cpu_kernels:
        return None
    candidates = usable(params, resources) if params.strategy.is_open else [params]
    alone = resources.workers == 1 and (resources.threads or CPU_COUNT) > 1
    same = [one for one in candidates if find_strategy(one.strategy.name).deterministic and alone]
    chosen = (same or candidates)[0]
    return None if find_strategy(chosen.strategy.name).exercise is None else chosen


def mark(params: Params) -> Path:
    """Return the file that says that the kernel of an objective and a strategy was compiled, and that for features."""
    features = "-features" if has_features(params) else ""
    name = f"{params.objective.name}-{params.strategy.name}{features}-{sys.implementation.cache_tag}"
    return Path(cache_folder()) / f"{name}.txt"


def compile_kernel(params: Params) -> None:
    """Compile the kernel of an objective and a strategy."""
    exercise = find_strategy(params.strategy.name).exercise
    assert exercise is not None
    exercise(params)
    mark(params).touch()


if __name__ == "__main__":
    compile_kernel(Params.from_dict(json.loads(sys.argv[1])))
