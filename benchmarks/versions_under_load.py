"""Readers of versions that change under them: errors and torn versions, which must be none; seconds to see a change.

One process follows what is served and queries it without pause; another opens the model anew for each query. Meanwhile
1,000 publishes and rollbacks change what is served; every tenth adds a version, and deletes all that are not kept.
All parts of a version tell its number, so that a mix of two would be seen.

python -m benchmarks.versions_under_load [--changes 1000] [--interval 0.02] [--pause 0.02] [--json]
"""

import argparse
import logging
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import finish
from benchmarks.options import Smoke, parsed
from daskw2v.models.follower import Follower
from daskw2v.models.store import write_vocabulary
from daskw2v.models.tables import create_model, write_table_rows
from daskw2v.models.vectors import Vectors
from daskw2v.models.versions import Versions, publish
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary

WORDS, DIMENSIONS = 2000, 32
ADD_EVERY = 10  # changes
KEPT = 3  # of the newest versions


@dataclass
class Reading:
    """What a reader met; `changes` are versions and the moments at which they came."""

    kind: str
    queries: int = 0
    torn: int = 0
    errors: list[str] = field(default_factory=list)
    failed_looks: int = 0
    changes: list[tuple[str, float]] = field(default_factory=list)


@dataclass(frozen=True)
class Row:
    """What a reader met, in numbers; seconds are those from a change to its first query."""

    reader: str
    queries: int
    errors: int
    torn: int
    failed_looks: int
    versions: int
    changes_seen: int
    median_seconds: float
    p95_seconds: float
    max_seconds: float


def add_version(work: Store, number: int) -> None:
    """Write and publish a version of that number."""
    name = f"v{number:04}-r"
    store = work / "models" / name
    create_model(store, {"input": (WORDS, DIMENSIONS)}, row_block=WORDS // 4)
    write_table_rows(store, "input", 0, np.full((WORDS, DIMENSIONS), number, np.float32))
    write_vocabulary(store, Vocabulary.from_words([f"{number}-{i}" for i in range(WORDS)], range(WORDS, 0, -1)))
    publish(work / "models", name, {"params": {"seed": number}})


def is_torn(vectors: Vectors) -> bool:
    """Ask vectors for all that tells their version."""
    number = int(vectors.vectors[0, 0])
    found, _ = vectors.nearest(np.ones(DIMENSIONS, np.float32), topn=5)
    words = [vectors.vocabulary.word(int(id_)) for id_ in found]
    return not (
        name_of(vectors) == f"v{number:04}-r"
        and vectors.metadata["params"]["seed"] == number
        and all(word.startswith(f"{number}-") for word in words)
        and bool(np.all(vectors.vectors == number))
    )


def name_of(vectors: Vectors) -> str:
    return str(vectors.url).rsplit("/", 1)[-1]


@contextmanager
def opener(kind: str, work: str, interval: float, reading: Reading) -> Iterator[Callable[[], Vectors]]:
    """Give what returns the vectors to query."""
    if kind == "opens anew":
        yield lambda: Vectors.open(work)
        return

    class Counter(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            reading.failed_looks += 1

    logging.getLogger("daskw2v").addHandler(Counter(logging.WARNING))
    with Follower(work, interval=interval) as follower:
        yield lambda: follower.vectors


def read(kind: str, work: str, interval: float, ready: Event, done: Event, results: Any) -> None:
    """Query until all is done."""
    reading = Reading(kind)
    with opener(kind, work, interval, reading) as current:
        ready.set()
        while not done.is_set():
            reading.queries += 1
            try:
                vectors = current()
                reading.torn += is_torn(vectors)
            except Exception as error:
                reading.errors.append(f"{type(error).__name__}: {error}")
                continue
            if not reading.changes or reading.changes[-1][0] != name_of(vectors):
                reading.changes.append((name_of(vectors), time.time()))
    results.put(reading)


def change(work: Store, changes: int, pause: float) -> list[tuple[str, float]]:
    """Publish, roll back, add and delete; return what was served, and since when."""
    versions, states, served = Versions(work), Path(work.url) / "models" / "state", []
    rng, number = np.random.default_rng(0), KEPT
    for turn in range(changes):
        if turn % ADD_EVERY == 0:
            number += 1
            add_version(work, number)
        elif turn % 2:
            versions.rollback()
        else:
            versions.publish(f"v{rng.integers(number - KEPT + 1, number + 1):04}-r")
        served.append((versions.find("LATEST").name, max(states.glob("*.json")).stat().st_mtime))
        if turn % ADD_EVERY == ADD_EVERY - 1:
            versions.gc(keep=KEPT, min_age=0)
        time.sleep(pause)
    return served


def row_of(reading: Reading, served: list[tuple[str, float]]) -> Row:
    """Put a reader's changes beside those that were made: one is seen if the reader has it before the next comes."""
    delays, ends = [], [*(moment for _, moment in served[1:]), float("inf")]
    for (name, began), ended, before in zip(served, ends, [None, *served], strict=False):
        if before is not None and before[0] == name:
            continue
        delays += [moment - began for seen, moment in reading.changes if seen == name and began <= moment < ended][:1]
    return Row(
        reader=reading.kind,
        queries=reading.queries,
        errors=len(reading.errors),
        torn=reading.torn,
        failed_looks=reading.failed_looks,
        versions=len({name for name, _ in reading.changes}),
        changes_seen=len(delays),
        median_seconds=statistics.median(delays),
        p95_seconds=float(np.quantile(delays, 0.95)),
        max_seconds=max(delays),
    )


def measure(work: Store, changes: int, interval: float, pause: float) -> tuple[list[Row], list[str]]:
    """Return what each reader met, and the messages of errors."""
    for number in range(1, KEPT + 1):
        add_version(work, number)
    context = multiprocessing.get_context("spawn")
    done, results, readers = context.Event(), context.Queue(), []
    for kind in ("follows", "opens anew"):
        ready = context.Event()
        reader = context.Process(target=read, args=(kind, work.url, interval, ready, done, results))
        reader.start()
        ready.wait()
        readers.append(reader)
    served = change(work, changes, pause)
    time.sleep(2 * interval + 1)
    done.set()
    found = sorted((results.get() for _ in readers), key=lambda reading: reading.kind)
    for reader in readers:
        reader.join()
    late = [f"{r.kind}: the last version was never seen" for r in found if r.changes[-1][0] != served[-1][0]]
    return [row_of(reading, served) for reading in found], [m for reading in found for m in reading.errors] + late


SMOKE = Smoke({"changes": 40}, ("follows", "opens anew"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", type=int, default=1000)
    parser.add_argument("--interval", type=float, default=0.02, help="seconds between two looks of the follower")
    parser.add_argument("--pause", type=float, default=0.02, help="seconds after each change")
    options = parsed(parser, SMOKE)
    out = sys.stderr if options.json else sys.stdout
    with tempfile.TemporaryDirectory() as folder:
        rows, problems = measure(Store(folder), options.changes, options.interval, options.pause)
    for row in rows:
        print(
            f"{row.reader}: {row.queries:,} queries, {row.errors} errors, {row.torn} torn, {row.versions} versions; "
            f"{row.changes_seen} of {options.changes} changes seen, after {row.median_seconds:.3f} s (95 %: "
            f"{row.p95_seconds:.3f}, most {row.max_seconds:.3f}); {row.failed_looks} looks failed, and were repeated",
            file=out,
        )
    for problem in problems[:10]:
        print(problem, file=out)
    finish(rows, out, as_json=options.json)
    if problems or any(row.torn for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
