"""Nights on events: what a night reads and takes, beside a training from scratch, and how good its items are.

Half of the items that users look at in a session are of one kind, the others of any; some sessions go on over
midnight. Each day is a Parquet file, with a column that nobody reads, and has items that were not there before. A night
is one command, `daskw2v retrain --config`. After it the file is replaced by zeros of the same size and time: whoever
read it again would fail. In the end one command trains from scratch on the same events. `alike` is the share of the ten
items nearest to an item that are of its kind, for two thousand items; `read` is what the command says.

    python -m benchmarks.events [--mb 1000] [--days 7] [--kinds 500] [--params '{"vector_size": 50}']
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as arrow
from pyarrow import parquet

from benchmarks.harness import Benchmark, Session, Smoke
from benchmarks.tables import Cell
from benchmarks.texts import MB
from daskw2v.models.vectors import Vectors

OF_KIND = 100  # items of a kind at first
NEW = 5  # items of each kind that a new day brings, for every hundred
STRAY = 0.5  # share of events whose item is of any kind
DAY = 86_400_000  # milliseconds
GAP = 30  # minutes
BYTES = 37  # of an event in a file
READ = re.compile(r"sessions: .*read (.*) of (.*) in (\d+) of (\d+) parts?")


def days(n: int, events: int, n_kinds: int) -> Iterator[dict[str, Any]]:
    """Yield the columns of each day."""
    random, size = np.random.default_rng(1), max(events // 10, 1)
    late: dict[str, Any] = {}
    for day in range(n):
        lengths = 2 + random.geometric(1 / 9, size)
        session = np.repeat(np.arange(size), lengths)
        kinds = random.integers(0, n_kinds, size)
        # Popularity of items falls with their rank: squares of uniform numbers are dense near 0
        rank = (random.random(len(session)) ** 2 * (OF_KIND + day * NEW)).astype(np.int64)
        gaps = np.minimum(random.exponential(60_000, len(session)), GAP * 50_000)
        within = np.cumsum(gaps) - np.repeat(np.cumsum(gaps)[np.cumsum(lengths) - lengths], lengths)
        kind = np.where(random.random(len(session)) < STRAY, random.integers(0, n_kinds, len(session)), kinds[session])
        found = {
            "user": np.repeat(random.integers(0, 10 * size, size), lengths),
            "item": rank * n_kinds + kind,
            "at": (np.repeat(random.random(size) * DAY, lengths) + within + day * DAY).astype(np.int64),
        }
        found = {name: np.append(late.get(name, np.empty(0, np.int64)), values) for name, values in found.items()}
        today, order = found["at"] < (day + 1) * DAY, np.argsort(found["at"], kind="stable")
        late = {name: values[~today] for name, values in found.items()}
        yield {name: values[order][today[order]] for name, values in found.items()}


def write_day(path: Path, columns: dict[str, Any], random: np.random.Generator) -> None:
    """Write a file, with a column that nobody reads."""
    n = len(columns["user"])
    noise = arrow.FixedSizeBinaryArray.from_buffers(arrow.binary(20), n, [None, arrow.py_buffer(random.bytes(20 * n))])
    at = arrow.array(columns["at"]).cast(arrow.timestamp("ms"))
    parquet.write_table(arrow.table({**columns, "at": at, "agent": noise}), path, row_group_size=1 << 18)


def alike(work: Path, n_kinds: int) -> tuple[int, float]:
    """Return the number of items, and the share of an item's nearest ones that are of its kind."""
    vectors = Vectors.open(str(work))
    kinds = np.array(vectors.vocabulary.words).astype(np.int64) % n_kinds
    some = np.random.default_rng(3).choice(len(kinds), min(2000, len(kinds)), replace=False)
    rows = np.asarray(vectors.vectors)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    found = 0.0
    for part in np.array_split(some, 20):
        near = rows[part] @ rows.T
        near[np.arange(len(part)), part] = -1
        found += (kinds[np.argpartition(near, -10, axis=1)[:, -10:]] == kinds[part][:, None]).mean(axis=1).sum()
    return len(kinds), found / len(some)


def retrain(inputs: Path, work: Path, options: argparse.Namespace) -> tuple[float, list[Cell]]:
    """Retrain on the files that are there, by one command; return seconds, and the other cells of a row."""
    lines = {"inputs": [f"{inputs}/*.parquet"], "work": str(work), **options.params}
    config = work.with_suffix(".toml")
    config.write_text(
        "".join(f"{key} = {json.dumps(value)}\n" for key, value in lines.items())
        + f'[events]\ntime = "at"\ngap = "{GAP} min"\nper = "file"\n'
    )
    began, words = time.perf_counter(), [sys.executable, "-m", "daskw2v", "retrain", "--config", str(config)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    seconds, said = time.perf_counter() - began, READ.search(done.stderr)
    if done.returncode or said is None:
        sys.exit(f"{' '.join(words)} ended with {done.returncode}: {done.stderr[-2000:]}")
    read, of, made, parts = said.groups()
    return seconds, [read, of, f"{made} of {parts}", *alike(work, options.kinds)]


def spend(path: Path, kept: Path) -> None:
    """Move a file away, and leave zeros of the same size and time in its place."""
    was = path.stat()
    path.rename(kept / path.name)
    with path.open("wb") as file:
        file.truncate(was.st_size)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def measure(session: Session) -> None:
    options = session.options
    session.text = f"{options.mb:g} MB of events in {options.days} daily files, drawn at random"
    table = session.table("Nights on events", ("s", "read", "of", "parts made", "items", "alike"))
    inputs, kept, random = session.fresh("events"), session.fresh("kept"), np.random.default_rng(2)
    for number, columns in enumerate(days(options.days, int(options.mb * MB / options.days / BYTES), options.kinds), 1):
        path = inputs / f"day-{number}.parquet"
        write_day(path, columns, random)
        night, cells = retrain(inputs, session.folder / "work", options)
        table.row(f"night {number}", night, *cells)
        spend(path, kept)
    scratch, cells = retrain(kept, session.folder / "scratch", options)
    table.row("from scratch", scratch, *cells)
    session.note(f"The last night takes {night / scratch:.2f} of a training from scratch.")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mb", type=float, default=1000, help="megabytes of files")
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--kinds", type=int, default=500, help="of items, a hundred of each on the first day")
    settings = {"vector_size": 50, "epochs": 2}
    parser.add_argument("--params", type=json.loads, default=settings, help="fields of Params and Resources, as JSON")


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/sequences", "daskw2v/retraining"),
    Smoke(
        {"mb": 6, "days": 2, "kinds": 20, "params": {"vector_size": 20, "epochs": 3, "threads": 1}},
        ("night 2", "from scratch"),
    ),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
