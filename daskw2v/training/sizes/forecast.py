"""Forecasts of the time of training: constants, cluster and load of the formulas, and the seconds that they give.

The constants are the seconds of single steps, measured by `python -m benchmarks.scale_model`. The load of a text is its
pairs, and how often its most frequent words are in them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from daskw2v.config.params import Params
from daskw2v.features.settings import has_features, most_rows
from daskw2v.objectives.settings import SGNS
from daskw2v.sampling.weights import NS_EXPONENT
from daskw2v.training.sizes.text import Text
from daskw2v.types import Float64Array

RAW_WORD = 4  # bytes of a word's code
LINK = 1448 / 1514  # of a packet's bytes on a link are data: Ethernet, IP and TCP take the rest
TOP = 1 << 20  # words whose frequencies show how even partitions are
_LEAST = 1e-9  # share of a text that is left, for formulas to divide by
SENTENCE = 20.0  # words of a sentence, where a text's are not known


class Line(NamedTuple):
    """Seconds by vector size d: fixed + column * d."""

    fixed: float
    column: float

    def at(self, d: int) -> float:
        """Return the seconds for vectors of d dimensions."""
        return self.fixed + self.column * d


@dataclass(frozen=True)
class Constants:
    """The seconds of single steps on one core.

    Parameters
    ----------
    window, far
        A pair in the kernel of replicas, trained on text of few words; and with rows that no cache has.
    warm, cold
        A pair in the kernel of buckets, whose rows a cache has, and whose rows no cache has.
    crowded
        Times as much while all cores train.
    read, deal, pair_bytes
        A word read and subsampled; a pair dealt into its bucket and read from there; a pair's bytes in it, on disk.
    piece
        A piece of text, dealt without pairs.
    copy, send
        A byte of rows taken into a task or replica, out of it, and checked; and sent or received by a worker, whose
        event loop does both.
    merge
        A byte of a replica's rows, projected and merged.
    file
        A byte of rows, written to a file or read from it, with its checksum.
    bucket_task, bucket
        A task of `rotation.bucket_task.train_buckets` without buckets: tasks, replies; and a bucket of one pair.
    task, result
        A task in client and scheduler, which are one process where this was measured; and in its worker.
    hop
        From the end of a task to the beginning of one that waits for it.
    """

    window: Line
    far: Line
    warm: Line
    cold: Line
    crowded: float
    read: float
    deal: float
    pair_bytes: float
    piece: float
    copy: float
    merge: Line
    send: float
    file: float
    bucket_task: float
    bucket: float
    task: float
    result: float
    hop: float


# Machine B (AMD EPYC Genoa, 2 cores), nearly idle, `python -m benchmarks.scale_model --parts 10 --rates 1000`:
# kernels of sgns with 5 negatives
MACHINE_B = Constants(
    window=Line(1.67e-08, 3.85e-10), far=Line(6.2e-08, 7.9e-10), warm=Line(1.86e-08, 3.62e-10),
    cold=Line(7.05e-08, 8.55e-10), crowded=1.18, read=5.57e-9, deal=1.42e-08, pair_bytes=4, piece=0.00083,
    copy=2.7e-10, merge=Line(8e-10, 8e-12), send=2.3e-10, file=1.49e-09, bucket_task=0.0034, bucket=0.00002, task=0.001,
    result=0.0013, hop=0.0058,
)  # fmt: skip
_MEASURED = {("sgns", "cpu")}  # objectives and devices
_NEGATIVES = 5
_COMPOSED = 7.8e-9  # a window and dimension more with n-grams (an Intel Xeon)


def constants_of(params: Params, device: str) -> Constants | None:
    """Return the constants with the kernels of these Params, which take longer with more negatives.

    Windows whose rows are composed of features' take longer too. None for an objective and device whose kernels were
    not measured.
    """
    of = params.objective
    if (of.name, device) not in _MEASURED or not isinstance(of, SGNS) or of.negative_sharing != "shared":
        return None
    times = (1 + of.negative + of.market_negative) / (1 + _NEGATIVES)
    window, far, warm, cold = (
        Line(times * line.fixed, times * line.column)
        for line in (MACHINE_B.window, MACHINE_B.far, MACHINE_B.warm, MACHINE_B.cold)
    )
    if has_features(params):
        pairs = params.window + 1 if params.shrink_windows else 2 * params.window  # of a window
        window, far = (line._replace(column=line.column + _COMPOSED / pairs) for line in (window, far))
    return replace(MACHINE_B, window=window, far=far, warm=warm, cold=cold)


@dataclass(frozen=True)
class Hardware:
    """A cluster.

    Parameters
    ----------
    name
        Its name in a table.
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

    @property
    def slots(self) -> int:
        """Training threads of all nodes."""
        return self.nodes * self.threads

    def busy(self, threads: float) -> float:
        """Return how many of so many threads work at a time."""
        return min(threads, self.slots, self.cores)

    def a_byte(self, send: float) -> float:
        """Return the seconds of a byte that every node sends while it receives one, by its link or by its processes.

        `send` is the time in which a process sends or receives one.
        """
        shared = max(1.0, self.nodes * self.processes / self.cores)
        return max(1 / (self.network * LINK), 2 * send / self.processes * shared)


@dataclass(frozen=True, eq=False)
class Load:
    """The load of training: words and pairs. No two loads are equal, so that results can be cached by load.

    Parameters
    ----------
    words, types
        Words of all epochs; words that have rows.
    d
        Dimensions of a vector.
    pairs
        Pairs of all epochs.
    top
        How often the most frequent words are in pairs, as shares of them all.
    more
        Rows besides those of both tables: those of words' features.
    """

    words: float
    types: int
    d: int
    pairs: float
    top: Float64Array
    more: int = 0

    @property
    def tables(self) -> float:
        """Bytes of all tables."""
        return (2.0 * self.types + self.more) * 4 * self.d


class Forecast(NamedTuple):
    """The forecast of training.

    Parameters
    ----------
    seconds
        Seconds by what takes them; "tasks" are the scheduler's, which works beside the workers.
    sent
        Bytes that nodes send each other.
    memory
        Bytes of a node.
    disk
        Bytes on disk.
    """

    seconds: Mapping[str, float]
    sent: float
    memory: float
    disk: float

    @property
    def work(self) -> float:
        """Seconds of the workers."""
        return sum(self.seconds.values()) - self.seconds["tasks"]

    @property
    def total(self) -> float:
        """Seconds of workers or scheduler, whichever takes longer."""
        return max(self.work, self.seconds["tasks"])


def contexts_of(lengths: Float64Array, params: Params) -> float:
    """Return a word's contexts, on average, in sentences of such lengths.

    Of the words k apart, a window that is drawn from 1..window reaches (window + 1 - k) / window.
    """
    apart = np.arange(1, params.window + 1)
    reach = (params.window + 1 - apart) / params.window if params.shrink_windows else np.ones(params.window)
    return float(2 * (np.maximum(lengths[:, None] - apart, 0) @ reach).sum() / lengths.sum())


def zipf(words: float, types: int, params: Params) -> Load:
    """Return the load of words of frequency 1 / (rank * H); rarer ones than the top are never dropped.

    `words` are those of all epochs.
    """
    frequency, kept = _top(types, params)
    share = 1 - frequency.sum() + kept.sum()
    return _load(words, share, types, params, kept / share)


def load_of(text: Text, params: Params) -> Load:
    """Return the load of a text, of which subsampling leaves a known share."""
    share = max(text.left / text.words, _LEAST)
    _, kept = _top(text.vocabulary, params)
    return _load(text.words * params.epochs, share, text.vocabulary, params, kept / max(share, kept.sum()))


def _top(types: int, params: Params) -> tuple[Float64Array, Float64Array]:
    """Return the frequencies of the most frequent words in the text, and the frequencies that subsampling leaves."""
    frequency = 1 / (np.arange(1.0, min(TOP, types) + 1) * (math.log(types) + np.euler_gamma))
    if not params.sample:
        return frequency, frequency
    ratio = params.sample / frequency
    return frequency, frequency * np.minimum(1, np.sqrt(ratio) + ratio)  # as segments.keep_thresholds


def _load(words: float, share: float, types: int, params: Params, top: Float64Array) -> Load:
    contexts = contexts_of(np.array([SENTENCE * share]), params)
    pairs = max(1.0, words * share * contexts)  # for formulas to divide by
    return Load(words, types, params.vector_size, pairs, top, most_rows(params, types))


@lru_cache(2)  # many plans are compared for the same load
def shares_of(load: Load) -> tuple[int, Float64Array, Float64Array]:
    """Return how many words are rare, taken as equally frequent; shares of words, and of noise, theirs at the end."""
    rest = load.types - len(load.top)
    shares = np.append(load.top, max(0.0, 1 - load.top.sum()) / max(1, rest))
    noise = shares**NS_EXPONENT
    return rest, shares, noise / (noise[:-1].sum() + rest * noise[-1])
