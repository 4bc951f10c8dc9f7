"""Seven nights on events: what a night reads and takes, beside a training from scratch, and how good its items are.

Half of the items that users look at in a session are of one kind, the others of any; some sessions go on over
midnight. Each day is a Parquet file, with a column that nobody reads, and has items that were not there before. A night
is one command, `daskw2v retrain --config`. After it the file is replaced by zeros of the same size and time: whoever
read it again would fail. In the end one command trains from scratch on the same events. `alike` is the share of the ten
items nearest to an item that are of its kind, for two thousand items; `read` is what the command says.

    python -m benchmarks.events [--mb 1000] [--days 7] [--kinds 500] [--params '{"vector_size": 50}'] [--json]
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import finish
from benchmarks.options import Smoke, parsed
from daskw2v.extras import needed
from daskw2v.models.vectors import Vectors

OF_KIND = 100  # items of a kind at first
NEW = 5  # items of each kind that a new day brings, for every hundred
STRAY = 0.5  # share of events whose item is of any kind
DAY = 86_400_000  # milliseconds
GAP = 30  # minutes
BYTES = 37  # of an event in a file
PARAMS = {"vector_size": 50, "epochs": 2}
READ = re.compile(r"sessions: .*read (.*) of (.*) in (\d+) of (\d+) parts?")


@dataclass(frozen=True)
class Night:
    """A command: seconds; what it says of reading; items of the version, and how many neighbours are of their kind."""

    night: str
    seconds: float
    read: str
    of: str
    parts: str
    items: int
    alike: float


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


def write_days(folder: Path, n: int, size: float, n_kinds: int) -> list[Path]:
    """Write a file for each day, `size` bytes in all."""
    arrow, parquet = needed("pyarrow", "events"), needed("pyarrow.parquet", "events")
    random, paths = np.random.default_rng(2), []
    for day, columns in enumerate(days(n, int(size / n / BYTES), n_kinds)):
        columns["at"] = arrow.array(columns["at"]).cast(arrow.timestamp("ms"))
        noise = random.bytes(20 * len(columns["user"]))
        columns["agent"] = arrow.FixedSizeBinaryArray.from_buffers(
            arrow.binary(20), len(columns["user"]), [None, arrow.py_buffer(noise)]
        )
        paths.append(folder / f"day-{day}.parquet")
        parquet.write_table(arrow.table(columns), paths[-1], row_group_size=1 << 18)
    return paths


def alike(work: Path, n_kinds: int) -> tuple[int, float]:
    """Return the number of items, and the share of an item's nearest ones that are of its kind."""
    vectors = Vectors.open(str(work))
    items = vectors.vocabulary.words
    some = np.random.default_rng(3).choice(len(items), min(2000, len(items)), replace=False)
    rows = np.asarray(vectors.vectors)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    kinds = np.array(items).astype(np.int64) % n_kinds
    found = 0.0
    for part in np.array_split(some, 20):
        near = rows[part] @ rows.T
        near[np.arange(len(part)), part] = -1
        found += (kinds[np.argpartition(near, -10, axis=1)[:, -10:]] == kinds[part][:, None]).mean(axis=1).sum()
    return len(items), found / len(some)


def run(name: str, config: Path, inputs: Path, work: Path, params: dict[str, Any], n_kinds: int) -> Night:
    """Retrain on the files that are there, by one command."""
    lines = {"inputs": [f"{inputs}/*.parquet"], "work": str(work), **params}
    config.write_text(
        "".join(f"{key} = {json.dumps(value)}\n" for key, value in lines.items())
        + f'[events]\ntime = "at"\ngap = "{GAP} min"\nper = "file"\n'
    )
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "daskw2v", "retrain", "--config", str(config)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    seconds, said = time.perf_counter() - began, READ.search(done.stderr)
    if done.returncode or said is None:
        sys.exit(f"{name} ended with {done.returncode}: {done.stderr[-2000:]}")
    read, of, made, parts = said.groups()
    return Night(name, seconds, read, of, f"{made} of {parts}", *alike(work, n_kinds))


def spend(path: Path, kept: Path) -> None:
    """Move a file away, and leave zeros of the same size and time in its place."""
    was = path.stat()
    path.rename(kept / path.name)
    with path.open("wb") as file:
        file.truncate(was.st_size)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def measure(folder: Path, options: argparse.Namespace, out: Any) -> list[Night]:
    """Run all nights, and from scratch."""
    coming, inputs, kept = (folder / name for name in ("coming", "events", "kept"))
    for place in (coming, inputs, kept):
        place.mkdir()
    found = list[Night]()

    def tell(night: Night) -> None:
        found.append(night)
        print(
            f"{night.night}: {night.seconds:.0f} s, read {night.read} of {night.of} ({night.parts} parts), "
            f"{night.items:,} items, alike {night.alike:.3f}",
            file=out, flush=True,
        )  # fmt: skip

    for day, path in enumerate(write_days(coming, options.days, options.mb * 1e6, options.kinds), 1):
        file = path.rename(inputs / path.name)
        tell(run(f"night {day}", folder / "nightly.toml", inputs, folder / "work", options.params, options.kinds))
        spend(file, kept)
    tell(run("from scratch", folder / "full.toml", kept, folder / "scratch", options.params, options.kinds))
    print(f"the last night takes {found[-2].seconds / found[-1].seconds:.2f} of a training from scratch", file=out)
    return found


_SMOKE = {"vector_size": 20, "epochs": 3, "threads": 1}
SMOKE = Smoke({"mb": 6, "days": 2, "kinds": 20, "params": _SMOKE}, ("night 2", "from scratch"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=float, default=1000, help="megabytes of files")
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--kinds", type=int, default=500, help="of items, a hundred of each on the first day")
    parser.add_argument("--params", type=json.loads, default=PARAMS, help="fields of Params and Resources, as JSON")
    options = parsed(parser, SMOKE)
    out = sys.stderr if options.json else sys.stdout
    with tempfile.TemporaryDirectory() as folder:
        nights = measure(Path(folder), options, out)
    finish(nights, out, as_json=options.json)


if __name__ == "__main__":
    main()
