import os
import subprocess
import sys

import numpy as np
import pytest

peers = pytest.importorskip("benchmarks.peers", reason="no benchmarks here: run pytest as python -m pytest")

# Leaves 20 MB of NaN free in the heap, below a block that keeps malloc from giving them back, and trains.
IN_A_USED_HEAP = """
import ctypes, sys, fasttext
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
blocks = [libc.malloc(100_000) for _ in range(200)]
for block in blocks:
    ctypes.memset(block, 255, 100_000)
for block in blocks[:-1]:
    libc.free(block)
fasttext.train_unsupervised(sys.argv[1], minn=0, maxn=0, bucket=0, thread=2, epoch=1, minCount=1, verbose=0)
"""


def test_fasttext__trains_in_a_heap_that_was_used_before(tmp_path):
    pytest.importorskip("fasttext", reason="benchmarks need it: pip install 'daskw2v[bench]'")
    words = np.random.default_rng(0).integers(0, 2000, (2000, 20))
    text = tmp_path / "text.txt"
    text.write_text("\n".join(" ".join(f"w{i}" for i in line) for line in words.tolist()))
    environment = {**os.environ, **peers.ZEROED}
    command = [sys.executable, "-c", IN_A_USED_HEAP, str(text)]
    run = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
