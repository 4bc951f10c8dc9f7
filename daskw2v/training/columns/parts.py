"""Parts of the words: each is trained by a worker of its own, in tasks on columns of the word-context matrix.

Parts are made of units: ranges of words that cut no batch of rows and no block of the network. A unit's size depends on
the number of words alone, so that results do not depend on the workers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from distributed import Client

from daskw2v.cluster.shared_memory import by_fields, share
from daskw2v.cluster.workers import Trainers, this_worker
from daskw2v.config.resources import Resources
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.models.stored.tables import read_table, write_table_rows
from daskw2v.objectives.base import INPUT, MOMENTS, TABLES, MatrixColumns, is_finite
from daskw2v.objectives.registry import find_objective, settle_params
from daskw2v.sampling.context_matrix import ContextMatrix, read_contexts
from daskw2v.sampling.run import Run
from daskw2v.sampling.settings import SampledContexts
from daskw2v.store.checksums import ChunkChecksums
from daskw2v.store.durability import durable
from daskw2v.store.storage import Store
from daskw2v.training.columns.step_schedule import ColumnStep
from daskw2v.training.devices import RowTrainer, find_device, find_device_trainers
from daskw2v.training.loop.strategy import TaskClock, TaskTotals
from daskw2v.training.start.blocks import rows_per_block
from daskw2v.training.start.initial_rows import get_prepared, make_initial_rows
from daskw2v.types import Float32Array, Int32Array, Int64Array

_MAX_UNITS = 256  # of a vocabulary
UNIT_WORDS = 256  # minimum words of a unit; a unit has a multiple of so many
_MOMENTS = ("first", "second")  # in the order of a part's moments


@dataclass(frozen=True)
class TableOrigin:
    """The checkpoint that rows are read from; None for rows before training, as `make_initial_rows` makes them."""

    store: Store | None = None


class WordRange(NamedTuple):
    """The words with ids start..stop-1."""

    start: int
    stop: int


@by_fields
class TrainedPart(NamedTuple):
    """The result of a task: rows and moments by table, totals, and kept losses of input rows.

    The losses are summed over the columns of a step, shape (steps, n); of length 0 if they are not kept.
    """

    rows: dict[str, Float32Array]
    moments: dict[str, Sequence[Float32Array]]
    totals: TaskTotals
    losses: Float32Array


PartRows: TypeAlias = Float32Array | TrainedPart | TableOrigin
PartMoments: TypeAlias = TrainedPart | TableOrigin


@dataclass(frozen=True)
class ColumnsContext:
    """Arguments shared by all tasks of a run.

    Parameters
    ----------
    run, matrix
        The run, and the folder of its word-context matrix.
    words
        The words of each part.
    """

    run: Run
    matrix: Store
    words: tuple[WordRange, ...]

    @property
    def moments(self) -> tuple[str, ...]:
        """Names of the optimizer's moments."""
        return _MOMENTS[: MOMENTS[settle_params(self.run.params).optimizer or ""]]

    def rows(self, table: str, part: int, rows: PartRows) -> Float32Array:
        """Return the rows of the part of this number, shape (n, D): trained, of their origin, or initial ones."""
        if isinstance(rows, TrainedPart):
            return rows.rows[table]
        if not isinstance(rows, TableOrigin):
            return rows
        words = self.words[part]
        if rows.store is None:
            return make_initial_rows(self.run, table, np.arange(*words))
        return read_table(rows.store, table, *words)

    def part_moments(self, table: str, part: int, moments: PartMoments) -> Sequence[Float32Array]:
        """Return the moments of a part's rows, each of shape (n, D): trained, read from their origin, or zeros."""
        if isinstance(moments, TrainedPart):
            return moments.moments[table]
        words = self.words[part]
        if moments.store is None:
            shape = words.stop - words.start, self.run.params.vector_size
            return [np.zeros(shape, np.float32) for _ in self.moments]
        return [read_table(moments.store, name_moment_table(name, table), *words) for name in self.moments]


def train_part(
    context: ColumnsContext,
    part: int,
    steps: Sequence[ColumnStep],
    trained_rows: Mapping[str, tuple[PartRows, PartMoments]],
    fixed_rows: Mapping[str, Sequence[PartRows]],
    threads: int,
    *,
    keep_losses: bool,
) -> TrainedPart:
    """Task: train a part's rows of one table against the other table, which is fixed; or both tables alternately.

    Parameters
    ----------
    context, part
        The arguments that all tasks share, and the number of the part.
    steps
        One step; or several, if both tables are trained and this part has all words.
    trained_rows
        Rows and moments of the part, of each table that is trained.
    fixed_rows
        Rows of all parts, of each table that is fixed.
    threads
        Number of threads.
    keep_losses
        Whether to return the loss of each input row.
    """
    clock, words = TaskClock(), context.words[part]
    tables = {
        table: [context.rows(table, part, rows), *context.part_moments(table, part, moments)]
        for table, (rows, moments) in trained_rows.items()
    }
    losses, loss, pairs = list[Float32Array](), 0.0, 0
    with find_device(context.run.device).explaining_errors():
        trainer = open_part(context, tables, fixed_rows, threads)
        for step in steps:
            contexts = read_contexts(context.matrix, words, (step.first, step.last))
            pairs += len(trained_rows) * int(np.count_nonzero(contexts >= 0))
            for table in trained_rows:
                row_losses = trainer.train(table, make_columns(context, words, step, table, contexts))
                if keep_losses and table == INPUT:
                    losses.append(row_losses)
                loss += float(row_losses.sum(dtype=np.float64))
        results = {table: trainer.take(table) for table in trained_rows}
    finite = all(is_finite(rows) for arrays in results.values() for rows in arrays)
    for arrays in results.values():
        arrays[0] = share(arrays[0])
    return TrainedPart(
        {table: rows for table, (rows, *_) in results.items()},
        {table: moments for table, (_, *moments) in results.items()},
        TaskTotals(pairs, loss, finite, 0, this_worker(), *clock.read()),
        np.array(losses, np.float32),
    )


def open_part(
    context: ColumnsContext,
    trained_rows: Mapping[str, Sequence[Float32Array]],
    fixed_rows: Mapping[str, Sequence[PartRows]],
    threads: int,
) -> RowTrainer:
    """Return the trainer, on the run's device, of a part's rows against the fixed rows of all parts.

    Parameters
    ----------
    context
        The arguments that all tasks share.
    trained_rows
        By table, the rows to train and their moments, if any, each of shape (n, D) float32.
    fixed_rows
        By table, the fixed rows of each part.
    threads
        Number of threads.
    """
    run = context.run
    tables = {t: [context.rows(t, k, rows) for k, rows in enumerate(parts)] for t, parts in fixed_rows.items()}
    objective = find_objective(run.params.objective.name)
    return find_device(run.device).row_trainer(objective, run.params, get_prepared(run), trained_rows, tables, threads)


def make_columns(
    context: ColumnsContext, words: WordRange, step: ColumnStep, table: str, contexts: Int32Array
) -> MatrixColumns:
    """Return the columns of the word-context matrix that the rows of `words` in a table train in a step.

    `contexts` are the sampled contexts of these words in the step, shape (words, columns) int32.
    """
    params = context.run.params
    key = stream(params.seed, Purpose.NEGATIVE, len(TABLES) * step.epoch + TABLES.index(table))
    return MatrixColumns(
        contexts, words.start, step.epoch * SampledContexts.of(params).context_size + step.first, step.alpha, key
    )


def pick_rows(
    context: ColumnsContext, table: str, rows: PartRows, part: int, wanted: Int64Array
) -> tuple[Int64Array, Float32Array]:
    """Return the indices in `wanted` of the rows that this part has, and these rows, as `TableParts.pick`."""
    words = context.words[part]
    first, last = np.searchsorted(wanted, words)
    return np.arange(first, last), context.rows(table, part, rows)[wanted[first:last] - words.start]


def join_rows(context: ColumnsContext, table: str, join: Callable[..., Float32Array], *parts: PartRows) -> Float32Array:
    """Return the result of `join` for the rows of all parts of a table, in their order."""
    return join(*(context.rows(table, number, rows) for number, rows in enumerate(parts)))


def take_rows(trained: TrainedPart, table: str) -> Float32Array:
    """Task: return a table's rows from the result of a part, so that they are sent without their moments."""
    return trained.rows[table]


def name_moment_table(name: str, table: str) -> str:
    """Return the name, in a checkpoint, of the table with one moment of a table's rows."""
    return f"{name}-{table}"


@durable()
def save_part(
    store: Store, context: ColumnsContext, part: int, table: str, rows: PartRows, moments: PartMoments | None
) -> ChunkChecksums:
    """Task: write the rows of a part, and their moments unless None, to a folder; return the files' checksums."""
    tables = {table: context.rows(table, part, rows)}
    if moments is not None:
        names = [name_moment_table(name, table) for name in context.moments]
        tables |= zip(names, context.part_moments(table, part, moments), strict=True)
    written: ChunkChecksums = {}
    for name, values in tables.items():
        written |= write_table_rows(store, name, context.words[part].start, values)
    return written


class PartWorker(NamedTuple):
    """The address of the worker that trains a part, "" for any, and the number of its threads."""

    address: str
    threads: int


@dataclass(frozen=True)
class ColumnsCluster:
    """The workers of a run, and the arguments that all of its tasks share.

    Parameters
    ----------
    client, trainers
        The cluster, and its workers that train.
    context
        The arguments that all tasks share.
    workers
        The worker of each part.
    session
        Part of the keys of this client's tasks, unlike any other client's.
    """

    client: Client
    trainers: Trainers
    context: ColumnsContext
    workers: tuple[PartWorker, ...]
    session: str


def assign_words(client: Client, run: Run, matrix: ContextMatrix, resources: Resources, session: str) -> ColumnsCluster:
    """Assign words to the workers that train, in proportion to their threads, in units; return the cluster.

    A worker that gets no unit has no part.

    Parameters
    ----------
    client, run, matrix
        The cluster, the run, and its word-context matrix.
    resources
        The maximum number of threads of a worker is read.
    session
        Part of the keys of this client's tasks.
    """
    n_words, unit = run.vocabulary.size, unit_size(run.vocabulary.size)
    n, trainers = -(-n_words // unit), find_device_trainers(client, run.device)
    known = trainers.list_workers()[:n] or [("", 1)]
    workers = [PartWorker(address, min(resources.threads or threads, threads)) for address, threads in known]
    ends = [0, *accumulate(worker.threads for worker in workers)]
    bounds = pairwise(min(n_words, n * end // ends[-1] * unit) for end in ends)
    parts = [(worker, WordRange(*words)) for worker, words in zip(workers, bounds, strict=True) if words[0] < words[1]]
    context = ColumnsContext(run, matrix.group, tuple(words for _, words in parts))
    return ColumnsCluster(client, trainers, context, tuple(worker for worker, _ in parts), session)


def unit_size(n_words: int) -> int:
    """Return the number of words of a unit, of a vocabulary of `n_words` words."""
    return -(-max(UNIT_WORDS, -(-n_words // _MAX_UNITS)) // UNIT_WORDS) * UNIT_WORDS


def row_block(n_words: int, width: int) -> int:
    """Return the number of rows in a chunk of a stored table: a unit, or an even part of it if rows are long."""
    unit, max_rows = unit_size(n_words), rows_per_block(width)
    return next(n for n in range(min(unit, max_rows), 0, -1) if unit % n == 0)
