"""What an attacker does to a model: files are changed and with_checksum again, so that only limits can refuse them."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import google_crc32c
import numpy as np
from numcodecs import Blosc

from daskw2v.cluster.workers import peak_memory
from daskw2v.models.queries.vectors import Vectors
from daskw2v.store.checksums import add_checksum
from tests.fuzz.folders import write_model

COUNTS = "vocabulary/counts"


def outcomes_of(program, folder):
    """Run a test's module as a program in a process of its own, and return what it prints."""
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    line = [sys.executable, program, str(folder)]
    done = subprocess.run(line, cwd=root, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def attempt(read):
    """Return what came of reading a file, and by how many bytes memory grew meanwhile."""
    if sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text("5")  # the peak is what there is now
    before = peak_memory()
    try:
        outcome = str(read())
    except Exception as error:
        outcome = f"{type(error).__name__}: {error}"
    return outcome, peak_memory() - before


def model_in(folder):
    """Write a small model into a folder; return its version's path."""
    return Path(write_model(folder).url)


def edit(model, node, **changes):
    """Change entries of a node's metadata, and seal them."""
    path = model / node / "zarr.json"
    path.write_bytes(add_checksum(json.dumps(json.loads(path.read_text()) | changes).encode()))


def put_chunk(model, node, content):
    """Replace an array's first chunk, with the checksum that belongs to it."""
    (path,) = (model / node / "c").rglob("0")
    path.write_bytes(content + google_crc32c.value(content).to_bytes(4, "little"))


def grid(*shape):
    """Return metadata of regular chunks."""
    return {"name": "regular", "configuration": {"chunk_shape": list(shape)}}


def codecs(*inner, cname="lz4"):
    """Return metadata of codecs by their names."""
    settings = {"typesize": 8, "cname": cname, "clevel": 5, "shuffle": "shuffle", "blocksize": 0}
    known = {"bytes": {"endian": "little"}, "blosc": settings, "zstd": {"level": 3, "checksum": False}}
    return [{"name": name, "configuration": known.get(name, {})} for name in inner]


def _claim(model):
    """Let a chunk say that it holds 2 GB."""
    packed = bytearray(Blosc("lz4").encode(np.arange(4, dtype=np.int64)))
    packed[4:8] = (0x7FFFFF00).to_bytes(4, "little")
    put_chunk(model, COUNTS, bytes(packed))


def _bomb(model):
    """Let a chunk of some 100 KB hold 64 MB."""
    put_chunk(model, COUNTS, Blosc("lz4", clevel=9).encode(np.zeros(8 << 20, np.int64)))


def _sparse(name):
    def make(model):
        os.truncate(model / name, 1 << 42)

    return make


BOMBS = {
    "claim": _claim,
    "bomb": _bomb,
    "rows": lambda model: edit(model, COUNTS, shape=[10**15], chunk_grid=grid(1 << 24)),
    "rows that fit no memory": lambda model: edit(model, COUNTS, shape=[1 << 40], chunk_grid=grid(1 << 25)),
    "rows that are not there": lambda model: edit(model, COUNTS, shape=[1 << 27], chunk_grid=grid(1 << 20)),
    "tiny chunks": lambda model: edit(model, COUNTS, shape=[1 << 28], chunk_grid=grid(1)),
    "chunk": lambda model: edit(model, COUNTS, chunk_grid=grid(10**12)),
    "columns": lambda model: edit(model, "input", shape=[4, 10**9], chunk_grid=grid(2, 10**9)),
    "manifest": _sparse("manifest.json"),
    "metadata": _sparse("zarr.json"),
    "metadata of an array": _sparse("input/zarr.json"),
    "nesting": lambda model: (model / "manifest.json").write_bytes(b"[" * 10**6),
    "nesting of metadata": lambda model: (model / "input" / "zarr.json").write_bytes(b"[" * 10**6),
}


def main(folder):
    """Open a model of each kind; print what came of it, and by how many bytes memory grew."""
    model_in(Path(folder) / "whole")
    Vectors.open(f"{folder}/whole").most_similar("king")
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    outcomes = {}
    for name, make in BOMBS.items():
        make(model_in(Path(folder) / name))
        outcomes[name] = attempt(lambda name=name: Vectors.open(f"{folder}/{name}", in_memory=True) and "opened")
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1])
