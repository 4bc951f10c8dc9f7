"""What threads of one worker gain with rotation, computed for more of them than this machine has.

A bucket takes as long as it has pairs. It waits for the buckets before it that have one of its partitions, for a
thread, and for Python's lock, which a thread holds for some microseconds a bucket. They are measured, and so is the
time of a pair. Cores share nothing else here: what caches and memory cost many cores is not among the figures, nor are
copies of partitions between tasks, or pairs that are dealt.

    python -m benchmarks.bucket_threads [--parts 10] [--epochs 5] [--threads 1 2 4 8 16 32 64] [--partitions 8 16 32 64]
        [--size 100] [--json]
"""

import argparse
import heapq
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.common import finish
from benchmarks.options import Smoke, parsed
from benchmarks.texts import encode
from daskw2v.config.params import Params
from daskw2v.objectives.registry import find_objective
from daskw2v.sampling.held_pairs import PairsPart, PieceTotals, held_buckets
from daskw2v.sampling.segments import keep_thresholds
from daskw2v.sampling.skipgrams import slice_length
from daskw2v.training.devices.cpu import CpuPartitionTrainer
from daskw2v.training.rotation.bucket_queue import train_in_order
from daskw2v.training.rotation.pass_schedule import RotationPasses, passes_of_epoch
from daskw2v.types import Float32Array, Float64Array, Int64Array
from daskw2v.vocabulary.partition import Partitions

_ROWS, _PAIRS, _BUCKETS = 2000, 200_000, 2000


class Work(NamedTuple):
    """A bucket, and the seconds that its pairs take."""

    input: int
    output: int
    seconds: float


class Costs(NamedTuple):
    """The seconds of a pair, and those in which a thread holds Python's lock for a bucket."""

    pair: float
    bucket: float


@dataclass(frozen=True)
class Row:
    """Times one thread: without Python's lock, and with it."""

    threads: int
    partitions: int
    alone: float
    speed_up: float


def measure(size: int) -> Costs:
    """Train a bucket of many pairs, and many of one pair, by one thread."""
    params, counts = Params(vector_size=size), np.arange(_ROWS, 0, -1, dtype=np.int64)
    objective, rng = find_objective("sgns"), np.random.default_rng(1)

    def rows() -> Float32Array:
        return rng.normal(scale=0.1, size=(_ROWS, size)).astype(np.float32)

    trainer = CpuPartitionTrainer(objective, params, {0: rows}, {0: rows}, lambda _: counts, int(counts.sum()), None)
    words = objective.partition_table(params, counts)

    def train(pairs: int, n: int) -> float:
        codes = (rng.integers(0, _ROWS, pairs) << 16 | rng.integers(0, _ROWS, pairs)).astype(np.uint32)
        edges, none = np.array([0, pairs]), codes[:0]
        bucket_of = held_buckets([PairsPart(codes, edges, none, np.zeros_like(edges), PieceTotals(0, 0.0))])

        def one(work: Work) -> tuple[int, float]:
            return trainer.train(0, 0, bucket_of(0), 0.01, words, np.uint64(1))

        with ThreadPoolExecutor(1) as pool:
            began = time.perf_counter()
            train_in_order(pool, 1, one, [Work(0, 0, 0.0)] * n)
            return (time.perf_counter() - began) / n

    train(1, 1)  # compiles
    bucket = min(train(1, _BUCKETS) for _ in range(5))
    return Costs((min(train(_PAIRS, 1) for _ in range(5)) - bucket) / _PAIRS, bucket)


def kept_of(counts: Int64Array, params: Params) -> Float64Array:
    """Return how often each word is left by subsampling: as a center, and so as a context."""
    return np.asarray(counts * (keep_thresholds(counts, params.sample) / 2.0**32))


def works_of(params: Params, kept: Float64Array, length: int, pair: float) -> list[Work]:
    """Return the buckets of an epoch in their order."""
    p, n = params.n_partitions, passes_of_epoch(params)
    places, _ = Partitions(len(kept), p).place(np.arange(len(kept)))
    load, passes = np.bincount(places, kept / kept.sum(), p), RotationPasses(params, length)
    n_slices = -(-length // n // slice_length(p, length // n))
    of_slice = kept.sum() * (params.window + 1) / n / n_slices * pair
    works = []
    for number in range(n):
        for groups in passes.steps(number, n_slices):
            for _ in range(n_slices):
                for rounds in zip(*groups, strict=True):
                    found = [of for one in rounds for of in one.pairs]
                    works += [Work(of.input, of.output, load[of.input] * load[of.output] * of_slice) for of in found]
    return works


def seconds_of(works: Sequence[Work], threads: int, locked: float) -> float:
    """Return when the last bucket is done, as `bucket_queue.train_in_order` deals them out."""
    free: dict[tuple[str, int], float] = {}
    ready, lock = [0.0] * threads, 0.0
    for work in works:
        begins = max(heapq.heappop(ready), lock)
        lock = begins + locked
        partitions = ("input", work.input), ("output", work.output)
        done = max(lock, *(free.get(one, 0.0) for one in partitions)) + work.seconds
        free.update(dict.fromkeys(partitions, done))
        heapq.heappush(ready, done)
    return max(ready)


SMOKE = Smoke({"parts": 0.1, "epochs": 1, "threads": [1, 64], "partitions": [8], "size": 16}, ("threads | partitions",))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=float, default=10, help="tenths of the 100 MB corpus")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32, 64])
    parser.add_argument("--partitions", type=int, nargs="+", default=[8, 16, 32, 64])
    parser.add_argument("--size", type=int, default=100)
    options = parsed(parser, SMOKE)
    out, rows = sys.stderr if options.json else sys.stdout, []
    costs = measure(options.size)
    with tempfile.TemporaryDirectory() as name:
        text = encode(Path(name), options.parts)
        counts, length = text.vocabulary.read_counts(), text.corpus.n_tokens
    params = Params(strategy="rotation", epochs=options.epochs)
    kept = kept_of(counts, params)
    works = {n: works_of(params.replace(n_partitions=n), kept, length, costs.pair) for n in options.partitions}
    print(f"a pair {costs.pair * 1e9:.1f} ns, Python of a bucket {costs.bucket * 1e6:.1f} us", file=out)
    print("| threads | partitions | times one thread, without Python's lock | with it |\n|---|---|---|---|", file=out)
    for threads in options.threads:
        for n in options.partitions:
            row = Row(threads, n, *(gain(works[n], threads, locked) for locked in (0.0, costs.bucket)))
            rows.append(row)
            print(f"| {threads} | {n} | {row.alone:.1f} | {row.speed_up:.1f} |", file=out, flush=True)
    finish(rows, out, as_json=options.json)


def gain(works: Sequence[Work], threads: int, locked: float) -> float:
    """Return how many times as fast as one thread, without Python's lock, some are."""
    return sum(work.seconds for work in works) / seconds_of(works, threads, locked)


if __name__ == "__main__":
    main()
