"""The benchmark of kernels for NVIDIA GPUs: what of it needs no GPU, and in Numba's simulator what does."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from daskw2v.errors import Daskw2vError
from daskw2v.kernels.cuda import check_gpu

pytest.importorskip("benchmarks.cuda.__main__", reason="benchmarks need what daskw2v[bench] installs")
ROOT = Path(__file__).parents[2]


def test_command__says_that_there_is_no_gpu():
    try:
        check_gpu()
    except Daskw2vError:
        command = [sys.executable, "-m", "benchmarks.cuda", "--tables", "kernels", "correctness"]
        result = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)
        assert result.returncode == 1
        assert "cuda" in result.stderr
        assert "Traceback" not in result.stderr
        assert "Kernels" not in result.stdout, "nothing was measured"
    else:
        pytest.skip("there is one")


SIMULATED = """
import argparse, sys
from pathlib import Path
from benchmarks.cuda.bench import Bench
from benchmarks.cuda.correctness import correctness
from benchmarks.cuda.speed import speed_of
from daskw2v import Params
options = argparse.Namespace(times=1, dims=[8], vocabularies=[40], tokens=80, parts=0, words=6)
bench = Bench(options, Path(), sys.stdout)
correctness(bench)
assert all(cell < 1e-4 for row in bench.tables[0].rows for cell in row.cells.values())
found = speed_of(bench, Params(vector_size=8, sample=0.01), bench.corpora[0])
assert 0 < found.trained.middle < found.raw.middle
"""


def test_tables__are_printed_in_the_simulator():
    if find_spec("numba_cuda") is None:
        pytest.skip("numba-cuda comes with daskw2v[cuda]")
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    result = subprocess.run(
        [sys.executable, "-c", SIMULATED], cwd=ROOT, env=environment, text=True, capture_output=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("context_matrix") == 2
