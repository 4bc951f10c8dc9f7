"""The task of rotation: it trains buckets of partitions, as a pure function of the partitions' rows and the buckets."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from distributed import Future

from daskw2v.cluster.shared_memory import by_fields, share
from daskw2v.cluster.workers import this_worker
from daskw2v.config.choice import Choice
from daskw2v.kernels.bfloat16 import from_bfloat16, to_bfloat16
from daskw2v.kernels.rng import Purpose, draws, stream
from daskw2v.models.stored.tables import open_table, read_partition, write_partition
from daskw2v.objectives.base import INPUT, OUTPUT, is_finite
from daskw2v.objectives.registry import find_objective
from daskw2v.sampling.run import Run
from daskw2v.sampling.settings import NegativeSampling
from daskw2v.sampling.weights import NS_EXPONENT, PartitionCounts
from daskw2v.store.checksums import ChunkChecksums
from daskw2v.store.durability import durable
from daskw2v.store.partfile import read_part, write_parts
from daskw2v.store.stage import new_attempt
from daskw2v.store.storage import Store
from daskw2v.training.devices import DeviceRows, find_device
from daskw2v.training.loop.strategy import TaskClock, TaskTotals
from daskw2v.training.rotation.bucket_jobs import BucketJob, BucketWork, PairSource, StepWork, list_jobs, run_in_order
from daskw2v.training.rotation.pass_schedule import BucketRound, RotationPass, group_size
from daskw2v.training.rotation.settings import Rotation
from daskw2v.training.start.initial_rows import make_initial_rows
from daskw2v.types import Float32Array, Int64Array, UInt16Array, UInt64Array
from daskw2v.vocabulary.partition import Partitions

BFLOAT16 = "bfloat16"  # of `Rotation.sent_dtype`


@by_fields
class OutputPartition(NamedTuple):
    """An output partition that is sent between workers: its rows, and the result of `Objective.partition_table`.

    Rows are float32, or bits of bfloat16, padded as `PartitionTrainer.take` returns them.
    """

    rows: Float32Array | UInt16Array | DeviceRows
    words: UInt64Array


@dataclass(frozen=True)
class PartitionOrigin:
    """The location of a partition's rows: a checkpoint, or a file in the folder `store`; both None before training."""

    store: Store | None = None
    file: str | None = None


PartitionRows: TypeAlias = Float32Array | DeviceRows | OutputPartition | PartitionOrigin
PartitionMap: TypeAlias = Mapping[int, PartitionRows]  # by number of the partition
HeldPartition: TypeAlias = Future | PartitionMap  # a future of `PartitionMap`, or the map


@dataclass(frozen=True)
class RotationContext:
    """The arguments that all tasks of a run share.

    Parameters
    ----------
    run
        The run.
    partitions, counts
        The words of each partition, and how often they occur.
    device
        The settings of the device.
    """

    run: Run
    partitions: Partitions
    counts: PartitionCounts
    device: Choice

    @property
    def group_size(self) -> int:
        """Number of partitions in a group."""
        return group_size(self.run.params)

    @property
    def n_groups(self) -> int:
        """Number of groups of partitions of each table."""
        return self.partitions.n // self.group_size

    def rows(self, table: str, partition: int, rows: PartitionRows) -> Float32Array:
        """Return the rows of a partition's words, (words, D): from a task's result, read from their origin, or initial.

        The rows of copies, which come before them, are left out.
        """
        return self._rows(table, partition, rows)[self.partitions.n_copied :]

    def copies(self, table: str, partition: int, rows: PartitionRows) -> Float32Array:
        """Return the rows of a partition's copies, shape (copies, D)."""
        return self._rows(table, partition, rows)[: self.partitions.n_copied]

    def _rows(self, table: str, partition: int, rows: PartitionRows) -> Float32Array:
        """Return all rows of a partition, shape (rows, D)."""
        held: Float32Array = np.asarray(self.rows_as_held(table, partition, rows))
        return held[:, : self.run.params.vector_size]

    def rows_as_held(self, table: str, partition: int, rows: PartitionRows) -> Float32Array | DeviceRows:
        """Return all rows of a partition as float32: copies, then words.

        A task's result stays padded, (rows, padded(D)), or on its device.
        """
        if isinstance(rows, PartitionOrigin):
            return self._read(table, partition, rows)
        return _widened(rows.rows) if isinstance(rows, OutputPartition) else rows

    def words(self, partition: int, rows: PartitionRows) -> UInt64Array:
        """Return the result of `Objective.partition_table` for an output partition's words."""
        if isinstance(rows, OutputPartition):
            return rows.words
        params = self.run.params
        return find_objective(params.objective.name).partition_table(params, self.read_counts(partition))

    def read_counts(self, partition: int) -> Int64Array:
        """Read the counts by which a partition's rows are drawn as negatives, shape (rows,) int64.

        The weights of a word's copies add up to the weight of the word, whose own row is not drawn.
        """
        counts, n = self.counts.read(partition), self.partitions.n_copied
        if not n:
            return counts
        counts[: self.partitions.size(partition, n)] = 0
        exponent = NegativeSampling.of(self.run.params).ns_exponent
        share = self.partitions.n ** (-1 / (NS_EXPONENT if exponent is None else exponent))
        copied = np.maximum(1, np.rint(self.run.vocabulary.read_counts(0, n) * share))
        return np.concatenate([copied.astype(np.int64), counts])

    def _read(self, table: str, partition: int, origin: PartitionOrigin) -> Float32Array:
        """Return a partition's rows, shape (rows, D): initial rows if `origin` has no store, else the written ones."""
        copied = np.arange(self.partitions.n_copied)
        if origin.store is None:
            words = np.concatenate([copied, self.partitions.words(partition)])
            return make_initial_rows(self.run, table, words)
        if origin.file is None:
            words = read_partition(origin.store, table, partition)
            n = len(copied)
            return np.concatenate([_read_copies(origin.store, table, n), words]) if n else words
        sent = np.uint16 if table == OUTPUT and Rotation.of(self.run.params).sent_dtype == BFLOAT16 else np.float32
        rows: Float32Array = _widened(read_part(origin.store, origin.file, 1, 0, sent, self.run.params.vector_size))
        return rows


@lru_cache(maxsize=2)
def _read_copies(store: Store, table: str, n: int) -> Float32Array:
    """Read the rows of the first n words of a table of a checkpoint, which all partitions of a process need."""
    return open_table(store, table)[:n]


def _widened(rows: Any) -> Any:
    """Return rows as float32, from float32 or bits of bfloat16."""
    return rows if rows.dtype == np.float32 else from_bfloat16(rows)


def bucket_works(context: RotationContext, current: RotationPass, bucket_round: BucketRound) -> list[BucketWork]:
    """Return the buckets to train in a round of two groups in a pass."""
    params, n = context.run.params, context.partitions.n
    buckets = np.array([(current.number * n + pair.input) * n + pair.output for pair in bucket_round.pairs], np.uint64)

    def keys(purpose: Purpose) -> list[int]:
        streams: list[int] = draws(stream(params.seed, purpose, current.epoch), buckets).tolist()
        return streams

    pairs = bucket_round.pairs
    is_last = (bucket_round.number + 1) % len(pairs) == 0  # of the two groups' rounds
    is_rounded = is_last and Rotation.of(params).sent_dtype == BFLOAT16
    roundings = keys(Purpose.ROUNDING) if is_rounded else [None] * len(pairs)
    pair_keys = zip(pairs, keys(Purpose.NEGATIVE), roundings, strict=True)
    return [BucketWork(*pair, bucket_round.alphas, key, rounding) for pair, key, rounding in pair_keys]


def train_buckets(
    steps: Sequence[StepWork],
    inputs: Mapping[int, PartitionMap],
    outputs: Mapping[int, PartitionMap],
    pairs: Sequence[PairSource],
    context: RotationContext,
    threads: int,
    folder: Store | None = None,
    *,
    stays: bool = False,
    owned: bool = False,
) -> tuple[PartitionMap, PartitionMap, list[TaskTotals]]:
    """Task: train buckets of groups of input and output partitions.

    Parameters
    ----------
    steps
        The steps, in their order.
    inputs, outputs
        For each partition, by number, a map that holds its rows, and perhaps other partitions'.
    pairs
        The source of the pairs of each pass, with the pairs of these groups of inputs at least.
    context
        The arguments that all tasks share.
    threads
        Maximum number of buckets that are trained at the same time.
    folder
        Folder in which trained rows are written as files; None to return them.
    stays
        Whether the result may stay on a device, because no other worker needs it.
    owned
        Whether the rows are removed from `inputs` and `outputs`, which are results of tasks, and trained in place, as
        only this task needs them. It cannot be repeated then.

    Returns
    -------
    inputs, outputs, totals
        The trained partitions, by number, and the totals of each step. The task's seconds are shared among the steps in
        proportion to their pairs. Seconds of compilation are shared among passes; each step has its pass's share.
    """
    clock, words, params = TaskClock(), dict[int, UInt64Array](), context.run.params
    device = find_device(context.run.device)

    def find(held: Mapping[int, PartitionMap], k: int) -> PartitionRows:
        return cast(dict[int, PartitionRows], held[k]).pop(k) if owned else held[k][k]

    def open_output(k: int) -> Float32Array | DeviceRows:
        rows = find(outputs, k)
        words[k] = context.words(k, rows).view()
        words[k].flags.writeable = False  # as received arrays are, so that kernels are compiled once
        return context.rows_as_held(OUTPUT, k, rows)

    def open_input(k: int) -> Float32Array | DeviceRows:
        return context.rows_as_held(INPUT, k, find(inputs, k))

    def train(job: BucketJob) -> tuple[int, int, float]:
        work, bucket = job.work, job.load_bucket(job.work)
        alpha = work.alphas[job.slice_number]
        n, loss = trainer.train(work.input, work.output, bucket, alpha, words[work.output], job.key)
        return job.step, n, loss

    with device.explaining_errors(), ThreadPoolExecutor(threads) as pool:
        each = pool.map if folder is None else map  # rows that go through files may not fit in memory several times
        objective = find_objective(params.objective.name)
        tables = (
            {k: partial(open_input, k) for k in inputs},
            {k: partial(open_output, k) for k in outputs},
        )
        read, total = context.read_counts, context.run.vocabulary.total
        trainer = device.partition_trainer(objective, params, *tables, read, total, context.device, each, owned=owned)
        batches = list_jobs(steps, pairs, context.group_size, pool)
        trained = [*chain.from_iterable(run_in_order(pool, threads, train, jobs) for jobs in batches)]
        roundings = {work.output: work.rounding for work in steps[-1].rounds[-1]}
        results = _Results(trainer, params.vector_size, words, roundings, folder, stays)
        trained_inputs = dict(zip(inputs, each(partial(results.take, INPUT), inputs), strict=True))
        trained_outputs = dict(zip(outputs, each(partial(results.take, OUTPUT), outputs), strict=True))
    return trained_inputs, trained_outputs, _step_totals(trained, steps, all(results.finite), *clock.read())


@dataclass
class _Results:
    """Takes trained partitions out of their trainer, as results of the task or as files.

    Parameters
    ----------
    trainer
        The trainer of the partitions.
    columns
        Number of dimensions of a row.
    words, roundings
        For each output partition, the result of `Objective.partition_table`, which is sent with it, and the stream of
        its rounding to bfloat16, or None.
    folder, stays
        As in `train_buckets`.
    """

    trainer: Any
    columns: int
    words: Mapping[int, UInt64Array]
    roundings: Mapping[int, int | None]
    folder: Store | None
    stays: bool
    attempt: str = field(default_factory=new_attempt)
    finite: list[bool] = field(default_factory=list)  # of each partition that was taken out

    def take(self, table: str, k: int) -> PartitionRows:
        """Return the rows of the trained partition `k` of a table, or the file that they were written to."""
        rounding = self.roundings.get(k) if table == OUTPUT else None
        if self.folder is None and rounding is None:
            rows, finite = self.trainer.leave(table, k, stays=self.stays)
        else:
            taken = self.trainer.take(table, k)
            sent, finite = taken if rounding is None else to_bfloat16(taken, np.uint64(rounding)), is_finite(taken)
            columns = sent[:, : self.columns]
            rows = share(sent) if self.folder is None else write_rows(self.folder, table, k, columns, self.attempt)
        self.finite.append(finite)
        return OutputPartition(rows, share(self.words[k])) if table == OUTPUT and self.folder is None else rows


def write_rows(folder: Store, table: str, k: int, rows: Float32Array | UInt16Array, attempt: str) -> PartitionOrigin:
    """Write the rows of partition `k` of a table to a file of an attempt; return its location."""
    name = f"{table}-{k}-{attempt}"
    write_parts(folder, name, [0, len(rows)], rows)
    return PartitionOrigin(folder, name)


def _step_totals(
    buckets: Sequence[tuple[int, int, float]], steps: Sequence[StepWork], finite: bool, seconds: float, compiling: float
) -> list[TaskTotals]:
    """Return the totals of each step, as in `train_buckets`; `buckets` has step, number of pairs and loss of each."""
    pairs, losses, pass_shares = [0] * len(steps), [0.0] * len(steps), defaultdict[int, float](float)
    for step, n, loss in buckets:
        pairs[step] += n
        losses[step] += loss
    total = sum(pairs)
    shares = [n / total if total else 1 / len(steps) for n in pairs]
    for (number, _), step_share in zip(steps, shares, strict=True):
        pass_shares[number] += step_share
    return [
        TaskTotals(n, loss, finite, 0, this_worker(), step_share * seconds, pass_shares[number] * compiling)
        for n, loss, step_share, (number, _) in zip(pairs, losses, shares, steps, strict=True)
    ]


def join_partitions(context: RotationContext, table: str, *held: PartitionMap) -> Float32Array:
    """Return a table, shape (words, D) float32, from the maps that hold its partitions, in the partitions' order."""
    joined = np.empty((context.partitions.n_words, context.run.params.vector_size), np.float32)
    for k, partitions in enumerate(held):
        joined[context.partitions.words(k)] = context.rows(table, k, partitions[k])
    return joined


def pick_partition(
    context: RotationContext, table: str, held: PartitionMap, partition: int, wanted: Int64Array
) -> tuple[Int64Array, Float32Array]:
    """Return the indices in `wanted` of the rows that a partition has, and these rows, as `TableParts.pick`.

    `held` is the map that holds the partition.
    """
    partitions, rows = context.partitions.locate(wanted)
    indices = np.flatnonzero(partitions == partition)
    return indices, context.rows(table, partition, held[partition])[rows[indices]]


@durable()
def save_partitions(
    store: Store, table: str, partitions: Mapping[int, PartitionMap], context: RotationContext
) -> list[ChunkChecksums]:
    """Task: write the rows of partitions to a model, on the worker that holds them; return the files' checksums."""
    return [write_partition(store, table, k, context.rows(table, k, held[k])) for k, held in partitions.items()]
