"""What training costs: compute, traffic, barriers, storage and the scheduler's work, as formulas of a few constants."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.config.params import Params
from daskw2v.kernels.simd import padded
from daskw2v.sampling.skipgrams import piece_length
from daskw2v.training.blocks import rows_per_block
from daskw2v.vocabulary.partition import Partitions
from tests.support import namespaces

Floats = npt.NDArray[np.float64]

GROUP = 4  # as in strategies.rotations
TASKS = 4  # of a pair of units: its task, and one for each of its three results
RAW_WORD = 4  # bytes of a word's code
MOVED = 6  # bytes through memory for a byte of rows in a task: zeroed, copied in and out, checked
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
    piece
        A piece of text, dealt without pairs: tasks, files.
    copy, merge, send
        A byte of rows taken into a task or replica, out of it, and checked; of a replica, merged; and sent from
        worker to worker on this machine.
    bucket_task, bucket
        A task of `bucket_task.train_buckets` without buckets: tasks, replies; and a bucket without rows or pairs:
        reading.
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
    piece: float
    copy: float
    merge: float
    send: float
    bucket_task: float
    bucket: float
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


class RotationTasks(NamedTuple):
    """How a cluster trains p partitions: as `rotation.in_memory` cuts the steps of groups into tasks.

    Parameters
    ----------
    groups
        Groups of partitions.
    units
        What a task takes of each table: groups, or single partitions where a group's threads are several workers'.
    tasks, threads
        Tasks side by side, and the threads of each.
    """

    groups: int
    units: int
    tasks: int
    threads: int


def rotation_tasks(p: int, groups: int | None, hardware: Hardware) -> RotationTasks:
    """Return the tasks of p partitions, in the groups of `rotations` if none are given."""
    groups = groups or p // max(size for size in range(1, GROUP + 1) if p % size == 0)
    slots, own = hardware.nodes * hardware.threads, hardware.threads // hardware.processes
    share = max(1, slots // groups)  # threads of a group
    if slots <= groups or (slots % groups == 0 and own % share == 0):
        return RotationTasks(groups, groups, min(groups, slots), min(share, p // groups))
    return RotationTasks(groups, p, min(p, slots), 1)


def barrier(load: Load, p: int, units: int | None = None) -> float:
    """Return the largest bucket of a round over the mean: a bucket is as large as its partitions' shares of the words.

    `vocabulary.partition` deals words back and forth; a round of `rotations` pairs partitions at random. With `units`,
    neighbours go together, so many in all.
    """
    places, _ = Partitions(load.types, p).place(np.arange(len(load.top)))
    shares = np.bincount(places, load.top, p) + (1 - load.top.sum()) / p
    n = units or p
    shares = shares.reshape(n, -1).sum(1)
    return float(np.mean([(shares * np.roll(shares, k)).max() for k in range(n)]) * n**2)


def moves(units: int, passes: int, nodes: int) -> float:
    """Return how often a unit of the output table goes to another node.

    Neighbours share a node. In a pass all partners differ; the next pass may begin with the last.
    """
    held = min(units, max(1.0, units / nodes))
    return passes * (units - held) + (passes - 1) * (1 - held / units)


def rotation(load: Load, p: int, passes: int, hardware: Hardware, c: Constants, groups: int | None = None) -> Forecast:
    """Return what strategy `rotation` takes.

    Terms, and where they are in the code:

    text: `skipgrams.build_skipgrams`, and `read_bucket`.
    store: the codes; pairs, written and read.
    train: `train_bucket`; tasks of one thread wait for the largest of theirs, threads of a task for that of a round; a
    row is cold once in each bucket.
    copies: `CpuPartitionTrainer` copies what a task takes in and out: as fast as cores do, or as memory does.
    handling: the rest of `bucket_task.train_buckets`; threads of a process do it one by one (Python).
    travel: rows of 4 d + 8 bytes (`bucket_task.OutputPartition`); hidden if a thread has a second group of inputs.
    tasks: those of `in_memory._submit` and of dealing, in one scheduler.
    memory: both tables; with them two padded copies and a result of each task, or a piece's pairs of each thread.
    """
    plan = rotation_tasks(p, groups, hardware)
    n_tasks, n_buckets, taken_rows = passes * plan.units**2, passes * p**2, load.types / plan.units
    threads, everyone = plan.tasks * plan.threads, hardware.busy(hardware.nodes * hardware.threads)
    busy = hardware.busy(threads)
    cold = min(1.0, load.types / p * n_buckets / load.pairs)
    pair = (c.crowded if busy > 1 else 1.0) * ((1 - cold) * c.warm.at(load.d) + cold * c.cold.at(load.d))
    piece = piece_length(p, int(load.words / passes))
    pieces = passes * math.ceil(load.words / passes / piece)
    taken = n_tasks * 2 * taken_rows * 4 * load.d
    stored = load.words * RAW_WORD + load.pairs * 2 * c.pair_bytes
    sent = moves(plan.units, passes, hardware.nodes) * load.types * (4 * load.d + 8)
    whole = plan.threads == 1 and plan.units < p
    size = p // plan.groups  # of a group: its rounds are done when so many buckets are, by the threads of a task
    waits = math.ceil(size / plan.threads) * plan.threads / size if plan.threads > 1 else 1.0
    train = load.pairs * pair * max(1 / busy, barrier(load, p, plan.units if whole else p) * waits / threads)
    copies = max(taken * c.copy / busy, taken * MOVED / (hardware.nodes * hardware.bus))
    hidden = train + copies if plan.groups >= 2 * threads else 0.0
    seconds = {
        "text": (load.pairs * c.deal + pieces * c.piece) / min(everyone, pieces / passes),
        "store": stored / (hardware.nodes * hardware.storage),
        "train": train,
        "copies": copies,
        "handling": (n_tasks * c.bucket_task + n_buckets * c.bucket)
        / hardware.busy(min(plan.tasks, hardware.nodes * hardware.processes)),
        "travel": max(0.0, sent / hardware.nodes * hardware.a_byte(c.send) - hidden),
        "tasks": (TASKS * n_tasks + pieces) * c.task,
    }
    rows_of_tasks = 3 * taken_rows * 4 * padded(load.d) * plan.tasks
    dealing = c.pair_bytes * load.pairs / load.words * piece * min(pieces / passes, hardware.nodes * hardware.threads)
    memory = load.tables + 8 * load.types + max(rows_of_tasks, dealing)
    disk = load.tables + load.pairs / passes * c.pair_bytes
    return Forecast(seconds, sent, memory / hardware.nodes, disk)


def averaging(load: Load, rounds: int, hardware: Hardware, c: Constants) -> Forecast:
    """Return what strategy `averaging` takes, with a replica a node.

    Terms, and where they are in the code:

    text, train: `replica.train_replica`; in the warm-up of `AveragingRounds` one replica works alone.
    copies: `CpuReplicaTrainer` copies both tables in and out, each round.
    handling: `averaging._merge`, each block on one worker.
    travel: each block goes from all replicas but one to where it is merged, and back, and its velocity from where it
    was merged last; some worker has ceil(blocks / replicas) of them. Dask trains several replicas where the blocks are,
    and sends less, if it takes sending for dearer than waiting: where tables are large against a round's text.
    tasks: those of `AveragingRun.play`.
    memory: both tables five times: of the round, the replica's, its result, merged, and velocity.
    """
    n, blocks = hardware.nodes, 2 * math.ceil(load.types / rows_per_block(load.d))
    warm, everyone = min(0.1, n / 80) if n > 1 else 0.0, hardware.busy(n * hardware.threads)
    alone = warm / hardware.busy(hardware.threads) + (1 - warm) / everyone
    sent = rounds * (2 * (n - 1) + 1 - 1 / n) * load.tables
    merged = rounds * n * load.tables if n > 1 else 0.0
    sums = math.ceil(n / 3) if n > 4 else 0  # of up to four replicas none
    tasks = 2 * n + blocks * (n + sums + 3)
    seconds = {
        "text": load.words * c.read * alone,
        "store": load.words * RAW_WORD / (n * hardware.storage),
        "train": load.pairs * c.window.at(load.d) * alone * (c.crowded if everyone > 1 else 1.0),
        "copies": (rounds * n / hardware.busy(n) + math.ceil(warm * rounds)) * load.tables * c.copy,
        "handling": merged * c.merge / hardware.busy(min(blocks, n)),
        "travel": sent * math.ceil(blocks / n) / blocks * hardware.a_byte(c.send),
        "tasks": rounds * tasks * c.task,
    }
    return Forecast(seconds, sent, 5 * load.tables, load.tables)
