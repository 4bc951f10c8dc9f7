"""What a process frees goes back to the system."""

import os
import subprocess
import sys

import psutil
import pytest

from daskw2v.cluster.local import trim_heap

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only glibc is told")

HELD = """
import numpy as np, psutil
from daskw2v.cluster.local import bound_heap
bound_heap()
for _ in range(4):  # by itself, glibc learns from each that is freed to keep the next
    np.ones(3 << 20), np.ones(1 << 20)
before = psutil.Process().memory_info().rss
kept = [np.ones(n) for n in (3 << 20, 1 << 20, 3 << 20, 1 << 10)]
del kept[:3]
print(psutil.Process().memory_info().rss - before)
"""


def held_bytes(**variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")} | variables
    result = subprocess.run([sys.executable, "-c", HELD], env=environment, capture_output=True, text=True, check=True)
    return int(result.stdout)


@pytest.mark.slow
def test_bound_heap__lets_freed_arrays_go_behind_one_that_stays():
    assert held_bytes() < 4 << 20


@pytest.mark.slow
def test_bound_heap__leaves_what_the_environment_says():
    assert held_bytes(MALLOC_MMAP_THRESHOLD_=str(1 << 30), MALLOC_TRIM_THRESHOLD_=str(1 << 30)) > 16 << 20


def test_trim_heap__gives_back_small_pieces_between_others():
    process, pieces = psutil.Process(), [bytes(60_000) for _ in range(2000)]
    last = bytes(60_000)
    held = process.memory_info().rss
    del pieces
    trim_heap()
    assert held - process.memory_info().rss > 80 << 20
    assert len(last) == 60_000
