"""The constants of the cost model, measured on this machine: seconds and bytes of single steps."""

import os
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, wait

from benchmarks.buckets import buckets, first_rows, windows
from benchmarks.epochs import segment_of, timed, training_of
from benchmarks.harness import alternate
from benchmarks.processes import cluster_of, one_thread
from benchmarks.texts import Text
from daskw2v.config.params import Params
from daskw2v.kernels.simd import huge_zeros, padded
from daskw2v.objectives.base import is_finite
from daskw2v.objectives.registry import find_objective
from daskw2v.objectives.sgns.buckets.cpu import train_bucket
from daskw2v.sampling.hierarchy import make_word_table
from daskw2v.sampling.pairs import pack, pair_type
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import Segment
from daskw2v.sampling.settings import NegativeSampling
from daskw2v.sampling.skipgrams import BucketArguments, Stretch, make_bucket_reader, submit_pairs
from daskw2v.sampling.weights import NS_EXPONENT, partition_counts
from daskw2v.store.partfile import read_part, write_parts
from daskw2v.store.storage import Store
from daskw2v.training.averaging.curvature import Curvature
from daskw2v.training.averaging.merge import Delta, Training, find_merge_rule, merge_block, subtract_rows
from daskw2v.training.devices import Threads
from daskw2v.training.devices.cpu import CpuReplicaTrainer
from daskw2v.training.devices.settings import CPU
from daskw2v.training.estimates.seconds import Constants, Line
from daskw2v.training.rotation.work import HOPS, TASKS
from daskw2v.types import Float64Array
from daskw2v.vocabulary.partition import Partitions

SIZES = (100, 300)  # vector sizes
DEALT = 8  # partitions
TABLE_ROWS = 1 << 20  # of the largest table: no cache holds it, nor the smaller ones that are parts of it
_FEW = 4  # passes of a run that is compared with one of more


def calibrate(text: Text, small: Text, rows: int, passes: int, folder: Path) -> Constants:
    """Measure all constants; `small` has next to no work, so that tasks are left."""
    segment, read = segment_of(text, Params())
    found: dict[str, Any] = {
        **measure_kernels(text, segment, rows),
        **measure_dealing(text, folder),
        **measure_rows(rows // 8),
        **measure_cluster(small, passes),
    }
    found |= {"read": read, "file": measure_files(folder, rows // 4)}
    return {name: value if isinstance(value, Line) else Line(value) for name, value in found.items()}


def line_of(seconds: Callable[[int], float]) -> Line:
    first, last = map(seconds, SIZES)
    column = (last - first) / (SIZES[1] - SIZES[0])
    return Line(first - column * SIZES[0], column)


def measure_kernels(text: Text, segment: Segment, rows: int) -> dict[str, Any]:
    counts, params = text.vocabulary.load().counts, Params()

    def pair(make: Callable[[int], Callable[[], tuple[int, float]]], d: int) -> float:
        kernel = make(d)
        kernel()  # compiles
        return statistics.median(seconds / pairs for pairs, seconds in (kernel() for _ in range(3)))

    def near(d: int) -> Callable[[], tuple[int, float]]:
        return windows(params.replace(vector_size=d), segment, counts)

    def far(d: int) -> Callable[[], tuple[int, float]]:
        return windows(params.replace(vector_size=d), any_rows(rows), np.ones(rows, np.int64))

    def warm(d: int) -> Callable[[], tuple[int, float]]:
        return buckets(params.replace(vector_size=d), segment, counts)

    def cold(d: int) -> float:
        n, width = rows // 4, padded(d)
        pairs = pack(np.random.default_rng(1).integers(0, n, (2, n)), pair_type(n))
        tables = first_rows(params.replace(vector_size=d), np.arange(n)), huge_zeros(n * width)
        words = make_word_table(np.ones(n, np.int64), NS_EXPONENT)
        return timed(lambda: train_bucket(pairs, pairs[:0], *tables, width, 0.03, 5, 0, words, np.uint64(1))) / n

    several = [warm(SIZES[0]) for _ in range(os.cpu_count() or 1)]
    with ThreadPoolExecutor(len(several)) as pool:
        rounds = [[*pool.map(lambda kernel: kernel(), several)] for _ in range(3)]
    together = [statistics.mean(seconds / pairs for pairs, seconds in found) for found in rounds]
    lines = {name: line_of(partial(pair, make)) for name, make in (("window", near), ("far", far), ("warm", warm))}
    crowded = max(1.0, statistics.median(together) / lines["warm"].value_for(SIZES[0]))
    return {**lines, "cold": line_of(cold), "crowded": crowded}


def any_rows(rows: int) -> Segment:
    """Return a text whose words are drawn evenly from so many, so that no cache has their rows."""
    words = rows // 2
    tokens = np.random.default_rng(1).integers(0, rows, words).astype(np.int32)
    return Segment(tokens, np.arange(words), np.arange(0, words + 1, 1 << 4))


def measure_costs(objectives: Sequence[str], text: Text, rows: int) -> dict[str, list[float]]:
    """Return, by objective, the seconds of its kernel for windows over those of the first objective's.

    There is a figure for each of `SIZES` on the text, and one for rows that no cache has.
    """
    segment, _ = segment_of(text, Params())
    texts = [(d, segment, text.vocabulary.load().counts) for d in SIZES]
    texts.append((SIZES[0], any_rows(rows), np.ones(rows, np.int64)))
    seconds = dict[str, list[float]]()
    for d, one, counts in texts:
        kernels = {name: windows(Params(objective=name, vector_size=d), one, counts) for name in objectives}
        for kernel in kernels.values():
            kernel()  # compiles
        for name, several in alternate(kernels, 3).items():
            seconds.setdefault(name, []).append(statistics.median(second for _, second in several))
    first = seconds[objectives[0]]
    return {name: [a / b for a, b in zip(each, first, strict=True)] for name, each in seconds.items()}


def measure_rows(rows: int) -> dict[str, Any]:
    """Measure copies and merges of tables that no cache holds."""
    params, objective = Params(), find_objective("sgns")
    base, other = (np.full((rows, SIZES[0]), i / 10, np.float32) for i in range(2))

    def copy() -> bool:
        replica = CpuReplicaTrainer(
            objective, params, None, dict, {"input": [base], "output": [other]}, Threads(1, CPU(hot_rows=0))
        )
        return all(is_finite(rows) for (rows,) in replica.take().values())

    return {"copy": timed(copy) / (2 * base.nbytes), "merge": line_of(partial(measure_merge, rows))}


def measure_merge(rows: int, d: int, n: int = 4) -> float:
    """Return the seconds that a byte of a replica's rows takes to be merged, of n replicas.

    Changes fade along a sixteenth of the directions, as on average on real text.
    """
    rule, rng = find_merge_rule(None), np.random.default_rng(0)
    base, *others = (rng.normal(size=(rows, d)).astype(np.float32) for _ in range(n + 1))
    deltas = [Delta(subtract_rows(base, other)[0]) for other in others]
    vectors = np.linalg.qr(rng.normal(size=(d, d)))[0].astype(np.float32)
    values = (np.arange(d) >= d - d // 16).astype(np.float32)
    training = Training(Curvature(values, vectors), np.ones(rows, np.float32), n)

    def merge() -> None:
        merge_block(rule, base, deltas, training)

    return timed(merge) / (n * base.nbytes)


def measure_files(folder: Path, rows: int, times: int = 5) -> float:
    """Return the processor seconds of a byte of rows that is written to a file, or read from it."""
    content, place = np.ones((rows, SIZES[0]), np.float32), Store(str(folder / "files"))

    def used(number: int) -> float:
        before = time.process_time()
        write_parts(place, str(number), [0, rows], content)
        read_part(place, str(number), 1, 0, np.float32, SIZES[0])
        return time.process_time() - before

    seconds = statistics.median(used(number) for number in range(times)) / (2 * content.nbytes)
    place.remove()
    return seconds


def measure_dealing(text: Text, folder: Path) -> dict[str, float]:
    """Deal the whole text."""
    params, place = Params(strategy="rotation", n_partitions=DEALT), Store(str(folder / "dealt"))
    with one_thread() as client:
        partitions = Partitions(text.vocabulary.size, DEALT)
        counts = partition_counts(client, text.vocabulary, partitions, NS_EXPONENT, place / "weights")
        run = Run(text.work, text.corpus.name, text.vocabulary, params, "cpu")
        dealer = BucketArguments(run, partitions, DEALT, counts.weights)
        assert submit_pairs(client, dealer, Stretch(0, 0, 1000), "small").words  # compiles

        def deal(number: int) -> tuple[float, int]:
            """Return seconds and pairs."""
            held = submit_pairs(client, dealer, Stretch(0, 0, text.corpus.n_tokens), f"all-{number}")
            parts = [client.gather(held.slices_of_group(i)) for i in range(DEALT)]
            began = time.perf_counter()
            made = [[make_bucket_reader(part) for part in found] for found in parts]
            taken = [bucket(j).pairs for found in made for j in range(DEALT) for bucket in found]
            seconds = held.deal_seconds + time.perf_counter() - began
            return seconds, sum(map(len, taken))

        times = [deal(number) for number in range(5)]  # later ones have the memory of those before
    _, pairs = times[0]
    return {"deal": statistics.median(seconds for seconds, _ in times) / pairs}


def measure_cluster(small: Text, passes: int) -> dict[str, float]:
    """Measure tasks of buckets and dealing without work on a worker, tasks on client and scheduler, and transfers.

    No group divides the number of partitions, so each bucket has its own task. What a run takes besides its passes is
    left out: so many passes more take so much more.
    """
    prime = DEALT - 1
    params = Params(strategy="rotation", n_partitions=prime, epochs=1)

    def used(in_all: int) -> Float64Array:
        """Return the seconds of training, of dealing, and of client and scheduler."""
        before = time.process_time()
        took = training_of(client, small, params.replace(passes_per_epoch=in_all))
        return np.array([took.seconds, took.dealing, time.process_time() - before])

    with cluster_of(1) as client:
        used(_FEW)  # compiles
        few, more = used(_FEW), used(_FEW + passes)
        hop, result = seconds_of_tasks(client)
        client.cluster.scale(2)
        client.wait_for_workers(2)
        send = seconds_a_byte(client)
    trained, dealt, in_client = (more - few) / passes
    bucket = seconds_a_bucket()
    return {
        "piece": dealt,
        "bucket_task": max(0.0, (trained - dealt - prime * HOPS * hop) / prime**2 - bucket),
        "bucket": bucket,
        "task": in_client / (TASKS * prime**2 + prime + 2),  # a piece has a part for each group
        "result": result,
        "hop": hop,
        "send": send,
    }


def seconds_a_bucket(n: int = 200) -> float:
    """Return the seconds of a bucket of one pair, trained by a thread of a task."""
    width, words = padded(SIZES[0]), make_word_table(np.ones(1, np.int64), NS_EXPONENT)
    row, pair, none = np.zeros(width, np.float32), np.zeros(1, np.uint32), np.zeros(0, np.uint32)

    def bucket(_: int) -> Any:
        return train_bucket(pair, none, row, row, width, 0.03, NegativeSampling.negative, 0, words, np.uint64(1))

    with ThreadPoolExecutor(1) as pool:
        return timed(lambda: list(pool.map(bucket, range(n)))) / n


def seconds_of_tasks(client: Client, n: int = 200) -> tuple[float, float]:
    """Return the seconds from the end of a task to the beginning of one that waits for it, and those of its worker."""

    def used() -> float:
        return sum(client.run(time.process_time).values())

    before, began, last = used(), time.perf_counter(), client.submit(int, 0, key="hop-0")
    for number in range(1, n):
        last = client.submit(int, last, key=f"hop-{number}")
    last.result()
    return (time.perf_counter() - began) / n, (used() - before) / n


def seconds_a_byte(client: Client, least: int = 8_000_000, most: int = 64_000_000, times: int = 9) -> float:
    """Return the processor seconds of a byte on one side, on average, without what a transfer costs at any size."""
    giver, taker = sorted(client.nthreads())

    def side(size: int) -> float:
        made = client.submit(np.ones, size // 4, np.float32, workers=[giver], pure=False)
        wait(made)
        before = sum(client.run(time.process_time).values())
        wait(client.submit(len, made, workers=[taker], pure=False))
        return (sum(client.run(time.process_time).values()) - before) / 2

    fewer, more = (statistics.median(side(size) for _ in range(times)) for size in (least, most))
    return (more - fewer) / (most - least)
