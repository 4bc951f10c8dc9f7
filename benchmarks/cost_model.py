"""What training costs: compute, traffic, barriers, storage and the scheduler's work, as formulas of a few constants."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks import namespaces
from daskw2v.params import Params
from daskw2v.sampling.segments import SEGMENT
from daskw2v.simd import padded
from daskw2v.strategies.blocks import rows_per_block
from daskw2v.vocabulary.partition import Partitions

Floats = npt.NDArray[np.float64]

GROUP = 4  # as in strategies.rotations
TASKS = 4  # of what meets: it, and one for each of its three results
RAW_PAIR, RAW_WORD = 8, 4  # bytes of a pair as dealt, and of a word's code
MOVED = 6  # bytes through memory for a byte of rows that meet: zeroed, copied in and out, checked
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
    turn, meeting
        A task of `meeting.meet` without meetings: tasks, replies; and a meeting without rows or pairs: reading.
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
    turn: float
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


class Turns(NamedTuple):
    """How p partitions meet on a cluster: as `travelling` cuts the turns of groups into tasks.

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


def turns_of(p: int, groups: int | None, hardware: Hardware) -> Turns:
    """Return how p partitions meet, in the groups of `rotations` where none are given."""
    groups = groups or p // max(size for size in range(1, GROUP + 1) if p % size == 0)
    slots, own = hardware.nodes * hardware.threads, hardware.threads // hardware.processes
    share = max(1, slots // groups)  # threads of a group
    if slots <= groups or (slots % groups == 0 and own % share == 0):
        return Turns(groups, groups, min(groups, slots), min(share, p // groups))
    return Turns(groups, p, min(p, slots), 1)


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

    text: both dealings of `skipgrams.build_skipgrams`, and `read_bucket`.
    store: the codes; pairs as dealt, and buckets, each written and read.
    train: `train_bucket`; tasks of one thread wait for the largest of theirs, threads of a task for that of a round; a
    row is cold once a meeting.
    copies: `CpuMeeting` copies what a task takes in and out: as fast as cores do, or as memory does.
    meet: the rest of `meeting.meet`; threads of a process do it one by one (Python).
    travel: rows of 4 d + 8 bytes (`meeting.Output`); unseen where a thread has a second group of inputs to train.
    tasks: those of `travelling._submit` and of dealing, in one scheduler.
    memory: both tables; with them two padded copies and a result of what meets, or a row's pairs twice.
    """
    turns = turns_of(p, groups, hardware)
    met, meetings, taken_rows = passes * turns.units**2, passes * p**2, load.types / turns.units
    threads, everyone = turns.tasks * turns.threads, hardware.busy(hardware.nodes * hardware.threads)
    busy = hardware.busy(threads)
    cold = min(1.0, load.types / p * meetings / load.pairs)
    pair = (c.crowded if busy > 1 else 1.0) * ((1 - cold) * c.warm.at(load.d) + cold * c.cold.at(load.d))
    texts = passes * (p + math.ceil(load.words / passes / SEGMENT))
    taken = met * 2 * taken_rows * 4 * load.d
    stored = load.words * RAW_WORD + load.pairs * 2 * (RAW_PAIR + c.pair_bytes)
    sent = moves(turns.units, passes, hardware.nodes) * load.types * (4 * load.d + 8)
    whole = turns.threads == 1 and turns.units < p
    size = p // turns.groups  # of a group: its rounds are done when so many meetings are, by the threads of a task
    waits = math.ceil(size / turns.threads) * turns.threads / size if turns.threads > 1 else 1.0
    train = load.pairs * pair * max(1 / busy, barrier(load, p, turns.units if whole else p) * waits / threads)
    copies = max(taken * c.copy / busy, taken * MOVED / (hardware.nodes * hardware.bus))
    hidden = train + copies if turns.groups >= 2 * threads else 0.0
    seconds = {
        "text": (load.pairs * c.deal + texts * c.row) / everyone,
        "store": stored / (hardware.nodes * hardware.storage),
        "train": train,
        "copies": copies,
        "meet": (met * c.turn + meetings * c.meeting)
        / hardware.busy(min(turns.tasks, hardware.nodes * hardware.processes)),
        "travel": max(0.0, sent / hardware.nodes * hardware.a_byte(c.send) - hidden),
        "tasks": (TASKS * met + texts) * c.task,
    }
    meeting = 3 * taken_rows * 4 * padded(load.d) * turns.tasks
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
