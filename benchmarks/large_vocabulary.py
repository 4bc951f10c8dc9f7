"""A model larger than the cluster's memory: 20 million types, two tables of 5 GB, two workers of 1.5 GB.

Words are the types' numbers in base 36. Each occurs once, in a random place, and besides as often as Zipf's law draws
it. The independent count is made while the text is written; every word's place and count are checked. Then strategy
`rotation` trains an epoch of two passes: it is stopped in the second, goes on from the checkpoint between them, and the
model is asked for neighbours without being read into memory.

    python -m benchmarks.large_vocabulary [--types 20000000] [--tokens 120000000] [--size 64] [--partitions 60]
        [--memory "1.5 GB"]

Text larger than memory, 2 GB through two workers of 700 MB: `--types 2000000 --tokens 350000000 --memory "700 MB"`.
"""

import argparse
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt
from distributed import Client

from benchmarks.harness import Benchmark, Session, Smoke
from benchmarks.processes import Peaks, cluster_of
from benchmarks.tables import Table
from benchmarks.texts import MB
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.models.queries.vectors import Vectors
from daskw2v.progress import Progress
from daskw2v.shards.encode import build_corpus
from daskw2v.shards.layout import Corpus
from daskw2v.store.storage import Store
from daskw2v.training.pipeline import train_model
from daskw2v.vocabulary.count import StoredVocabulary, build_vocabulary

DIGITS = np.frombuffer(b"0123456789abcdefghijklmnopqrstuvwxyz", np.uint8)
DRAWN = 1 << 22  # tokens at a time
FILE_DRAWS = 4
SENTENCE = 20
CHECKED = 1 << 20  # words at a time

Integers = npt.NDArray[np.int64]


def write_zipf(folder: Path, n_types: int, n_tokens: int, seed: int = 1) -> tuple[list[Path], Integers]:
    """Write the text, some 70 MB a file; return the files and the count of each type."""
    rng = np.random.default_rng(seed)
    step = next(step for step in range(int(n_types * 0.618), n_types + 1) if math.gcd(step, n_types) == 1)
    counts, paths = np.zeros(n_types, np.int64), list[Path]()
    bounds = np.linspace(0, n_tokens, math.ceil(n_tokens / DRAWN) + 1).astype(np.int64)
    once = bounds * n_types // n_tokens
    for i in range(len(bounds) - 1):
        size, (first, last) = bounds[i + 1] - bounds[i], once[i : i + 2]
        drawn = np.exp(rng.random(size - (last - first)) * np.log(n_types)).astype(np.int64)
        types = np.concatenate([np.arange(first, last) * step % n_types, drawn])
        counts += np.bincount(types, minlength=n_types)
        rng.shuffle(types)
        if i % FILE_DRAWS == 0:
            paths.append(folder / f"{len(paths):04}.txt")
        with paths[-1].open("ab") as out:
            out.write(spell(types, n_types).tobytes())
    return paths, counts


def spell(types: Integers, n_types: int) -> npt.NDArray[np.uint8]:
    """Return the text of words, a sentence a line."""
    width = len(np.base_repr(n_types - 1, 36))
    text, kept = np.empty((len(types), width + 1), np.uint8), np.ones((len(types), width + 1), np.bool_)
    rest = types.astype(np.uint32)
    for place in range(width - 1, -1, -1):
        kept[:, place] = (rest > 0) | (place == width - 1)
        rest, digit = np.divmod(rest, np.uint32(36))
        text[:, place] = DIGITS[digit]
    text[:, -1] = ord(" ")
    text[SENTENCE - 1 :: SENTENCE, -1] = ord("\n")
    return text[kept]


@contextmanager
def measured(stage: str, client: Client, table: Table, session: Session) -> Iterator[None]:
    """Print how long a stage took, and what memory a worker had at most."""
    pids = list(client.run(os.getpid).values())
    peaks, began = Peaks(pids), time.perf_counter()
    yield
    seconds = time.perf_counter() - began
    peaks.stop()
    lost = len(set(pids) - set(client.run(os.getpid).values()))
    table.row(stage, seconds, max(peaks.rss.values()) / MB, lost)
    if lost:
        session.wrong(f"{stage}: {lost} workers were started again")


def check(vocabulary: StoredVocabulary, counts: Integers, session: Session) -> None:
    """Compare all words and their order with the independent count."""
    table = session.table("What was counted", ("found", "written"))
    table.row("types", vocabulary.size, len(counts))
    table.row("words", vocabulary.total, int(counts.sum()))
    found = vocabulary.load()
    types, keys = np.empty(len(found), np.int64), np.empty(len(found), np.uint64)
    for first in range(0, len(found), CHECKED):
        words = slice(first, first + CHECKED)
        types[words], keys[words] = read_back(found.data, found.offsets[first : first + CHECKED + 1])
    step = np.diff(found.counts)
    if not ((step < 0) | ((step == 0) & (keys[:-1] < keys[1:]))).all():
        session.wrong("words are not in order, or some are twice")
    if len(found) != len(counts) or not np.array_equal(found.counts, counts[types]):
        session.wrong("counts differ from the independent ones")


def read_back(data: npt.NDArray[np.uint8], offsets: Integers) -> tuple[Integers, npt.NDArray[np.uint64]]:
    """Return the types of words, and numbers that are ordered as their bytes are."""
    places = offsets[:-1, None] + np.arange(8)
    letters = np.where(places < offsets[1:, None], data[np.minimum(places, len(data) - 1)], 0)
    types = np.zeros(len(letters), np.int64)
    for column in letters.T:
        types = np.where(column > 0, types * 36 + np.searchsorted(DIGITS, column), types)
    return types, letters.view(">u8")[:, 0]


class Stopped(Exception):
    """Training was stopped on purpose."""


def learn(
    corpus: Corpus, vocabulary: StoredVocabulary, work: Store, client: Client, table: Table, session: Session
) -> None:
    """Train until the second pass has begun, stop, and go on."""
    params = Params(
        min_count=1,
        vector_size=session.options.size,
        epochs=1,
        strategy="rotation",
        passes_per_epoch=2,
        n_partitions=session.options.partitions,
    )
    shares = list[float]()

    def stop(progress: Progress) -> None:
        if progress.loss is not None and progress.done > 0.6 * progress.total:
            raise Stopped

    def watch(progress: Progress) -> None:
        if progress.loss is not None:
            shares.append(progress.done / progress.total)

    how = (corpus, vocabulary, work, params, Resources(checkpoint_seconds=0), client)
    with measured("training, stopped in the second pass", client, table, session), suppress(Stopped):
        train_model(*how, listener=stop)
    with measured("training again, to its end", client, table, session):
        vectors = train_model(*how, listener=watch)
    if shares[0] <= 0.5:
        session.wrong(f"training began anew: the first report is at {shares[0]:.0%} of the tokens")
    passes = session.table("Passes", ("M pairs", "s", "s dealing", "loss"))
    for entry in vectors.metadata["metrics"]["history"]:
        loss = entry["loss"] / entry["pairs"]
        passes.row(f"{entry['round']}", entry["pairs"] / 1e6, entry["seconds"], entry["deal_seconds"], loss)


def ask(work: Store, table: Table) -> None:
    """Look for neighbours in the stored model."""
    peak, began = Peaks([os.getpid()]), time.perf_counter()
    Vectors.open(work.url, in_memory=False).most_similar("1", topn=3)
    seconds = time.perf_counter() - began
    peak.stop()
    table.row("neighbours, in another process", seconds, max(peak.rss.values()) / MB, None)


def measure(session: Session) -> None:
    options, work, params, resources = (
        session.options,
        Store(f"{session.folder}/work"),
        Params(min_count=1),
        Resources(),
    )
    paths, counts = write_zipf(session.fresh("text"), options.types, options.tokens)
    size, model = sum(path.stat().st_size for path in paths), 2 * options.types * options.size * 4
    session.text = f"{size / 1e9:.2f} GB, {options.types:,} types of {options.tokens:,} words, drawn by Zipf's law"
    title = f"{session.text}; tables of {model / 1e9:.2f} GB; two workers of {options.memory}"
    table = session.table(title, ("s", "peak MB of a worker", "workers started again"), ".0f")
    with cluster_of(2, options.memory) as client:
        with measured("encode", client, table, session):
            corpus = build_corpus(paths, work, params, resources, client)
        with measured("vocabulary", client, table, session):
            vocabulary = build_vocabulary(corpus, work, params, resources, client)
        check(vocabulary, counts, session)
        del counts
        learn(corpus, vocabulary, work, client, table, session)
    ask(work, table)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--types", type=int, default=20_000_000)
    parser.add_argument("--tokens", type=int, default=120_000_000, help="at least as many as types")
    parser.add_argument("--size", type=int, default=64, help="vector_size")
    parser.add_argument("--partitions", type=int, default=60, help="of which 8 are in a worker's memory at a time")
    parser.add_argument("--memory", default="1.5 GB", help="of each of the two workers")


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/shards", "daskw2v/vocabulary", "daskw2v/training/rotation"),
    Smoke(
        {"types": 20_000, "tokens": 100_000, "size": 16, "partitions": 8},
        ("encode", "vocabulary", "training, stopped in the second pass", "training again, to its end", "neighbours"),
    ),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
