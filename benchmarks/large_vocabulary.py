"""A model larger than the cluster's memory: 20 million types, two tables of 5 GB, two workers of 1.5 GB.

Words are the types' numbers in base 36. Each occurs once, in a random place, and besides as often as Zipf's law draws
it. The independent count is made while the text is written; every word's place and count are checked. Then strategy
`rotation` trains an epoch of two passes: it is stopped in the second, goes on from the checkpoint between them, and the
model is asked for neighbours without being read into memory.

    python -m benchmarks.large_vocabulary [--types 20000000] [--tokens 120000000] [--size 64] [--partitions 64]
        [--memory "1.5 GB"] [--work DIR] [--json]
"""

import argparse
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt
from distributed import Client

from benchmarks.common import Peaks, cluster_of, finish
from benchmarks.options import Smoke, parsed
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.models.vectors import Vectors
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


@dataclass
class Log:
    """Prints what is found, and keeps the figures by name."""

    out: TextIO
    found: dict[str, Any] = field(default_factory=dict)

    def say(self, text: str, **figures: Any) -> None:
        print(text, file=self.out, flush=True)
        self.found |= figures


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
def measured(stage: str, client: Client, log: Log) -> Iterator[None]:
    """Print how long a stage took, and what memory the workers had at most."""
    pids = list(client.run(os.getpid).values())
    peaks, began = Peaks(pids), time.perf_counter()
    yield
    seconds = time.perf_counter() - began
    peaks.stop()
    lost = len(set(pids) - set(client.run(os.getpid).values()))
    sizes = [rss / 1e6 for rss in peaks.rss.values()]
    figures = {"seconds": seconds, "peaks, MB": sizes, "restarted": lost}
    said = ", ".join(f"{size:.0f} MB" for size in sizes)
    log.say(f"{stage}: {seconds:.0f} s, peaks of the workers {said}, {lost} restarted", **{stage: figures})


def count(paths: list[Path], work: Store, client: Client, log: Log) -> tuple[Corpus, StoredVocabulary]:
    params, resources = Params(min_count=1), Resources()
    with measured("encode", client, log):
        corpus = build_corpus(paths, work, params, resources, client)
    with measured("vocabulary", client, log):
        vocabulary = build_vocabulary(corpus, work, params, resources, client)
    return corpus, vocabulary


def check(vocabulary: StoredVocabulary, counts: Integers, log: Log) -> bool:
    """Compare all words and their order with the independent count; return whether both are right."""
    types_words = {"types": vocabulary.size, "words": vocabulary.total}
    log.say(
        f"types: {vocabulary.size:,} of {len(counts):,}; words: {vocabulary.total:,} of {counts.sum():,}", **types_words
    )
    found = vocabulary.load()
    types, keys = np.empty(len(found), np.int64), np.empty(len(found), np.uint64)
    for first in range(0, len(found), CHECKED):
        words = slice(first, first + CHECKED)
        types[words], keys[words] = read_back(found.data, found.offsets[first : first + CHECKED + 1])
    step = np.diff(found.counts)
    ordered = bool(((step < 0) | ((step == 0) & (keys[:-1] < keys[1:]))).all())
    equal = np.array_equal(found.counts, counts[types])
    log.say(f"counts equal to the independent ones: {equal}", equal=equal)
    log.say(f"words in order, none twice: {ordered}", ordered=ordered)
    return equal and ordered


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


def learn(corpus: Corpus, vocabulary: StoredVocabulary, work: Store, client: Client, params: Params, log: Log) -> None:
    """Train until the second pass has begun, stop, and go on."""
    seen: list[Progress] = []

    def stop(progress: Progress) -> None:
        if progress.loss is not None and progress.done > 0.6 * progress.total:
            raise Stopped

    def watch(progress: Progress) -> None:
        if progress.loss is not None:
            seen.append(progress)

    how = (corpus, vocabulary, work, params, Resources(checkpoint_seconds=0), client)
    with measured("training, stopped in the second pass", client, log), suppress(Stopped):
        train_model(*how, listener=stop)
    with measured("training again, to its end", client, log):
        vectors = train_model(*how, listener=watch)
    first, last = (progress.done / progress.total for progress in (seen[0], seen[-1]))
    log.say(
        f"went on from the checkpoint: first report at {first:.0%} of the tokens, last at {last:.0%}",
        first_report=first, last_report=last,
    )  # fmt: skip
    metrics = vectors.metadata["metrics"]
    for entry in metrics["history"]:
        log.say(
            f"pass {entry['round']}: {entry['pairs']:,} pairs, {entry['seconds']:.0f} s, of them "
            f"{entry['deal_seconds']:.0f} s dealing, loss {entry['loss'] / entry['pairs']:.3f}"
        )
    size = 2 * vocabulary.size * params.vector_size * 4
    log.say(f"model: {vectors.metadata['tables']}, {size / 1e9:.2f} GB", model_bytes=size, passes=metrics["history"])


def ask(work: Store, log: Log) -> None:
    """Look for neighbours in the stored model."""
    peak, began = Peaks([os.getpid()]), time.perf_counter()
    vectors = Vectors.open(work.url, in_memory=False)
    found = vectors.most_similar("1", topn=3)
    seconds = time.perf_counter() - began
    peak.stop()
    most = max(peak.rss.values()) / 1e6
    log.say(
        f"neighbours of '1' in {seconds:.0f} s, {most:.0f} MB at most: {found}",
        neighbours=found, seconds_of_neighbours=seconds,
    )  # fmt: skip


SMOKE = Smoke(
    {"types": 20_000, "tokens": 100_000, "size": 16, "partitions": 8},
    ("encode", "vocabulary", "training, stopped in the second pass", "training again, to its end", "neighbours"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--types", type=int, default=20_000_000)
    parser.add_argument("--tokens", type=int, default=120_000_000, help="at least as many as types")
    parser.add_argument("--size", type=int, default=64, help="vector_size")
    parser.add_argument("--partitions", type=int, default=60, help="of which 8 are in a worker's memory at a time")
    parser.add_argument("--memory", default="1.5 GB", help="of each of the two workers")
    parser.add_argument("--work", type=Path, help="folder for text and work; a temporary one by default")
    options = parsed(parser, SMOKE)
    log = Log(sys.stderr if options.json else sys.stdout)
    with tempfile.TemporaryDirectory(dir=options.work) as name:
        folder, began = Path(name), time.perf_counter()
        paths, counts = write_zipf(folder, options.types, options.tokens)
        size, seconds = sum(path.stat().st_size for path in paths), time.perf_counter() - began
        log.say(f"{size / 1e9:.2f} GB in {len(paths)} files, written in {seconds:.0f} s", bytes=size)
        with cluster_of(2, options.memory) as client:
            work = Store(str(folder / "work"))
            corpus, vocabulary = count(paths, work, client, log)
            right = check(vocabulary, counts, log)
            del counts
            params = Params(
                min_count=1, vector_size=options.size, epochs=1, strategy="rotation", passes_per_epoch=2,
                n_partitions=options.partitions,
            )  # fmt: skip
            learn(corpus, vocabulary, work, client, params, log)
        ask(work, log)
    finish(log.found, log.out, as_json=options.json)
    if not right:
        sys.exit(1)


if __name__ == "__main__":
    main()
