"""Compiles the training kernel of a run in another process, while the run reads its text.

On a machine without compiled kernels, this kernel takes as long to compile as all other kernels of a run together.
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
from daskw2v.training.strategies import find_strategy, with_usable_strategies


class CompileAhead:
    """A context manager of the process that compiles a run's kernel: `start` begins it, the end of the block kills it.

    If the process fails, the run compiles the missing kernel itself.

    Parameters
    ----------
    params, resources
        The settings of a run on workers of this machine.
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
        """Start the process once, unless the kernel is compiled, need not be compiled, or could not be stored."""
        params = _predict_params(self._params, self._resources)
        can_compile = self._process is None and sys.executable and is_kept()
        if params is None or not can_compile or mark_file(params).exists():
            return
        self._params = params
        environment = {**os.environ, "PYTHONSAFEPATH": "1"}
        line = [sys.executable, "-m", "daskw2v.training.compile_ahead", json.dumps(params.as_dict())]
        nothing = subprocess.DEVNULL
        with suppress(OSError):  # no memory for another process
            self._process = subprocess.Popen(line, stdin=nothing, stdout=nothing, stderr=nothing, env=environment)

    def wait(self, max_seconds: float = 60.0) -> None:
        """Compile the kernels that read text in this process, then wait for the started process, if there is one.

        After `max_seconds` seconds of waiting the process is killed: the run compiles its kernel itself.
        """
        if self._process is None:
            return
        exercise_text = find_strategy(self._params.strategy.name).exercise_text
        with suppress(Exception):  # the run raises the error
            if exercise_text is not None:
                exercise_text(self._params)
        try:
            self._process.wait(max_seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()


def _predict_params(params: Params, resources: Resources) -> Params | None:
    """Return Params with the strategy that a run will probably have; None if its kernel is not compiled ahead."""
    if not find_device(resources.device.name).runs_cpu_kernels:
        return None
    candidates = with_usable_strategies(params, resources) if params.strategy.is_open else [params]
    has_threads = resources.workers == 1 and (resources.threads or CPU_COUNT) > 1  # of one worker, and several
    same_bits = [way for way in candidates if find_strategy(way.strategy.name).deterministic and has_threads]
    chosen = (same_bits or candidates)[0]
    return None if find_strategy(chosen.strategy.name).exercise is None else chosen


def mark_file(params: Params) -> Path:
    """Return the path of the file that exists once the kernel of Params, which name a strategy, is compiled."""
    features = "-features" if has_features(params) else ""
    name = f"{params.objective.name}-{params.strategy.name}{features}-{sys.implementation.cache_tag}"
    return Path(cache_folder()) / f"{name}.txt"


def compile_kernel(params: Params) -> None:
    """Compile the training kernel of Params whose strategy has `exercise`, and mark it as compiled."""
    exercise = find_strategy(params.strategy.name).exercise
    assert exercise is not None
    exercise(params)
    mark_file(params).touch()


if __name__ == "__main__":
    compile_kernel(Params.from_dict(json.loads(sys.argv[1])))
