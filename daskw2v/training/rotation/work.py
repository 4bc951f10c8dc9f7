"""The work of partitions that are trained two by two; where the workers do not hold them, they go through the store."""

import itertools
import math
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.kernels.simd import padded
from daskw2v.sampling.pairs import pair_type
from daskw2v.sampling.segments import POSITION
from daskw2v.sampling.settings import NegativeSampling
from daskw2v.sampling.skipgrams import max_slice_length, max_task_positions, slice_length, task_length
from daskw2v.training.loop.work import BLOCK, FLOAT, INT, LONG, Moment, Phase, Sizes, Work
from daskw2v.training.rotation.pass_schedule import group_size, is_one_task, most_together, passes_of_epoch
from daskw2v.training.rotation.settings import Rotation
from daskw2v.training.sizes.text import Load, Text
from daskw2v.training.sizes.workers import Workers
from daskw2v.types import Float64Array
from daskw2v.vocabulary.partition import Partitions

OUT_OF_CORE = "the cluster's memory does not hold the model: its partitions go through the work directory"
SENT_BYTES = {"float32": 4, "bfloat16": 2}  # of a value of an output partition that is no task's
HOPS = 3  # tasks one after the other between two steps
TASKS = 4  # of a pair of groups: its task, and one for each of its three results
_SHARE = (
    0.3  # of the cluster's memory that a model may take: copies in training, and results that Dask keeps, need the rest
)
_PAIRS_SHARE = 0.15  # that the pairs of these passes may take
_TWICE = 1.5  # a part that another worker took is there twice until its pass is trained
_NOISE = {"tns": 0, "sns": 1}  # entries of a pair besides itself; with bns one for each negative
_LEAST, _MOST = 1000, 4096  # words of a partition, and partitions, that "auto" tries


class Fits(NamedTuple):
    """The parts of a run that the memory of the workers holds; the rest goes through files.

    Parameters
    ----------
    model, pairs
        Whether it holds both tables, and the pairs of a few passes.
    together
        Passes whose pairs it holds for one task, at most, where one worker has all of them.
    """

    model: bool
    pairs: bool
    together: int


class RotationWork(Work):
    """The work of a run, in memory or through files."""

    checked = 2 * BLOCK  # partitions are put in order

    def __init__(self, params: Params, resources: Resources, text: Text, workers: Workers) -> None:
        super().__init__(params, resources, text, workers)
        of, of_epoch = Rotation.of(params), passes_of_epoch(params)
        self.n_partitions, self.sent_dtype = of.n_partitions, of.sent_dtype
        self.n_groups = of.n_partitions // group_size(params)
        self.passes, self.length = params.epochs * of_epoch, text.words // of_epoch  # of all epochs; positions of one
        self.pairs_of_pass = self._pair_bytes(text.left / of_epoch)
        self.notes = () if self.fits.model else (OUT_OF_CORE,)

    @cached_property
    def fits(self) -> Fits:
        """The parts of the run that the workers hold in memory."""
        memory = self.workers.memory
        model = fits_model(self.text.vocabulary, self.params.vector_size, self.sent_dtype, memory)
        pairs = model and fits_pairs(self.pairs_of_pass, memory)
        length = self.text.words / passes_of_epoch(self.params)
        most = together(length, self.pairs_of_pass, self.workers.threads, memory)
        return Fits(model, pairs, most if pairs and self.workers.n == 1 else 1)

    def train(self) -> Iterator[Moment]:
        """Yield tasks that train two groups on their pairs, and tasks that deal pairs alone."""
        workers, fits, groups = self.workers, self.fits, self.n_groups
        tasks = min(self.tasks, -(-groups // workers.n))  # of a worker
        on_device = -(-tasks // workers.devices)
        pairs = min(
            self.pairs_of_pass, self._pair_bytes(max_slice_length(self.n_partitions, self.length))
        )  # of a slice
        task = {
            "partitions in training": tasks * self.copies / groups,
            "rows that are read": tasks * self.tables / 2 / self.n_partitions,
            "negatives or trees": tasks * 3 * LONG * self.text.vocabulary / groups,  # counts, and tables made of them
            "pairs": tasks * 3 * pairs / groups**2,  # a slice is read, and put together, while another is trained
        }
        kept = {"model": self.tables / workers.n} if fits.model else {}
        # A group's old rows are released only after the new ones exist
        replaced = {"groups just trained": tasks * self.tables / groups} if fits.model else {}
        if fits.pairs:
            ahead, copies = min(fits.together, self.passes) * passes_ahead(workers.n), _TWICE if workers.n > 1 else 1.0
            kept["pairs of passes"] = ahead * copies * self.pairs_of_pass / workers.n
        device = {"partitions": on_device * self.copies / groups, "pairs": on_device * pairs / self.n_partitions**2}
        yield Moment({**kept, **replaced, **task, **self._dealing(workers.threads - tasks)}, device)
        yield Moment({**kept, **self._dealing(workers.threads)})

    def publish(self) -> Iterator[Moment]:
        """Yield writing and evaluating the model, or writing partitions that lie in files."""
        partition = max(self.table_bytes.values()) / self.n_partitions
        rows = max(self.checked, self.workers.threads * max(BLOCK, partition))
        yield from super().publish() if self.fits.model else [Moment({"rows written or checked": rows})]

    def phases(self) -> Iterator[Phase]:
        """Yield the phases of training.

        text: `skipgrams.submit_pairs` and `make_bucket_reader`, or `build_skipgrams` and `read_buckets` through files.
        store: the codes; pairs that lie in files, written and read. Where the workers do not hold the model also all
        that tasks take (`rotation.pass_tasks`), read and written, by one thread of each task.
        train: `train_bucket`; tasks of one thread wait for the largest of theirs, threads of a task as `waits` says; a
        row is cold once in each bucket of a slice that has pairs of it.
        copies: `CpuPartitionTrainer` copies the rows of a task in and out, partition by partition.
        handling: the rest of `bucket_task.train_buckets`; threads of a process do it one by one (Python).
        travel: `bucket_task.OutputPartition`, if memory holds the model; hidden if a thread has a second group of
        inputs. Held pairs, which travel while others are trained.
        waiting: between two steps, for the tasks that hand on partitions.
        tasks: those of `pass_tasks._submit` and of dealing, in one scheduler. One trains several passes of little text.
        """
        workers, load, p, d, fits = self.workers, self.load, self.n_partitions, self.params.vector_size, self.fits
        one_task = fits.model and is_one_task(workers.n, workers.threads, self.n_groups, self.sent_dtype)
        groups = 1 if one_task else self.n_groups
        tasks = min(groups, workers.slots)  # side by side
        threads = min(max(1, workers.slots // groups), workers.threads, p // groups) if fits.model else 1
        all_threads, of_value = tasks * threads, SENT_BYTES[self.sent_dtype]
        length, dealing_tasks = max(1, self.length), 1 + self.n_groups if fits.pairs else 1
        pieces = self.passes * math.ceil(length / task_length(p, length, workers.slots if fits.pairs else None))
        dealt = {"deal": load.pairs, "piece": pieces, "result": pieces * dealing_tasks}
        yield Phase("text", dealt, min(workers.slots, pieces / self.passes))
        submitted = math.ceil(self.passes / fits.together) if one_task else self.passes
        n_tasks, pairs = submitted * groups**2, load.pairs * pair_type(-(-load.types // p)).itemsize
        rows = 2 * n_tasks * load.types / groups  # that tasks take
        filed = 0.0 if fits.model else rows * (FLOAT + of_value) * d
        stored = load.words * INT + (0 if fits.pairs else 2 * pairs) + filed
        yield Phase("store", {"file": filed}, tasks, stored=stored)
        buckets = self.passes * math.ceil(length / slice_length(p, length)) * p**2
        cold = _cold_share(load, buckets / p) * load.pairs
        longer = barrier(load, p, groups) if threads == 1 else waits(load, p, p // groups, threads)
        yield Phase("train", {"warm": load.pairs - cold, "cold": cold}, all_threads, longer)
        yield Phase("copies", {"copy": rows * FLOAT * d}, tasks)
        yield Phase("handling", {"bucket_task": n_tasks, "bucket": buckets}, min(tasks, workers.n))
        moved = moves(groups, self.passes, workers.n) if fits.model else 0.0
        hidden = ("train", "copies") if groups >= 2 * all_threads else ()
        yield Phase("travel", sent=moved * load.types * (of_value * padded(d) + LONG), beside=hidden)
        yield Phase("travel", sent=pairs * (1 - 1 / workers.n) if fits.pairs else 0.0, beside=("train",))
        yield Phase("waiting", {"hop": submitted * groups * HOPS if fits.model else 0})
        yield Phase("tasks", {"task": TASKS * n_tasks + pieces * dealing_tasks})

    def _pair_bytes(self, words: float) -> float:
        """Return the bytes of the pairs, with noise, of so many words that subsampling left."""
        params, of = self.params, Rotation.of(self.params)
        contexts = params.window + 1 if params.shrink_windows else 2 * params.window  # on the whole
        noise = 0
        if isinstance(params.objective, NegativeSampling):
            noise = _NOISE.get(of.negative_rule, params.objective.negative)
        entry = pair_type(-(-self.text.vocabulary // of.n_partitions)).itemsize
        return entry * (1 + noise) * contexts * words

    def _dealing(self, threads: int) -> Sizes:
        """Return the memory of tasks that deal pieces of the next pass, side by side."""
        if not threads:
            return {}
        n = self.workers.n if self.fits.pairs else None
        dealt = max_task_positions(self.n_partitions, self.length, threads, n)
        return {
            "text": (POSITION + 2 * INT + LONG) * min(threads * self.text.words, dealt),
            "pairs being dealt": self._pair_bytes(min(threads * self.text.left, dealt)),
            "open shards": self.open_shards(),
        }


def together(length: float, of_pass: float, threads: int, memory: float) -> int:
    """Return how many passes one task trains, at most.

    Parameters
    ----------
    length, of_pass
        Positions of a pass, and bytes of its pairs.
    threads, memory
        Threads and bytes of memory of the one worker.
    """
    room = _PAIRS_SHARE * memory / passes_ahead(1) / max(1.0, of_pass)
    return int(max(1, min(most_together(length, threads), room)))


def fits_model(n_words: int, vector_size: int, sent_dtype: str, memory: float) -> bool:
    """Return whether a cluster that holds so many bytes holds both tables."""
    return (FLOAT + SENT_BYTES[sent_dtype]) * n_words * vector_size <= _SHARE * memory


def fits_pairs(of_pass: float, memory: float) -> bool:
    """Return whether a cluster's memory holds pairs that take so many bytes a pass."""
    return passes_ahead(2) * _TWICE * of_pass <= _PAIRS_SHARE * memory


def passes_ahead(workers: int) -> int:
    """Return the passes whose pairs are there: of one that is trained, and of one that is dealt in its gaps.

    Several workers have gaps at other times, and deal one more.
    """
    return 2 if workers == 1 else 3


@lru_cache(8)  # many plans have as many partitions, here and below
def barrier(load: Load, p: int, groups: int) -> float:
    """Return the largest bucket of a round over the mean: a bucket is as large as its partitions' shares of the words.

    `vocabulary.partition` deals words back and forth; a round pairs partitions at random. Neighbours go together, in so
    many groups.
    """
    shares = _shares_of_partitions(load, p).reshape(groups, -1).sum(1)
    return float(np.mean([(shares * np.roll(shares, k)).max() for k in range(groups)]) * groups**2)


def waits(load: Load, p: int, size: int, threads: int) -> float:
    """Return how much longer threads of a task take than if they waited for no bucket of two groups of `size`.

    `train_in_order` lets no thread wait for a round: either there is no thread for a bucket, or its partition is still
    trained, of which the largest has most to do.
    """
    largest = _shares_of_partitions(load, p).max() * p
    return float(max(math.ceil(size**2 / threads) * threads / size**2, largest * threads / size))


@lru_cache(2)
def _shares_of_partitions(load: Load, p: int) -> Float64Array:
    """Return the share of each partition in the words."""
    numbers, _ = Partitions(load.types, p).place(np.arange(len(load.top)))
    return np.asarray(np.bincount(numbers, load.top, p) + (1 - load.top.sum()) / p)


def moves(groups: int, passes: int, nodes: int) -> float:
    """Return how often a group of output partitions goes to another node.

    Neighbours share a node. In a pass all partners differ; the next pass may begin with the last.
    """
    held = min(groups, max(1.0, groups / nodes))
    return passes * (groups - held) + (passes - 1) * (1 - held / groups)


@lru_cache(64)
def _cold_share(load: Load, visits: float) -> float:
    """Return the share of pairs whose row is met for the first time in a visit of its partition, of so many visits."""
    met = -visits * np.expm1(-load.pairs * load.shares / visits)
    return min(1.0, load.total(met) / load.pairs)


def tried(params: Params, words: int, workers: Workers) -> Iterator[Mapping[str, Any]]:
    """Yield as many partitions as have work for all threads, more of them, which take less memory each, and half of it.

    Fewer buckets take less of Python's time: of little text, 32 partitions may keep 64 threads busier than 64 do.
    """
    doubled = (Rotation.n_partitions << i for i in itertools.count())
    for p in itertools.takewhile(lambda p: p <= min(_MOST, words // _LEAST), doubled):
        if 2 * p >= workers.slots:
            yield {"n_partitions": p}
