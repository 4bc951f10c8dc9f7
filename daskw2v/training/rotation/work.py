"""The work of strategy `rotation`: memory and phases of training partitions two by two, in memory or through files."""

import itertools
import math
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.kernels.simd import padded
from daskw2v.objectives.touched import contexts_of_window
from daskw2v.sampling.pairs import pair_type
from daskw2v.sampling.segments import POSITION
from daskw2v.sampling.settings import NegativeSampling
from daskw2v.sampling.skipgrams import max_slice_length, max_task_positions, slice_length, task_length
from daskw2v.training.loop.work import BLOCK, FLOAT, INT, LONG, Moment, Phase, Sizes, Work
from daskw2v.training.rotation.pass_schedule import (
    MAX_GROUP,
    enough_passes,
    fits_one_task,
    group_size,
    max_passes_of_threads,
    passes_of_epoch,
)
from daskw2v.training.rotation.settings import Rotation
from daskw2v.training.sizes import Load, Text, Workers, estimate_load
from daskw2v.types import Float64Array
from daskw2v.vocabulary.partition import Partitions

OUT_OF_CORE = "the cluster's memory does not hold the model: its partitions go through the work directory"
SENT_BYTES = {"float32": 4, "bfloat16": 2}  # of a value of an output partition between tasks
HOPS = 3  # tasks one after the other between two steps
TASKS = 4  # of a pair of groups: its task, and one for each of its three results
# Shares of the cluster's memory that a model, and the pairs of passes ahead, may take. Copies in training, and results
# that Dask keeps, need the rest
_MODEL_SHARE, _PAIRS_SHARE = 0.3, 0.15
_COPIES_OF_PAIRS = 1.5  # with several workers: pairs that a worker fetched exist twice until their pass is trained
_NOISE = {"tns": 0, "sns": 1}  # entries of a pair besides itself; with bns one for each negative
_MIN_WORDS, _MAX_PARTITIONS = 1000, 4096  # words of a partition, and partitions, that "auto" tries
_LARGE_SHARE, _MIN_OCCURRENCES = 0.25, 64  # of a word to copy: of a partition's even share, and of a copy in a pass


class Fits(NamedTuple):
    """Which data of a run the memory of the workers holds; the rest goes through files.

    Parameters
    ----------
    model, pairs
        Whether memory holds both tables, and the pairs of a few passes.
    passes_of_task
        Maximum number of passes of one task, where one worker trains all of them and holds their pairs; else 1.
    """

    model: bool
    pairs: bool
    passes_of_task: int


class RotationWork(Work):
    """The memory and the phases of a run, in memory or through files."""

    def __init__(self, params: Params, resources: Resources, text: Text, workers: Workers) -> None:
        super().__init__(params, resources, text, workers)
        settings, passes = Rotation.of(params), passes_of_epoch(params)
        self.n_partitions, self.sent_dtype = settings.partitions, settings.sent_dtype
        self.n_groups = settings.partitions // group_size(params)
        self.passes, self.length = params.epochs * passes, text.words // passes  # of all epochs; positions of a pass
        self.n_copied = settings.copied_words or 0
        more = 1 + self.n_copied * settings.partitions / max(1, text.vocabulary)  # copied words are rows, too
        self.tables, self.copies = int(more * self.tables), int(more * self.copies)
        self.pairs_of_pass = self._pair_bytes(text.subsampled / passes)  # bytes
        self.notes = () if self.fits.model else (OUT_OF_CORE,)

    @cached_property
    def fits(self) -> Fits:
        """Which data of the run the workers hold in memory."""
        memory = self.workers.memory
        rows = self.text.vocabulary + self.n_copied * self.n_partitions
        model = fits_model(rows, self.params.vector_size, self.sent_dtype, memory)
        pairs = model and fits_pairs(self.pairs_of_pass, memory)
        length = self.text.words / passes_of_epoch(self.params)
        max_passes = max_passes_of_task(length, self.pairs_of_pass, self.workers.threads, memory)
        together = pairs and self.workers.n == 1 and not self.n_copied  # copies are averaged between passes
        return Fits(model, pairs, max_passes if together else 1)

    def train(self) -> Iterator[Moment]:
        """Yield the moments of tasks that train two groups on their pairs, and of tasks that distribute pairs."""
        workers, fits, groups = self.workers, self.fits, self.n_groups
        tasks = min(self.tasks, -(-groups // workers.n))  # of a worker
        on_device = -(-tasks // workers.devices)
        slice_length = max_slice_length(self.n_partitions, self.length)
        pairs = min(self.pairs_of_pass, self._pair_bytes(slice_length))  # of a slice
        task = {
            "partitions in training": tasks * self.copies / groups,
            "rows that are read": tasks * self.tables / 2 / self.n_partitions,
            "negatives or trees": tasks * 3 * LONG * self.text.vocabulary / groups,  # counts, and tables from them
            "pairs": tasks * 3 * pairs / groups**2,  # a slice is read, and joined, while another is trained
        }
        kept = {"model": self.tables / workers.n} if fits.model else {}
        # A group's old rows are released only after the new ones exist
        replaced = {"groups just trained": tasks * self.tables / groups} if fits.model else {}
        if fits.pairs:
            ahead = min(fits.passes_of_task, self.passes) * passes_ahead(workers.n)
            copies = _COPIES_OF_PAIRS if workers.n > 1 else 1.0
            kept["pairs of passes"] = ahead * copies * self.pairs_of_pass / workers.n
        device = {"partitions": on_device * self.copies / groups, "pairs": on_device * pairs / self.n_partitions**2}
        yield Moment({**kept, **replaced, **task, **self._distribution_sizes(workers.threads - tasks)}, device)
        yield Moment({**kept, **self._distribution_sizes(workers.threads)})

    def publish(self) -> Iterator[Moment]:
        """Yield the moments of writing and evaluating the model, or of writing partitions that lie in files."""
        partition = max(self.table_bytes.values()) / self.n_partitions
        rows = self.workers.threads * max(BLOCK, partition)
        yield from super().publish() if self.fits.model else [Moment({"rows written or checked": rows})]

    def phases(self) -> Iterator[Phase]:
        """Yield the phases of training.

        text: `skipgrams.submit_pairs` and `make_bucket_reader`, or `build_skipgrams` and `read_buckets` through files.
        store: the codes; pairs that lie in files, written and read. Where the workers do not hold the model also the
        partitions of all tasks (`rotation.pass_tasks`), read and written, by one thread of each task.
        train: `train_bucket`; tasks of one thread wait for the largest bucket of a round, threads of a task as
        `waiting_factor` says; a row is cold once in each bucket of a slice that has pairs of the row.
        copies: `CpuPartitionTrainer` copies the rows of a task in and out, partition by partition.
        handling: the rest of `bucket_task.train_buckets`; threads of a process execute it one by one (Python's lock).
        travel: `bucket_task.OutputPartition`, if memory holds the model; hidden if a thread has a second group of
        inputs. Held pairs, which are sent while others are trained.
        waiting: between two steps, for the tasks that hand on partitions.
        tasks: the tasks of `pass_tasks._submit` and of distributing pairs, in one scheduler. One task trains several
        passes of little text.
        """
        workers, load, p, d, fits = self.workers, self.load, self.n_partitions, self.params.vector_size, self.fits
        one_task = fits.model and fits_one_task(workers.n, workers.threads, self.n_groups, self.sent_dtype)
        groups = 1 if one_task else self.n_groups
        tasks = min(groups, workers.slots)  # side by side
        threads = min(max(1, workers.slots // groups), workers.threads, p // groups) if fits.model else 1
        all_threads, value_bytes = tasks * threads, SENT_BYTES[self.sent_dtype]
        length, tasks_of_piece = max(1, self.length), 1 + self.n_groups if fits.pairs else 1
        pieces = self.passes * math.ceil(length / task_length(p, length, workers.slots if fits.pairs else None))
        distribution = {"deal": load.pairs, "piece": pieces, "result": pieces * tasks_of_piece}
        yield Phase("text", distribution, min(workers.slots, pieces / self.passes))
        submitted = math.ceil(self.passes / fits.passes_of_task) if one_task else self.passes
        n_tasks, pairs = submitted * groups**2, load.pairs * pair_type(-(-load.types // p)).itemsize
        rows = 2 * n_tasks * load.types / groups  # of all tasks
        filed = 0.0 if fits.model else rows * (FLOAT + value_bytes) * d
        yield Phase("store", {"file": filed}, tasks, stored=load.words * INT + filed)
        filed_pairs = 0 if fits.pairs else 2 * pairs
        yield Phase("store", {"file": filed_pairs}, workers.slots, stored=filed_pairs)
        buckets = self.passes * math.ceil(length / slice_length(p, length)) * p**2
        cold = _cold_share(load, buckets / p) * load.pairs
        if threads == 1:
            slowest = barrier(load, p, groups, self.n_copied)
        else:
            slowest = waiting_factor(load, p, p // groups, threads, self.n_copied)
        yield Phase("train", {"warm": load.pairs - cold, "cold": cold}, all_threads, slowest)
        yield Phase("copies", {"copy": rows * FLOAT * d}, tasks)
        yield Phase("handling", {"bucket_task": n_tasks, "bucket": buckets}, min(tasks, workers.n))
        moved = count_moves(groups, self.passes, workers.n) if fits.model else 0.0
        hidden = ("train", "copies") if groups >= 2 * all_threads else ()
        yield Phase("travel", sent=moved * load.types * (value_bytes * padded(d) + LONG), beside=hidden)
        yield Phase("travel", sent=pairs * (1 - 1 / workers.n) if fits.pairs else 0.0, beside=("train",))
        yield Phase("waiting", {"hop": submitted * groups * HOPS if fits.model else 0})
        averaging = 2 * self.passes * (2 * groups + 1) if self.n_copied else 0
        yield Phase("tasks", {"task": TASKS * n_tasks + pieces * tasks_of_piece + averaging})

    def _pair_bytes(self, words: float) -> float:
        """Return the bytes of the pairs, with noise, of `words` words that subsampling keeps."""
        params, settings = self.params, Rotation.of(self.params)
        contexts = contexts_of_window(params)
        noise = 0
        if isinstance(params.objective, NegativeSampling):
            noise = _NOISE.get(settings.negative_rule, params.objective.negative)
        entry = pair_type(-(-self.text.vocabulary // settings.partitions)).itemsize
        return entry * (1 + noise) * contexts * words

    def _distribution_sizes(self, threads: int) -> Sizes:
        """Return the bytes, by content, of tasks on `threads` threads that distribute the pairs of the next pass."""
        if not threads:
            return {}
        n = self.workers.n if self.fits.pairs else None
        n_distributed = max_task_positions(self.n_partitions, self.length, threads, n)
        return {
            "text": (POSITION + 2 * INT + LONG) * min(threads * self.text.words, n_distributed),
            "pairs being dealt": self._pair_bytes(min(threads * self.text.subsampled, n_distributed)),
            "open shards": self.open_shard_bytes(),
        }


def max_passes_of_task(length: float, pair_bytes: float, threads: int, memory: float) -> int:
    """Return the maximum number of passes that one task trains, where there is one worker.

    Parameters
    ----------
    length, pair_bytes
        Positions of a pass, and bytes of its pairs.
    threads, memory
        Threads and bytes of memory of the worker.
    """
    fitting = _PAIRS_SHARE * memory / passes_ahead(1) / max(1.0, pair_bytes)
    return int(max(1, min(max_passes_of_threads(length, threads), fitting)))


def fits_model(n_words: int, vector_size: int, sent_dtype: str, memory: float) -> bool:
    """Return whether a cluster with `memory` bytes of memory holds both tables."""
    return (FLOAT + SENT_BYTES[sent_dtype]) * n_words * vector_size <= _MODEL_SHARE * memory


def fits_pairs(pair_bytes: float, memory: float) -> bool:
    """Return whether a cluster with `memory` bytes of memory holds the pairs of passes, of `pair_bytes` a pass."""
    return passes_ahead(2) * _COPIES_OF_PAIRS * pair_bytes <= _PAIRS_SHARE * memory


def passes_ahead(n_workers: int) -> int:
    """Return the number of passes whose pairs exist at a time: one is trained, one distributed while threads are idle.

    Several workers are idle at different times, and distribute one more.
    """
    return 2 if n_workers == 1 else 3


@lru_cache(8)  # many plans have the same number of partitions
def barrier(load: Load, n_partitions: int, groups: int, n_copied: int = 0) -> float:
    """Return the pairs of a step's largest task divided by the mean; each task trains two of `groups` groups.

    A task has as many pairs as its groups' shares of the words. `vocabulary.partition` assigns words back and forth; a
    step pairs groups at random; neighbouring partitions form a group. `n_copied` words have copies in all partitions.
    """
    shares = _shares_of_partitions(load, n_partitions, n_copied).reshape(groups, -1).sum(1)
    return float(np.mean([(shares * np.roll(shares, k)).max() for k in range(groups)]) * groups**2)


def waiting_factor(load: Load, n_partitions: int, group_size: int, threads: int, n_copied: int = 0) -> float:
    """Return the time of a task's `threads` threads divided by their time if no thread waited for a bucket.

    `run_in_order` lets no thread wait for the end of a round: either a bucket waits for a thread, or a thread waits
    for a partition, of which the largest takes most time. A task trains two groups of `group_size` partitions.
    `n_copied` words have copies in all partitions.
    """
    largest = _shares_of_partitions(load, n_partitions, n_copied).max() * n_partitions
    return float(max(math.ceil(group_size**2 / threads) * threads / group_size**2, largest * threads / group_size))


@lru_cache(2)
def _shares_of_partitions(load: Load, n_partitions: int, n_copied: int) -> Float64Array:
    """Return the share of each of `n_partitions` partitions in the running words, shape (n_partitions,) float64.

    All partitions share the `n_copied` most frequent words.
    """
    numbers, _ = Partitions(load.types, n_partitions).locate(np.arange(len(load.top)))
    even = (1 - load.top[n_copied:].sum()) / n_partitions
    return np.asarray(np.bincount(numbers[n_copied:], load.top[n_copied:], n_partitions) + even)


def count_moves(groups: int, passes: int, nodes: int) -> float:
    """Return how often each group of output partitions is sent to another of `nodes` workers in all passes.

    Neighbouring groups of inputs share a worker. In a pass a group meets each group of inputs once; the next pass may
    begin with the group of inputs that it met last.
    """
    held = min(groups, max(1.0, groups / nodes))
    return passes * (groups - held) + (passes - 1) * (1 - held / groups)


@lru_cache(64)
def _cold_share(load: Load, visits: float) -> float:
    """Return the share of pairs whose row is read for the first time in one of `visits` visits of its partition."""
    met = -visits * np.expm1(-load.pairs * load.shares / visits)
    return min(1.0, load.total(met) / load.pairs)


def candidate_settings(params: Params, text: Text, workers: Workers) -> Iterator[Mapping[str, Any]]:
    """Yield settings for "auto" to compare; none for fewer than 8,000 words.

    They are numbers of partitions, groups and copied words, with as many passes as keep one replica's quality if
    workers hold the pairs of a pass. Pairs in files have the passes of Params: more took workers out of memory.
    """
    for division in _divisions(params, text, workers):
        given = params.replace(**division)
        passes = {"passes_per_epoch": enough_passes(given)}
        more = passes["passes_per_epoch"] > passes_of_epoch(given)
        held = more and RotationWork(given.replace(**passes), Resources(), text, workers).fits.pairs
        yield {**division, **passes} if held else division


def _divisions(params: Params, text: Text, workers: Workers) -> Iterator[Mapping[str, Any]]:
    """Yield numbers of partitions, of groups and of copied words.

    More partitions take less memory each, and keep more threads busy. Fewer have fewer buckets, each of which takes
    some of Python's time: little text may be trained fastest where most threads have nothing to do. A group for each
    worker has fewest tasks and copies. Rules with noise do not have it: noise would train long before or after its
    pairs, and may diverge.
    """
    settings, n_words = Rotation.of(params), text.vocabulary
    divided = (p for p in _doubled(Rotation().partitions, n_words) if p % (settings.n_groups or 1) == 0)
    yield from ({"n_partitions": p} for p in divided)
    if settings.n_groups is None and workers.n > 1 and settings.negative_rule == "tns":
        for p in _doubled(2 * MAX_GROUP * workers.n, n_words):
            yield {"n_partitions": p, "n_groups": workers.n}
            n_copied = count_words_to_copy(params.replace(n_partitions=p), text)
            if n_copied and settings.copied_words is None and isinstance(params.objective, NegativeSampling):
                yield {"n_partitions": p, "n_groups": workers.n, "copied_words": n_copied}


def count_words_to_copy(params: Params, text: Text) -> int:
    """Return the number of words so frequent that copies pay: each alone is a quarter of a partition's even share.

    Each of their copies occurs often in a pass, so that the mean of the copies is of trained rows.
    """
    load, p = estimate_load(text, params), Rotation.of(params).partitions
    occurrences = load.top * text.subsampled / enough_passes(params) / p  # of a copy in a pass
    return int(((load.top * p > _LARGE_SHARE) & (occurrences >= _MIN_OCCURRENCES)).sum())


def _doubled(smallest: int, n_words: int) -> Iterator[int]:
    """Yield a number of partitions, twice as many, and so on, as long as partitions are large enough."""
    doubled = (smallest << i for i in itertools.count())
    return itertools.takewhile(lambda p: p <= min(_MAX_PARTITIONS, n_words // _MIN_WORDS), doubled)
