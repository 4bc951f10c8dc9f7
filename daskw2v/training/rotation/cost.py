"""The cost of partitions that are trained two by two: seconds and memory of training."""

import itertools
import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from daskw2v.config.params import Params
from daskw2v.kernels.simd import padded
from daskw2v.sampling.skipgrams import dealt_length, slice_length
from daskw2v.training.rotation.memory import SENT_BYTES, fits_model, fits_pairs, passes_ahead, together
from daskw2v.training.rotation.pass_schedule import RotationPasses, is_one_task, passes_of_epoch
from daskw2v.training.rotation.settings import Rotation
from daskw2v.training.sizes.forecast import RAW_WORD, Constants, Forecast, Hardware, Load, shares_of
from daskw2v.training.sizes.memory import Workers
from daskw2v.types import Float64Array
from daskw2v.vocabulary.partition import Partitions

HOPS = 3  # tasks one after the other between two steps
TASKS = 4  # of a pair of groups: its task, and one for each of its three results
_MOVED = 4  # bytes through memory for a byte of rows in a task: copied, checked
_LEAST, _MOST = 1000, 4096  # words of a partition, and partitions, that "auto" tries


class RotationTasks(NamedTuple):
    """How a cluster trains p partitions: number of their groups, tasks side by side, and threads of each task.

    A task trains two groups, or all of them, as in `rotation.pass_tasks`; its threads are those of a worker.
    """

    groups: int
    tasks: int
    threads: int


def rotation_tasks(p: int, groups: int | None, hardware: Hardware) -> RotationTasks:
    """Return the tasks of p partitions, in the groups of `RotationPasses` by default."""
    groups = RotationPasses(Params(n_partitions=p, n_groups=groups), 1).n_steps
    share = max(1, hardware.slots // groups)  # threads of a group
    return RotationTasks(
        groups, min(groups, hardware.slots), min(share, hardware.threads // hardware.processes, p // groups)
    )


@lru_cache(8)
def barrier(load: Load, p: int, groups: int | None = None) -> float:
    """Return the largest bucket of a round over the mean: a bucket is as large as its partitions' shares of the words.

    `vocabulary.partition` deals words back and forth; a round pairs partitions at random. With `groups`,
    neighbours go together, in so many.
    """
    n = groups or p
    shares = _shares_of_partitions(load, p).reshape(n, -1).sum(1)
    return float(np.mean([(shares * np.roll(shares, k)).max() for k in range(n)]) * n**2)


def waits(load: Load, p: int, size: int, threads: int) -> float:
    """Return how much longer threads of a task take than if they waited for no bucket of two groups of `size`.

    `train_in_order` lets no thread wait for a round: either there is no thread for a bucket, or its partition is still
    trained, of which the largest has most to do.
    """
    largest = _shares_of_partitions(load, p).max() * p
    return float(max(math.ceil(size**2 / threads) * threads / size**2, largest * threads / size))


@lru_cache(2)  # many plans have as many partitions
def _shares_of_partitions(load: Load, p: int) -> Float64Array:
    """Return the share of each partition in the words."""
    places, _ = Partitions(load.types, p).place(np.arange(len(load.top)))
    return np.asarray(np.bincount(places, load.top, p) + (1 - load.top.sum()) / p)


def moves(groups: int, passes: int, nodes: int) -> float:
    """Return how often a group of output partitions goes to another node.

    Neighbours share a node. In a pass all partners differ; the next pass may begin with the last.
    """
    held = min(groups, max(1.0, groups / nodes))
    return passes * (groups - held) + (passes - 1) * (1 - held / groups)


def rotation_cost(
    load: Load,
    p: int,
    passes: int,
    hardware: Hardware,
    c: Constants,
    groups: int | None = None,
    sent_dtype: str = Rotation.sent_dtype,
) -> Forecast:
    """Return the forecast of training with p partitions, in so many passes over all epochs.

    Terms, and where they are in the code:

    text: `skipgrams.hold_pairs` and `held_buckets`, or `build_skipgrams` and `read_buckets` through files.
    store: the codes; pairs that lie in files, written and read. Where the cluster's memory does not hold the model also
    all that tasks take (`rotation.pass_tasks`), read and written, by one thread of each task.
    train: `train_bucket`; tasks of one thread wait for the largest of theirs, threads of a task as `waits` says; a row
    is cold once in each bucket of a slice that has pairs of it.
    copies: `CpuPartitionTrainer` copies what a task takes in and out, partition by partition: as fast as a core of each
    task does, or as memory does.
    handling: the rest of `bucket_task.train_buckets`; threads of a process do it one by one (Python).
    travel: `bucket_task.OutputPartition`, if memory holds the model; hidden if a thread has a second group of inputs.
    Held pairs, which travel while others are trained.
    waiting: between two steps, for the tasks that hand on partitions.
    tasks: those of `pass_tasks._submit` and of dealing, in one scheduler. One trains several passes of little text.
    memory: both tables; with them two padded copies and a result of each task, or a piece's pairs of each thread.
    """
    fits = fits_model(load.types, load.d, sent_dtype, hardware.nodes * hardware.memory)
    pairs = load.pairs * c.pair_bytes
    held = fits and fits_pairs(pairs / passes, hardware.nodes * hardware.memory)
    plan = rotation_tasks(p, groups, hardware)
    n_groups, workers = plan.groups, hardware.nodes * hardware.processes
    if not fits:
        plan = plan._replace(threads=1)
    one_task = fits and is_one_task(workers, hardware.threads, n_groups, sent_dtype)
    if one_task:
        plan = rotation_tasks(p, 1, hardware)
    length = max(1, int(load.words / passes))
    most = together(length, pairs / passes, hardware.threads, hardware.memory) if one_task and held else 1
    submitted = math.ceil(passes / most)
    slices = math.ceil(length / slice_length(p, length))
    n_tasks, n_buckets, taken_rows = submitted * plan.groups**2, passes * slices * p**2, load.types / plan.groups
    threads, everyone = plan.tasks * plan.threads, hardware.busy(hardware.slots)
    busy = hardware.busy(threads)
    cold = _cold_share(load, n_buckets / p)
    pair = (c.crowded if busy > 1 else 1.0) * ((1 - cold) * c.warm.at(load.d) + cold * c.cold.at(load.d))
    piece = dealt_length(p, length, hardware.slots if held else None)
    pieces = passes * math.ceil(length / piece)
    taken = n_tasks * 2 * taken_rows * 4 * load.d
    stored = load.words * RAW_WORD + (0.0 if held else 2 * pairs)
    filed = 0.0 if fits else n_tasks * taken_rows * (4 + SENT_BYTES[sent_dtype]) * load.d * 2
    moved = moves(plan.groups, passes, hardware.nodes) if fits else 0.0
    sent = moved * load.types * (SENT_BYTES[sent_dtype] * padded(load.d) + 8)
    dealt = pairs * (1 - 1 / hardware.nodes) if held else 0.0  # to the workers that train them
    longer = barrier(load, p, plan.groups) if plan.threads == 1 else waits(load, p, p // plan.groups, plan.threads)
    train = load.pairs * pair * max(1 / busy, longer / threads)
    copies = max(taken * c.copy / hardware.busy(plan.tasks), taken * _MOVED / (hardware.nodes * hardware.bus))
    hidden = train + copies if plan.groups >= 2 * threads else 0.0
    dealing_tasks = 1 + n_groups if held else 1  # of a piece
    seconds = {
        "text": (load.pairs * c.deal + pieces * (c.piece + dealing_tasks * c.result)) / min(everyone, pieces / passes),
        "store": max((stored + filed) / hardware.nodes / hardware.storage, filed * c.file / hardware.busy(plan.tasks)),
        "train": train,
        "copies": copies,
        "handling": (n_tasks * c.bucket_task + n_buckets * c.bucket)
        / hardware.busy(min(plan.tasks, hardware.nodes * hardware.processes)),
        "travel": max(0.0, sent / hardware.nodes * hardware.a_byte(c.send) - hidden)
        + max(0.0, dealt / hardware.nodes * hardware.a_byte(c.send) - train),
        "waiting": submitted * plan.groups * HOPS * c.hop if fits else 0.0,
        "tasks": (TASKS * n_tasks + pieces * dealing_tasks) * c.task,
    }
    rows_of_tasks = 2 * taken_rows * 4 * padded(load.d) * plan.tasks
    dealing = c.pair_bytes * load.pairs / load.words * piece * min(pieces / passes, hardware.slots)
    kept = load.tables + 8 * load.types if fits else 0.0
    memory = kept + max(rows_of_tasks, dealing) + (passes_ahead(workers) * pairs / submitted if held else 0.0)
    disk = load.tables * (1 if fits else 2) + (0.0 if held else pairs / passes)
    return Forecast(seconds, sent + dealt, memory / hardware.nodes, disk)


@lru_cache(64)  # plans that differ in groups or in what they send have as many
def _cold_share(load: Load, visits: float) -> float:
    """Return the share of pairs whose row is met for the first time in a visit of its partition, of so many visits."""
    rest, shares, _ = shares_of(load)
    met = -visits * np.expm1(-load.pairs * shares / visits)
    return min(1.0, float(met[:-1].sum() + rest * met[-1]) / load.pairs)


def run_cost(params: Params, load: Load, hardware: Hardware, constants: Constants) -> Forecast:
    """Return the forecast of training."""
    passes = params.epochs * passes_of_epoch(params)
    of = Rotation.of(params)
    return rotation_cost(load, of.n_partitions, passes, hardware, constants, of.n_groups, of.sent_dtype)


def tried(params: Params, words: int, workers: Workers) -> Iterator[Mapping[str, Any]]:
    """Yield as many partitions as have work for all threads, more of them, which take less memory each, and half of it.

    Fewer buckets take less of Python's time: of little text, 32 partitions may keep 64 threads busier than 64 do.
    """
    doubled = (Rotation.n_partitions << i for i in itertools.count())
    for p in itertools.takewhile(lambda p: p <= min(_MOST, words // _LEAST), doubled):
        if 2 * p >= workers.n * workers.threads:
            yield {"n_partitions": p}
