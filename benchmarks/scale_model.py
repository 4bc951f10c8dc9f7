"""What training costs at scale: a model of both strategies, calibrated here, checked here, and its forecast.

Its constants are seconds and bytes of single steps, measured on this machine. The check trains Wikipedia on workers
behind links of limited bandwidth (`benchmarks.namespaces`); they share this machine's cores, which the model knows. The
forecast is for the two data sets of Stergiou et al. (2017), with cores like this machine's: words are taken to follow
Zipf's law, in sentences of 20. Reading the text and counting its words (`benchmarks.pipeline`) is not in it.

    python -m benchmarks.scale_model [--parts 2] [--rates 1000 100] [--workers 1 2 4] [--skip-runs]
        [--constants FILE] [--json]
"""

import argparse
import json
import math
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
import numpy.typing as npt
from distributed import Client, LocalCluster, wait

from benchmarks import namespaces
from benchmarks.buckets import buckets, first_rows, windows
from benchmarks.common import machine, one_thread, write_text
from benchmarks.train_speed import Text
from daskw2v.devices import CpuReplica, Threads
from daskw2v.objectives import find_objective
from daskw2v.objectives.base import is_finite
from daskw2v.objectives.sgns.buckets import train_bucket
from daskw2v.params import Params, Resources
from daskw2v.sampling.hierarchy import TNS, word_table
from daskw2v.sampling.reader import SegmentReader
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import SEGMENT, Segment, keep_thresholds
from daskw2v.sampling.skipgrams import Dealer, Stretch, build_skipgrams, read_bucket
from daskw2v.sampling.weights import partition_counts
from daskw2v.shards.encode import build_corpus
from daskw2v.simd import huge_zeros, padded
from daskw2v.storage import Store
from daskw2v.strategies.blocks import rows_per_block
from daskw2v.strategies.merge import add_moves, find_merge_rule
from daskw2v.train import train_model
from daskw2v.vocabulary.count import build_vocabulary
from daskw2v.vocabulary.partition import Partitions

Floats = npt.NDArray[np.float64]

SIZES = (100, 300)  # vector sizes of the calibration
DEALT = 8  # its partitions
GROUP = 4  # as in strategies.rotations
TASKS = 4  # of a meeting: it, and one for each of its three results
RAW_PAIR, RAW_WORD = 8, 4  # bytes of a pair as dealt, and of a word's code
MOVED = 6  # bytes through memory for a byte of a meeting's rows: zeroed, copied in and out, checked
TOP = 1 << 20  # words whose frequencies tell how even partitions are
TYPES, ROUNDS, PASSES, EPOCHS = 10_000, 2, 8, 2  # of the check; rounds and passes an epoch


class Line(NamedTuple):
    """Seconds by vector size d: fixed + column * d."""

    fixed: float
    column: float

    def at(self, d: int) -> float:
        return self.fixed + self.column * d


@dataclass(frozen=True)
class Constants:
    """What single steps take on one core of this machine, in seconds.

    Parameters
    ----------
    window, warm, cold
        A pair in the kernel of replicas; in that of buckets, trained on text; and there with rows that no cache has.
    crowded
        Times as much while all cores train.
    read, deal, pair_bytes
        A word read and subsampled; a pair dealt into its bucket and read from there; a pair's bytes in it, on disk.
    row
        A row of buckets, or a piece of text, dealt without pairs: tasks, files.
    copy, merge, send
        A byte of rows taken into a meeting or replica, out of it, and checked; of a replica, merged; and sent from
        worker to worker on this machine.
    meeting
        A meeting without rows or pairs: tasks, reading, replies.
    task
        A task in client and scheduler, which are one process here.
    """

    window: Line
    warm: Line
    cold: Line
    crowded: float
    read: float
    deal: float
    pair_bytes: float
    row: float
    copy: float
    merge: float
    send: float
    meeting: float
    task: float


@dataclass(frozen=True)
class Hardware:
    """A cluster.

    Parameters
    ----------
    nodes, threads, processes
        Machines; training threads and worker processes of each.
    memory, network, bus, storage
        Of a node: bytes; and bytes/s each way to other nodes, to its memory, to the shared store.
    cores
        Of all nodes together, where nodes share them.
    """

    name: str
    nodes: int
    threads: int
    processes: int
    memory: float
    network: float
    bus: float = math.inf
    storage: float = math.inf
    cores: float = math.inf

    def busy(self, threads: float) -> float:
        """Return how many of so many threads work at a time."""
        return min(threads, self.nodes * self.threads, self.cores)

    def a_byte(self, send: float) -> float:
        """Return what a byte takes that every node sends while it receives one, by its link or by its processes."""
        shared = max(1.0, self.nodes * self.processes / self.cores)
        return max(1 / (self.network * namespaces.HEADERS), 2 * send / self.processes * shared)


@dataclass(frozen=True)
class Load:
    """Words of all epochs, types, vector size, pairs of all epochs, and how often the top words are in pairs."""

    words: float
    types: int
    d: int
    pairs: float
    top: Floats

    @property
    def tables(self) -> float:
        """Bytes of both tables."""
        return 2.0 * self.types * 4 * self.d


class Forecast(NamedTuple):
    """Seconds by what takes them, bytes that nodes send each other, memory of a node, and bytes on disk."""

    seconds: dict[str, float]
    sent: float
    memory: float
    disk: float

    @property
    def work(self) -> float:
        """Seconds of the workers."""
        return sum(self.seconds.values()) - self.seconds["tasks"]

    @property
    def total(self) -> float:
        """The scheduler works beside the workers: the slower one counts."""
        return max(self.work, self.seconds["tasks"])


def contexts_of(lengths: Floats, window: int) -> float:
    """Return a word's contexts, on average, in sentences of such lengths.

    Of the words k apart `dealing.reach_of`, a draw from 1..window, reaches (window + 1 - k) / window.
    """
    apart = np.arange(1, window + 1)
    reached = np.maximum(lengths[:, None] - apart, 0) @ ((window + 1 - apart) / window)
    return float(2 * reached.sum() / lengths.sum())


def zipf(words: float, types: int, params: Params, sentence: float = 20) -> Load:
    """Return the load of words of frequency 1 / (rank * H); rarer ones than the top are never dropped."""
    frequency = 1 / (np.arange(1.0, TOP + 1) * (math.log(types) + np.euler_gamma))
    ratio = params.sample / frequency
    kept = frequency * np.minimum(1, np.sqrt(ratio) + ratio)  # as segments.keep_thresholds
    share = 1 - frequency.sum() + kept.sum()
    contexts = contexts_of(np.array([sentence * share]), params.window)
    return Load(words, types, params.vector_size, words * share * contexts, kept / share)


def barrier(load: Load, p: int) -> float:
    """Return the largest bucket of a round over the mean: a bucket is as large as its partitions' shares of the words.

    `vocabulary.partition` deals words back and forth; a round of `rotations` pairs partitions at random.
    """
    places, _ = Partitions(load.types, p).place(np.arange(len(load.top)))
    shares = np.bincount(places, load.top, p) + (1 - load.top.sum()) / p
    return float(np.mean([(shares * np.roll(shares, k)).max() for k in range(p)]) * p**2)


def moves(p: int, passes: int, nodes: int) -> float:
    """Return how often an output partition goes to another node.

    `_homes` gives neighbours to a node. A node with whole groups of `Rotations` keeps a group for a turn; one
    with less meets new partitions every round. In a pass all partners differ; the next pass may begin with the last.
    """
    group = max(size for size in range(1, GROUP + 1) if p % size == 0)
    units = p / (group if p >= group * nodes else 1)
    held = min(units, max(1.0, units / nodes))
    return passes * (units - held) + (passes - 1) * (1 - held / units)


def rotation(load: Load, p: int, passes: int, hardware: Hardware, c: Constants, width: int = 1) -> Forecast:
    """Return what strategy `rotation` takes; `width` threads train a meeting (in the code: one).

    Terms, and where they are in the code:

    text: both dealings of `skipgrams.build_skipgrams`, and `read_bucket`.
    store: the codes; pairs as dealt, and buckets, each written and read.
    train: `train_bucket`; a round is as long as its largest bucket; a row is cold once a meeting.
    copies: `CpuMeeting` copies two partitions in and out: as fast as cores do, or as memory does.
    meet: the rest of `meeting.meet`; threads of a process do it one by one (Python).
    travel: rows of 4 d + 8 bytes (`meeting.Output`); unseen where a thread has a second group of inputs to train.
    tasks: those of `_submit` and of dealing, in one scheduler.
    memory: both tables; with them two padded copies and a result of each meeting, or a row's pairs twice.
    """
    meetings, rows, slots = passes * p**2, load.types / p, min(p, hardware.nodes * hardware.threads // width)
    busy, everyone = hardware.busy(slots * width), hardware.busy(hardware.nodes * hardware.threads)
    cold = min(1.0, rows * meetings / load.pairs)
    pair = (c.crowded if busy > 1 else 1.0) * ((1 - cold) * c.warm.at(load.d) + cold * c.cold.at(load.d))
    texts = passes * (p + math.ceil(load.words / passes / SEGMENT))
    taken = meetings * 2 * rows * 4 * load.d
    stored = load.words * RAW_WORD + load.pairs * 2 * (RAW_PAIR + c.pair_bytes)
    sent = moves(p, passes, hardware.nodes) * load.types * (4 * load.d + 8)
    train = load.pairs * pair * max(1 / busy, barrier(load, p) / (slots * width))
    copies = max(taken * c.copy / busy, taken * MOVED / (hardware.nodes * hardware.bus))
    hidden = train + copies if p >= 2 * GROUP * slots else 0.0
    seconds = {
        "text": (load.pairs * c.deal + texts * c.row) / everyone,
        "store": stored / (hardware.nodes * hardware.storage),
        "train": train,
        "copies": copies,
        "meet": meetings * c.meeting / hardware.busy(min(slots, hardware.nodes * hardware.processes)),
        "travel": max(0.0, sent / hardware.nodes * hardware.a_byte(c.send) - hidden),
        "tasks": (TASKS * meetings + texts) * c.task,
    }
    meeting = 3 * rows * 4 * padded(load.d) * slots
    dealing = 2 * RAW_PAIR * load.pairs / passes / p * min(p, hardware.nodes * hardware.threads)
    memory = load.tables + 8 * load.types + max(meeting, dealing)
    disk = load.tables + load.pairs / passes * (RAW_PAIR + c.pair_bytes)
    return Forecast(seconds, sent, memory / hardware.nodes, disk)


def averaging(load: Load, rounds: int, hardware: Hardware, c: Constants) -> Forecast:
    """Return what strategy `averaging` takes, with a replica a node.

    Terms, and where they are in the code:

    text, train: `replica.train_replica`; in the warm-up of `AveragingRounds` one replica works alone.
    copies: `CpuReplica` copies both tables in and out, each round.
    meet: `averaging._merge`, each block on one worker.
    travel: each block goes from all replicas but one to where it is merged, and back, and its velocity from where it
    was merged last; some worker has ceil(blocks / replicas) of them. Dask trains several replicas where the blocks are,
    and sends less, if it takes sending for dearer than waiting: where tables are large against a round's text.
    tasks: those of `averaging._play`.
    memory: both tables five times: of the round, the replica's, its result, merged, and velocity.
    """
    n, blocks = hardware.nodes, 2 * math.ceil(load.types / rows_per_block(load.d))
    warm, everyone = min(0.1, n / 80) if n > 1 else 0.0, hardware.busy(n * hardware.threads)
    alone = warm / hardware.busy(hardware.threads) + (1 - warm) / everyone
    sent = rounds * (2 * (n - 1) + 1 - 1 / n) * load.tables
    merged = rounds * n * load.tables if n > 1 else 0.0
    tasks = 2 * n + blocks * (n + math.ceil(n / 3) + 3)
    seconds = {
        "text": load.words * c.read * alone,
        "store": load.words * RAW_WORD / (n * hardware.storage),
        "train": load.pairs * c.window.at(load.d) * alone * (c.crowded if everyone > 1 else 1.0),
        "copies": (rounds * n / hardware.busy(n) + math.ceil(warm * rounds)) * load.tables * c.copy,
        "meet": merged * c.merge / hardware.busy(min(blocks, n)),
        "travel": sent * math.ceil(blocks / n) / blocks * hardware.a_byte(c.send),
        "tasks": rounds * tasks * c.task,
    }
    return Forecast(seconds, sent, 5 * load.tables, load.tables)


def timed(run: Callable[[], object], times: int = 3) -> float:
    """Return the median seconds of a run, after one that compiles."""
    seconds = []
    for _ in range(times + 1):
        began = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds[1:])


def line_of(seconds: Callable[[int], float]) -> Line:
    first, last = map(seconds, SIZES)
    column = (last - first) / (SIZES[1] - SIZES[0])
    return Line(first - column * SIZES[0], column)


def segment_of(text: Text, params: Params, words: int = 2 * SEGMENT) -> tuple[Segment, float]:
    """Return the first words of the text, subsampled, and the seconds that a word takes."""
    keep, stop = keep_thresholds(text.vocabulary.load().counts, params.sample), min(words, text.corpus.n_tokens)
    reader = SegmentReader(text.work, text.corpus, text.vocabulary)
    seconds = timed(lambda: reader.read(0, stop, params.window, keep, np.uint64(1)))
    return reader.read(0, stop, params.window, keep, np.uint64(1))[0], seconds / stop


def load_of(text: Text, segment: Segment, params: Params) -> Load:
    """Return the load of a text, in all epochs."""
    counts = text.vocabulary.load().counts
    kept = counts * (keep_thresholds(counts, params.sample) / 2.0**32)
    contexts = contexts_of(np.diff(segment.bounds).astype(np.float64), params.window)
    pairs = float(kept.sum()) * contexts * params.epochs
    return Load(text.corpus.n_tokens * params.epochs, len(counts), params.vector_size, pairs, kept[:TOP] / kept.sum())


def measure_kernels(text: Text, segment: Segment) -> dict[str, Any]:
    counts, params = text.vocabulary.load().counts, Params()

    def pair(make: Callable[..., Callable[[], float]], *how: int) -> float:
        kernel = make(*how)
        kernel()  # compiles
        return 1 / statistics.median(kernel() for _ in range(3))

    def warm(d: int) -> Callable[[], float]:
        return buckets(params.replace(vector_size=d), segment, counts, 1, TNS)

    def cold(d: int, rows: int = 1 << 18) -> float:
        rng, none = np.random.default_rng(1), (np.empty(0, np.int32),) * 2
        pairs, width = tuple(rng.integers(0, rows, (2, rows), np.int32)), padded(d)
        tables = first_rows(params.replace(vector_size=d), np.arange(rows)), huge_zeros(rows * width)
        words = word_table(np.ones(rows, np.int64), params.ns_exponent)
        return timed(lambda: train_bucket(pairs, none, *tables, width, 0.03, 5, 0, words, np.uint64(1))) / rows

    several = [warm(SIZES[0]) for _ in range(os.cpu_count() or 1)]
    with ThreadPoolExecutor(len(several)) as pool:
        together = [statistics.mean(pool.map(lambda kernel: kernel(), several)) for _ in range(3)]
    return {
        "window": line_of(lambda d: pair(lambda: windows(params.replace(vector_size=d), segment, counts))),
        "warm": (line := line_of(lambda d: pair(warm, d))),
        "cold": line_of(cold),
        "crowded": max(1.0, 1 / statistics.median(together) / line.at(SIZES[0])),
    }


def measure_rows(rows: int = 1 << 17) -> dict[str, float]:
    """Measure copies and merges of tables that no cache holds."""
    params, objective, rule = Params(), find_objective("sgns"), find_merge_rule("momentum")
    base, *others = (np.full((rows, SIZES[0]), i / 10, np.float32) for i in range(5))

    def copy() -> bool:
        replica = CpuReplica(objective, params, None, {"input": [base], "output": [others[0]]}, Threads(1, 0, 1))
        return all(is_finite(rows) for (rows,) in replica.take().values())

    return {
        "copy": timed(copy) / (2 * base.nbytes),
        "merge": timed(lambda: rule.finish(base, base, add_moves(base, *others))) / (len(others) * base.nbytes),
    }


def measure_dealing(text: Text, folder: Path) -> tuple[dict[str, float], Floats]:
    """Deal the whole text; return the sizes of its buckets, too."""
    params, place = Params(strategy="rotation", n_partitions=DEALT), Store(str(folder / "dealt"))
    with one_thread() as client:
        partitions = Partitions(text.vocabulary.size, DEALT)
        counts = partition_counts(client, text.vocabulary, partitions, params.ns_exponent, place / "weights")
        dealer = Dealer(Run(text.work, text.corpus.name, text.vocabulary, params, "cpu"), counts.weights)
        build_skipgrams(client, dealer, place / "small", Stretch(0, 0, 1000))  # compiles
        began = time.perf_counter()
        grams = build_skipgrams(client, dealer, place / "pairs", Stretch(0, 0, text.corpus.n_tokens))
        sizes = [[len(read_bucket(grams.row(i), j).pairs[0]) for j in range(DEALT)] for i in range(DEALT)]
        seconds = time.perf_counter() - began
    size = sum(path.stat().st_size for path in Path(grams.home.url).rglob("*") if path.is_file())
    return {"deal": seconds / grams.pairs, "pair_bytes": size / grams.pairs}, np.array(sizes)


def train(text: Text, params: Params, client: Client) -> tuple[float, float]:
    """Train; return the seconds of all rounds or passes, and those of dealing in them."""
    vectors = train_model(text.corpus, text.vocabulary, text.work, params, Resources(threads=1), client)
    metrics = vectors.metadata["metrics"]
    return metrics["seconds"], sum(entry.get("deal_seconds", 0.0) for entry in metrics["history"])


def text_of(path: Path, work: Store, types: int) -> Text:
    """Return a file as a text of so many types."""
    with one_thread() as client:
        corpus = build_corpus(path, work, Params(), Resources(), client)
        vocabulary = build_vocabulary(corpus, work, Params(max_final_vocab=types), Resources(), client)
        return Text(path, work, corpus, vocabulary)


def measure_cluster(small: Text) -> dict[str, float]:
    """Measure meetings and dealing without work on a worker, tasks on client and scheduler, and a transfer."""
    params = Params(strategy="rotation", n_partitions=DEALT, epochs=1)
    passes, sizes = params.passes_per_epoch, list[float]()
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        train(small, params, client)  # compiles
        used = time.process_time()
        seconds, dealt = train(small, params.replace(seed=2), client)
        used = time.process_time() - used
        cluster.scale(2)
        client.wait_for_workers(2)
        one, other = client.nthreads()
        for _ in range(5):
            rows = client.submit(np.ones, SEGMENT, workers=[one], pure=False)
            wait(rows)
            began = time.perf_counter()
            wait(client.submit(len, rows, workers=[other], pure=False))
            sizes.append((time.perf_counter() - began) / (8 * SEGMENT))
    return {
        "row": dealt / (passes * (DEALT + 1)),
        "meeting": (seconds - dealt) / (passes * DEALT**2),
        "task": used / (passes * (TASKS * DEALT**2 + DEALT + 1)),
        "send": statistics.median(sizes),
    }


def check(
    text: Text, small: Text, load: Load, c: Constants, workers: list[int], rates: list[float]
) -> Iterator[list[Any]]:
    """Train on workers behind limited links; yield a row of the table for each training."""
    seed = 0
    for n in workers:
        kinds = {
            "rotation": Params(strategy="rotation", n_partitions=n, passes_per_epoch=PASSES, epochs=EPOCHS),
            "averaging": Params(n_replicas=n, rounds_per_epoch=ROUNDS, epochs=EPOCHS),
        }
        with namespaces.cluster(n) as cluster:
            for params in kinds.values():
                train(small, params, cluster.client)  # compiles
            for rate in rates if n > 1 else rates[:1]:
                cluster.limit(rate)
                here = Hardware("", n, 1, 1, math.inf, rate * namespaces.MBIT, cores=os.cpu_count() or 1)
                for name, params in kinds.items():
                    seed, before = seed + 1, cluster.sent()  # a seed trained before would be there already
                    seconds, _ = train(text, params.replace(seed=seed), cluster.client)
                    sent = cluster.sent() - before
                    f = {
                        "rotation": rotation(load, n, PASSES * EPOCHS, here, c),
                        "averaging": averaging(load, ROUNDS * EPOCHS, here, c),
                    }[name]
                    yield [
                        name,
                        n,
                        rate,
                        seconds,
                        f.total,
                        f.total / seconds,
                        sent / 1e6,
                        f.sent / 1e6,
                        *f.seconds.values(),
                    ]


TERMS = ("text", "store", "train", "copies", "meet", "travel", "tasks")
CHECK = ("", "workers", "Mbit/s", "seconds", "model", "ratio", "MB sent", "model", *TERMS)
FORECAST = ("", "seconds", "TB sent", "GB a node", "TB on disk", *TERMS)


def report(head: Sequence[str], rows: Iterable[Sequence[Any]], out: TextIO) -> list[dict[str, Any]]:
    """Print a table, each row as it comes; return its rows."""
    made = []
    print(f"{head[0]:30}" + "".join(f"{name:>11}" for name in head[1:]), file=out)
    for name, *values in rows:
        cells = (f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:.3g}" for value in values)
        print(f"{name:30}" + "".join(f"{cell:>11}" for cell in cells), file=out, flush=True)
        made.append({"name": name, "values": values})
    return made


PAPER = Params(vector_size=300, sample=1e-5, epochs=1)
DATA = {"Query-Ads": (54.8e9, 200_000_000, 1500, 856), "Web": (1.066e12, 1_420_000_000, 3000, 7344)}
THREADS = 20  # of a node of the paper; it does not say how many nodes there are: a partition a thread is our guess


def clusters(partitions: int) -> list[Hardware]:
    """Return the paper's nodes and modern ones; processes have four threads, and stores are as fast as the network."""
    slow, fast = 10e9 / 8, 100e9 / 8
    return [
        Hardware("20 threads, 64 GB, 10 Gbps", partitions // THREADS, THREADS, THREADS // 4, 64e9, slow, 42.6e9, slow),
        Hardware("64 threads, 512 GB, 100 Gbps", 64, 64, 16, 512e9, fast, 400e9, fast),
    ]


def planned(load: Load, p: int, hardware: Hardware, c: Constants, width: int = 1) -> tuple[int, Forecast]:
    """Return the fewest passes whose pairs fit into memory while they are dealt, or one; and their forecast."""
    several = [(passes, rotation(load, p, passes, hardware, c, width)) for passes in (2**i for i in range(8))]
    return next((plan for plan in several if plan[1].memory < hardware.memory), several[0])


def plans(load: Load, hardware: Hardware, c: Constants) -> Iterator[list[Any]]:
    """Yield a row of the table for averaging, rotation, and rotation whose meetings have all threads of a node."""
    n, threads = hardware.nodes, hardware.threads
    found = {f"averaging, {n} replicas": averaging(load, 8 * n, hardware, c)}
    for width, mark in ((1, ""), (threads, " *")):
        passes, forecast = planned(load, n * threads // width, hardware, c, width)
        found[f"rotation, p={n * threads // width}, {passes} pass(es){mark}"] = forecast
    for name, f in found.items():
        unfit = "" if f.memory < hardware.memory else " !"
        yield [name + unfit, f.total, f.sent / 1e12, f.memory / 1e9, f.disk / 1e12, *f.seconds.values()]


def report_scheduler(load: Load, hardware: Hardware, c: Constants, out: TextIO) -> None:
    """Print what one scheduler costs where each thread has a partition, and what would remove that."""
    p = hardware.nodes * hardware.threads
    passes, f = planned(load, p, hardware, c)
    tasks = TASKS * passes * p**2
    most = max(q for q in range(1, p + 1) if TASKS * passes * q**2 * c.task <= f.work)
    print(
        f"One scheduler, p={p}: {tasks / 1e6:,.1f} million tasks at {1 / c.task:,.0f}/s take {f.seconds['tasks']:,.0f} "
        f"s beside {f.work:,.0f} s of work. To hide them: {tasks / f.work:,.0f} tasks/s; or p={most}, so "
        f"{math.ceil(p / most)} threads a meeting.",
        file=out,
    )


def report_forecasts(c: Constants, out: TextIO) -> list[dict[str, Any]]:
    """Print what both strategies would take for the paper's data."""
    rows = []
    for name, (words, types, partitions, seconds) in DATA.items():
        load = zipf(words, types, PAPER)
        theirs = load.pairs * 2 * 4 * load.d
        print(
            f"\n{name}: {words / 1e9:,.0f} billion words, {types / 1e6:,.0f} million types, {load.pairs / 1e9:,.0f} "
            f"billion pairs; {partitions} partitions took {seconds:,} s. The paper's two vectors a pair are "
            f"{theirs / 1e12:,.0f} TB:\nat 10 Gbps {theirs / seconds / (10e9 / 8):,.0f} nodes send them in that time.",
            file=out,
        )
        for hardware in clusters(partitions):
            print(f"\n{name} on {hardware.nodes} nodes of {hardware.name}", file=out)
            rows += report(FORECAST, plans(load, hardware, c), out)
            report_scheduler(load, hardware, c, out)
    print("\n* all threads of a node train one meeting: not in the code.  ! does not fit into memory.", file=out)
    return rows


def report_constants(c: Constants, out: TextIO) -> None:
    units = {
        "crowded": (1, ""),
        "pair_bytes": (1, ""),
        "row": (1e3, " ms"),
        "meeting": (1e3, " ms"),
        "task": (1e3, " ms"),
    }
    texts = []
    for name, (factor, unit) in {f.name: units.get(f.name, (1e9, " ns")) for f in fields(c)}.items():
        value = getattr(c, name)
        several = [value.at(d) for d in SIZES] if isinstance(value, Line) else [value]
        texts.append(f"{name} {'/'.join(f'{factor * v:.3g}' for v in several)}{unit}")
    print(f"Constants (kernels: a pair at d={'/'.join(map(str, SIZES))}): {', '.join(texts)}", file=out)


def calibrate(
    text: Text, small: Text, segment: Segment, read: float, folder: Path, load: Load, out: TextIO
) -> Constants:
    """Measure all constants; print how pairs and buckets of the text compare with the model's."""
    dealt, sizes = measure_dealing(text, folder)
    largest = statistics.mean(np.diagonal(np.roll(sizes, k, 1)).max() for k in range(DEALT)) / sizes.mean()
    print(
        f"An epoch: {text.corpus.n_tokens:,} words, {load.types:,} types, {sizes.sum():,.0f} pairs (by the model "
        f"{load.pairs / EPOCHS:,.0f}); largest bucket of a round over the mean, p={DEALT}: {largest:.3f} (by the model "
        f"{barrier(load, DEALT):.3f})",
        file=out,
    )
    kernels = measure_kernels(text, segment)
    return Constants(**kernels, **dealt, **measure_rows(), **measure_cluster(small), read=read)


def read_constants(path: Path) -> Constants:
    values = json.loads(path.read_text())
    return Constants(**{name: Line(*value) if isinstance(value, list) else value for name, value in values.items()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=int, default=2, help="tenths of the 100 MB corpus")
    parser.add_argument("--rates", type=float, nargs="+", default=[1000, 100], help="Mbit/s of a worker's link")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--skip-runs", action="store_true", help="no trainings to check the model by")
    parser.add_argument("--constants", type=Path, help="file of an earlier calibration; written where it is missing")
    parser.add_argument("--json", action="store_true", help="results as JSON; the lines then go to stderr")
    options = parser.parse_args()
    out, checked = sys.stderr if options.json else sys.stdout, list[dict[str, Any]]()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that namespaces are removed
    with tempfile.TemporaryDirectory() as name:
        folder, params = Path(name), Params(epochs=EPOCHS)
        text = text_of(write_text(folder / "wiki.txt", options.parts), Store(str(folder / "work")), TYPES)
        (folder / "small.txt").write_bytes(text.path.read_bytes()[:300_000])
        small = text_of(folder / "small.txt", Store(str(folder / "small")), 1000)  # next to no work: tasks are left
        segment, read = segment_of(text, params)
        load = load_of(text, segment, params)
        if options.constants and options.constants.exists():
            c = read_constants(options.constants)
        else:
            c = calibrate(text, small, segment, read, folder, load, out)
            if options.constants:
                options.constants.write_text(json.dumps(asdict(c)))
        report_constants(c, out)
        lacking = "--skip-runs" if options.skip_runs else namespaces.missing()
        if lacking:
            print(f"\nNO CHECK BY REAL TRAININGS: {lacking}", file=out)
        else:
            print("\nReal trainings, and the model's seconds, traffic and terms", file=out)
            checked = report(CHECK, check(text, small, load, c, options.workers, options.rates), out)
    rows = report_forecasts(c, out)
    print(machine(), file=out)
    if options.json:
        print(json.dumps({"constants": asdict(c), "checks": checked, "forecasts": rows}, indent=1))


if __name__ == "__main__":
    main()
