"""What shared memory saves two workers of one host: one array, a round of `averaging`, and a turn of `rotation`.

Words occur about once, so that there is little to train and much to move: 256 MB a worker by default. The same
experiments run with and without shared memory, by turns.

    python -m benchmarks.one_host [--megabytes 256] [--times 3] [--work DIR] [--json]
"""

import argparse
import mmap
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from distributed import Client, Worker, wait

from benchmarks.common import Peaks, cluster_of, finish, spread
from benchmarks.options import Smoke, parsed
from benchmarks.texts import Text, encode_file
from daskw2v.cluster import shared_memory as sharing
from daskw2v.cluster.shared_memory import share
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.store.storage import Store
from daskw2v.training.pipeline import train_model

WIDTH = 100
KNOWN = Params(min_count=1, sample=0)
AVERAGING = KNOWN.replace(vector_size=WIDTH, n_replicas=2, rounds_per_epoch=5, warmup=0)
ROTATION = KNOWN.replace(vector_size=2 * WIDTH, strategy="rotation", n_partitions=2, n_groups=2, passes_per_epoch=4)
KEPT = slice(2, None)  # of rounds or passes: the first compile, and workers have not told each other what they can
MEMORY = "4 GB"  # a limit that nothing comes near, or Dask would spill
WAYS = {"TCP": False, "shared memory": True}


class Spent(NamedTuple):
    """What a step took: seconds, megabytes that workers moved, what of these went over TCP, and the largest worker's
    peak of resident memory, in megabytes."""

    seconds: float
    moved: float
    wired: float
    peak: float


def traffic(dask_worker: Worker) -> tuple[int, int]:
    return dask_worker.transfer_outgoing_bytes_total, sum(e["compressed"] for e in dask_worker.transfer_outgoing_log)


def counted(client: Client, steps: Callable[[], list[float]]) -> Spent:
    """Call what returns the seconds of steps that are alike; return their median, and a step's share of the rest."""
    before, peaks = np.array([*client.run(traffic).values()]).sum(axis=0), Peaks([*client.run(os.getpid).values()])
    seconds = steps()
    peaks.stop()
    moved, wired = (np.array([*client.run(traffic).values()]).sum(axis=0) - before) / len(seconds) / 1e6
    return Spent(statistics.median(seconds[KEPT]), moved, wired, max(peaks.rss.values()) / 1e6)


def move(size: int, client: Client, shared: bool) -> list[float]:
    """Let a worker make an array, and all others take it and read all of it; return the seconds of that."""
    client.run(allow, shared)
    giver, *takers = sorted(client.nthreads())
    seconds = []
    for _ in range(2 + 5):
        wait([client.submit(made, 1 << 16, workers=[name], pure=False) for name in (giver, *takers)])
        rows = client.submit(made, size, workers=[giver], pure=False)
        wait(rows)
        began = time.perf_counter()
        wait([client.submit(read, rows, workers=[name], pure=False) for name in takers])
        seconds.append(time.perf_counter() - began)
        del rows
    return seconds


def allow(shared: bool) -> None:
    """Let this worker give arrays by their place, or only as bytes."""
    sharing._LEAST = mmap.PAGESIZE if shared else 1 << 62


def made(size: int) -> Any:
    return share(np.ones(size // 4, np.float32))


def read(rows: Any) -> float:
    return float(rows.sum())


def train(text: Text, params: Params, seeds: Iterator[int], client: Client, shared: bool) -> list[float]:
    """Train; return the seconds of each round or pass, but for the dealing of pairs."""
    client.run(allow, shared)
    vectors = train_model(
        text.corpus, text.vocabulary, text.work, params.replace(seed=next(seeds)),
        Resources(threads=1, checkpoint_seconds=1e9), client,
    )  # fmt: skip
    history = vectors.metadata["metrics"]["history"]
    (text.work / "models").remove()
    turns = params.n_groups or 1
    return [(entry["seconds"] - entry.get("deal_seconds", 0)) / turns for entry in history for _ in range(turns)]


def write_words(path: Path, n_words: int) -> Path:
    words = np.random.default_rng(0).permutation(2 * n_words) // 2
    path.write_text(
        "\n".join(" ".join(f"w{word}" for word in line) for line in np.array_split(words, len(words) // 20))
    )
    return path


SMOKE = Smoke({"megabytes": 4, "times": 1}, ("one array", "a round of averaging", "a turn of rotation", *WAYS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=256, help="rows of a worker")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--work", type=Path, help="folder for text and work; a temporary one by default")
    options = parsed(parser, SMOKE)
    size, seeds = options.megabytes * 1_000_000, iter(range(1, 1000))
    out, rows = sys.stderr if options.json else sys.stdout, list[dict[str, Any]]()
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        text = encode_file(write_words(Path(folder) / "text", size // (2 * 4 * WIDTH)), Store(f"{folder}/work"), KNOWN)
        steps = {
            "one array, one taker": (2, partial(move, size)),
            "one array, four takers": (5, partial(move, size)),
            "a round of averaging, two workers": (2, partial(train, text, AVERAGING, seeds)),
            "a turn of rotation, two workers": (2, partial(train, text, ROTATION, seeds)),
        }
        print(f"{text.vocabulary.size:,} words of {options.megabytes} MB a worker\n", file=out)
        print("| | by | seconds | MB moved | MB over TCP | ns a byte moved | largest worker's peak, MB |", file=out)
        print("|---|---|---|---|---|---|---|", file=out)
        for name, (n_workers, step) in steps.items():
            with cluster_of(n_workers, MEMORY) as client:
                runs = {way: partial(counted, client, partial(step, client, shared)) for way, shared in WAYS.items()}
                found = {way: [run() for _ in range(options.times)] for way, run in runs.items()}
            for way, spent in found.items():
                s = Spent(*(statistics.median(values) for values in zip(*spent, strict=True)))
                print(
                    f"| {name} | {way} | {s.seconds:.3f} ({spread([f.seconds for f in spent])}) | {s.moved:.0f} | "
                    f"{s.wired:.1f} | {s.seconds / s.moved * 1e3:.2f} | {s.peak:.0f} |",
                    file=out, flush=True,
                )  # fmt: skip
                rows.append({"step": name, "by": way, **s._asdict()})
    finish(rows, out, as_json=options.json)


if __name__ == "__main__":
    main()
