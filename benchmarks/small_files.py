"""Many small files: seconds to find them, to divide them into blocks, and to encode them on one thread.

Each file has a line of ten words. Finding and planning are of --files, encoding, which does both too, is of --encoded.

    python -m benchmarks.small_files [--files 100000] [--encoded 5000] [--json]
"""

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.common import finish, one_thread
from benchmarks.options import Smoke, parsed
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.sources import find_sources, plan_blocks
from daskw2v.shards.encode import build_corpus
from daskw2v.store.storage import Store

_IN_FOLDER = 1000  # files


@dataclass(frozen=True)
class Row:
    """What a step took: seconds, and seconds of processor time."""

    step: str
    files: int
    seconds: float
    cpu: float
    tasks: int | None = None


class Clock:
    """Tells what passed since it was asked the last time."""

    def __init__(self) -> None:
        self._at = time.perf_counter(), time.process_time()

    def lap(self) -> tuple[float, float]:
        """Return seconds, and seconds of processor time."""
        before, self._at = self._at, (time.perf_counter(), time.process_time())
        return self._at[0] - before[0], self._at[1] - before[1]


def write_files(folder: Path, n: int) -> Path:
    """Write files of a line each."""
    words = np.random.default_rng(0).zipf(1.5, (n, 10)) % 5000
    for number, line in enumerate(words.tolist()):
        place = folder / f"{number // _IN_FOLDER:05d}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number:08d}.txt").write_text(" ".join(map(str, line)) + "\n")
    return folder


def measure(folder: Path, n_files: int, n_encoded: int) -> list[Row]:
    """Return a row for each step."""
    resources = Resources(threads=1)
    text = str(write_files(folder / "text", n_files))
    clock = Clock()
    sources = find_sources(text)
    rows = [Row("find", len(sources), *clock.lap())]
    plan_blocks(sources, resources.block_bytes)
    rows.append(Row("plan", len(sources), *clock.lap()))
    some = str(write_files(folder / "some", n_encoded))
    with one_thread() as client:
        build_corpus(some + "/00000/0000000*.txt", Store(str(folder / "warm")), Params(), resources, client, None)
        clock.lap()
        corpus = build_corpus(some, Store(str(folder / "work")), Params(), resources, client, None)
        seconds, cpu = clock.lap()
    return [*rows, Row("encode", n_encoded, seconds, cpu, len({shard.block for shard in corpus.shards}))]


SMOKE = Smoke({"files": 2000, "encoded": 600}, ("find", "plan", "encode"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--encoded", type=int, default=5000)
    options = parsed(parser, SMOKE)
    out = sys.stderr if options.json else sys.stdout
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(Path(folder), options.files, options.encoded)
    for row in rows:
        tasks = "" if row.tasks is None else f", {row.tasks} tasks"
        print(
            f"{row.step}: {row.files:,} files in {row.seconds:.1f} s, {row.cpu:.1f} s of processor time{tasks}",
            file=out,
        )
    finish(rows, out, as_json=options.json)


if __name__ == "__main__":
    main()
