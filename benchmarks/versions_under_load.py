"""Readers of versions that change under them: errors and torn versions, which must be none; seconds to see a change.

One process follows what is served and queries it without pause; another opens the model anew for each query. Meanwhile
publishes and rollbacks change what is served; every tenth change adds a version, and deletes all that are not kept.
All parts of a version tell its number, so that a mix of two would be seen. A change is seen if the reader has it before
the next comes.

    python -m benchmarks.versions_under_load [--changes 1000] [--interval 0.02] [--pause 0.02]
"""

import argparse
import multiprocessing
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark, Session, Smoke
from benchmarks.tables import Cell, Spread
from daskw2v.models.follower import Follower
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.store import write_vocabulary
from daskw2v.models.stored.tables import create_model, write_table_rows
from daskw2v.models.versions.versions import Versions, publish
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary

WORDS, DIMENSIONS = 2000, 32
ADD_EVERY = 10  # changes
KEPT = 3  # of the newest versions
COLUMNS = ("queries", "errors", "torn", "versions seen", "changes", "changes seen", "seconds until seen")
READERS = ("follows", "opens anew")


@dataclass
class Reading:
    """What a reader met; `changes` are versions and the moments at which they came."""

    kind: str
    queries: int = 0
    torn: int = 0
    errors: list[str] = field(default_factory=list)
    changes: list[tuple[str, float]] = field(default_factory=list)


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


def read(kind: str, work: str, interval: float, ready: Event, done: Event, results: Any) -> None:
    """Query until all is done."""
    reading = Reading(kind)
    with ExitStack() as stack:
        follower = stack.enter_context(Follower(work, interval=interval)) if kind == "follows" else None
        ready.set()
        while not done.is_set():
            reading.queries += 1
            try:
                vectors = follower.vectors if follower else Vectors.open(work)
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


def cells_of(reading: Reading, served: list[tuple[str, float]]) -> list[Cell]:
    """Put a reader's changes beside those that were made; return the cells of `COLUMNS`."""
    delays, n, ends = list[float](), 0, [*(moment for _, moment in served[1:]), float("inf")]
    for (name, began), ended, before in zip(served, ends, [None, *served], strict=False):
        if before is not None and before[0] == name:
            continue
        n += 1
        delays += [moment - began for seen, moment in reading.changes if seen == name and began <= moment < ended][:1]
    versions = len({name for name, _ in reading.changes})
    seen = Spread.of(delays) if delays else None
    return [reading.queries, len(reading.errors), reading.torn, versions, n, len(delays), seen]


def measure(session: Session) -> None:
    options, work = session.options, Store(str(session.fresh("work")))
    session.text = f"no text: versions of {WORDS:,} x {DIMENSIONS}"
    table = session.table("Readers during publishes, rollbacks and deletions", COLUMNS)
    for number in range(1, KEPT + 1):
        add_version(work, number)
    context = multiprocessing.get_context("spawn")
    done, results, readers = context.Event(), context.Queue(), []
    for kind in READERS:
        ready = context.Event()
        reader = context.Process(target=read, args=(kind, work.url, options.interval, ready, done, results))
        reader.start()
        ready.wait()
        readers.append(reader)
    served = change(work, options.changes, options.pause)
    time.sleep(2 * options.interval + 1)
    done.set()
    found = {reading.kind: reading for reading in (results.get() for _ in readers)}
    for reader in readers:
        reader.join()
    for kind in READERS:
        reading = found[kind]
        table.row(kind, *cells_of(reading, served))
        if reading.torn:
            session.wrong(f"{kind}: {reading.torn} torn versions")
        for error in reading.errors[:10]:
            session.wrong(f"{kind}: {error}")
        if not reading.changes or reading.changes[-1][0] != served[-1][0]:
            session.wrong(f"{kind}: the last version was never seen")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--changes", type=int, default=1000)
    parser.add_argument("--interval", type=float, default=0.02, help="seconds between two looks of the follower")
    parser.add_argument("--pause", type=float, default=0.02, help="seconds after each change")


BENCHMARK = Benchmark(__doc__, ("daskw2v/models",), Smoke({"changes": 40}, READERS), add_arguments, measure)

if __name__ == "__main__":
    BENCHMARK.main()
