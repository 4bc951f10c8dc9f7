"""Other systems, tested by hiding from a process on Linux what they lack (`tests/support/elsewhere.py`)."""

import ntpath
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from daskw2v.store import urls

ROOT = Path(__file__).parents[1]
HIDDEN = """
import asyncio, multiprocessing.resource_tracker, sys, threading
import distributed, fsspec.implementations.local, numba, numba.np.ufunc, psutil, scipy.special, zarr.storage
from tests.support.elsewhere import hide

asyncio.new_event_loop().close()  # the first one chooses its kind by the platform
work, text, platform = sys.argv[1:]
hide(platform)
"""


def run(lines, *arguments):
    """Run some lines in a process from which a system's parts are hidden; return what it printed."""
    command = [sys.executable, "-W", "error", "-c", HIDDEN + lines, *map(str, arguments)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


IMPORT = """
import importlib, pkgutil
import daskw2v

found = 0
for module in pkgutil.walk_packages(daskw2v.__path__, "daskw2v."):
    if module.name.endswith("__main__") or "cuda" in module.name:  # GPUs are used on Linux
        continue
    importlib.import_module(module.name)
    found += 1
assert found > 300, found
"""
SERVE = """
import numpy as np
from daskw2v import Follower, Vectors, Versions, build_index, export, import_vectors
from daskw2v.models.stored.store import write_vocabulary
from daskw2v.models.stored.tables import create_model, write_table_rows
from daskw2v.models.versions.versions import publish
from daskw2v.store import durability, limits
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary

store, rows = Store(work), np.random.default_rng(0).standard_normal((6, 4), np.float32)
for name in ("v0001-a", "v0002-a"):
    create_model(store / "models" / name, {"input": rows.shape}, row_block=2)
    write_table_rows(store / "models" / name, "input", 0, rows)
    write_vocabulary(store / "models" / name, Vocabulary.from_words([*"abcdef"], range(6, 0, -1)))
    publish(store / "models", name, {})
assert not durability.is_local(work)
vectors = Vectors.open(work)
assert np.array_equal(vectors["a"], rows[0]) and len(vectors.most_similar("a", topn=3)) == 3
assert np.array_equal(Vectors.open(work, in_memory=False)["f"], rows[5])
for name in ("v.txt", "v.bin", "v.safetensors", "v.faiss"):
    export(vectors, f"{work}/{name}")
assert np.allclose(import_vectors(f"{work}/v.txt").vectors, rows)
export(vectors, f"{work}/static", "static")
build_index(work, kind="int8")
with Follower(work, interval=3600) as follower:
    Versions.open(work).rollback()
    assert follower.look() and follower.version == "v0001-a"
assert limits.free_memory() > 0
"""
TRAIN = """
import daskw2v
from daskw2v.cluster.workers import peak_memory

params = daskw2v.Params(vector_size=4, min_count=1, sample=0, epochs=1, tokenizer="regex:[a-z]+")
vectors = daskw2v.train(text, work=work, params=params, resources=daskw2v.Resources(threads=1))
assert vectors["two"].shape == (4,) and peak_memory() > 0
"""
REFUSED = """
import daskw2v, pytest
from daskw2v.errors import ClusterError, StoreError
from daskw2v.store.storage import Store

for call in (lambda: daskw2v.train(text, work=work), lambda: daskw2v.walks(text, work=work)):
    with pytest.raises(ClusterError, match="not on Windows.*Subsystem for Linux"):
        call()
for name in ("..\\\\a", "C:a"):
    with pytest.raises(StoreError, match="leads out of its folder"):
        Store(work) / name
"""


@pytest.mark.parametrize(
    ("platform", "lines"),
    [("darwin", IMPORT + SERVE), ("win32", IMPORT + SERVE), ("darwin", TRAIN), ("win32", REFUSED)],
    ids=["macOS imports and serves", "Windows imports and serves", "macOS trains", "Windows refuses to train"],
)
def test_platform(tmp_path, platform, lines):
    text = tmp_path / "text.txt"
    text.write_text("one two three four\n" * 50)
    run(lines, tmp_path / "work", text, platform)


def test_make_absolute__divides_by_slashes_on_windows(monkeypatch):
    monkeypatch.setattr(urls, "os", SimpleNamespace(path=ntpath, sep="\\"))
    assert urls.make_absolute(r"C:\models\work") == "C:/models/work"
    assert urls.make_absolute("s3://bucket/work") == "s3://bucket/work"
