"""Text of a file against the same text in collections, tables and iterables: seconds to encode it, memory, vectors.

Each run is a process of its own, with one worker process of one thread. Encoding has all that comes before ids: what
Dask computes, what is written to the work directory, and reading that. `client` is the most memory of the process that
calls, `worker` that of the other; both have what they import. The digest is that of the vectors after an epoch: it has
to be one and the same. `datasets` and `polars` are left out where they are not installed.

    python -m benchmarks.inputs [--parts 10] [--times 3] [--inputs file bag ...] [--json]
"""

import argparse
import hashlib
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import alternate, cluster_of, finish, spread, write_text
from benchmarks.options import LEFT_OUT, Smoke, parsed
from daskw2v.cluster import peak_memory
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.extras import needed
from daskw2v.shards.encode import build_corpus
from daskw2v.store.storage import Store
from daskw2v.training.pipeline import train

PARAMS, RESOURCES = Params(vector_size=50, epochs=1, strategy="averaging"), Resources(threads=1)
_PARTITION = 16 << 20  # bytes of text


class Took(NamedTuple):
    """Seconds of encoding; most memory of both processes, in MB; digest of the vectors."""

    seconds: float
    client: float
    worker: float
    digest: str


@dataclass(frozen=True)
class Row:
    """The median of the runs of an input, its largest peaks of memory, and what its vectors are."""

    input: str
    mb_per_second: float
    spread: str
    client_mb: float
    worker_mb: float
    digest: str


def _frame(text: Path) -> Any:
    return needed("pandas", "bench").DataFrame({"text": text.read_text(encoding="utf-8").splitlines()})


def _dask_frame(text: Path) -> Any:
    """Return a DataFrame whose partitions the worker reads from the file."""
    return needed("dask.bag", "bench").read_text(str(text), blocksize=_PARTITION).to_dataframe(columns=["text"])


def _lines(text: Path) -> Iterator[str]:
    with text.open(encoding="utf-8") as file:
        yield from file


INPUTS: dict[str, Callable[[Path], Any]] = {
    "file": str,
    "bag": lambda text: needed("dask.bag", "bench").read_text(str(text), blocksize=_PARTITION),
    "bag of tokens": lambda text: needed("dask.bag", "bench").read_text(str(text), blocksize=_PARTITION).map(str.split),
    "Dask's DataFrame": _dask_frame,
    "pandas": _frame,
    "Arrow": lambda text: needed("pyarrow", "arrow").table({"text": text.read_text(encoding="utf-8").splitlines()}),
    "polars": lambda text: needed("polars", "bench").from_pandas(_frame(text)),
    "dataset": lambda text: needed("datasets", "bench").Dataset.from_pandas(_frame(text)),
    "generator": _lines,
    "generator of tokens": lambda text: map(str.split, _lines(text)),
}
_PACKAGES = {"polars": "polars", "dataset": "datasets"}


def run(name: str, text: Path, folder: Path) -> Took:
    """Encode an input and train an epoch."""
    with cluster_of(1) as client:
        store = Store(tempfile.mkdtemp(dir=folder))
        inputs = INPUTS[name](text)
        began = time.perf_counter()
        build_corpus(inputs, store, PARAMS, RESOURCES, client)
        seconds = time.perf_counter() - began
        (worker,) = client.run(peak_memory).values()
        memory = peak_memory()
        vectors = train(INPUTS[name](text), work=store.url, params=PARAMS, resources=RESOURCES, client=client)
        digest = hashlib.blake2b(np.asarray(vectors.vectors).tobytes(), digest_size=4).hexdigest()
        return Took(seconds, memory / 1e6, worker / 1e6, digest)


def measure(name: str, text: Path, folder: str) -> Took:
    """Run an input in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.inputs", "--child", name, str(text), folder]
    return Took(*json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def compare(text: Path, inputs: list[str], times: int, folder: str) -> list[Row]:
    """Measure all inputs in turn."""
    size = text.stat().st_size / 1e6
    found = alternate({name: partial(measure, name, text, folder) for name in inputs}, times)
    return [
        Row(
            name,
            statistics.median(size / took.seconds for took in results),
            spread([size / took.seconds for took in results]),
            max(took.client for took in results),
            max(took.worker for took in results),
            " ".join(sorted({took.digest for took in results})),
        )
        for name, results in found.items()
    ]


_SMOKE = ["file", "bag", "pandas", "generator of tokens"]  # written by workers and here; texts, tokens, tables
SMOKE = Smoke({"parts": 0.03, "times": 1, "inputs": _SMOKE}, tuple(_SMOKE))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=float, default=10, help="tenths of the 100 MB corpus")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--inputs", nargs="+", choices=INPUTS, default=list(INPUTS))
    parser.add_argument("--child", nargs=3, metavar=("INPUT", "TEXT", "FOLDER"), help=argparse.SUPPRESS)
    options = parsed(parser, SMOKE)
    if options.child:
        name, text, folder = options.child
        print(json.dumps(run(name, Path(text), Path(folder))))
        return
    missing = [name for name, package in _PACKAGES.items() if not importlib.util.find_spec(package)]
    for name in set(missing).intersection(options.inputs):
        print(f"{LEFT_OUT}{name}, as {_PACKAGES[name]} is not installed", file=sys.stderr)
    inputs = [name for name in options.inputs if name not in missing]
    with tempfile.TemporaryDirectory() as folder:
        rows = compare(write_text(Path(folder) / "wiki.txt", options.parts), inputs, options.times, folder)
    out = sys.stderr if options.json else sys.stdout
    for row in rows:
        print(
            f"{row.input}: {row.mb_per_second:.0f} MB/s ({row.spread}), client {row.client_mb:.0f} MB, "
            f"worker {row.worker_mb:.0f} MB, digest {row.digest}",
            file=out,
        )
    finish(rows, out, as_json=options.json)


if __name__ == "__main__":
    main()
