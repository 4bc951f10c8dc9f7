"""The task of strategy `columns`: the rows of a part of the words train columns of the word-context matrix."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from daskw2v.cluster import this_worker
from daskw2v.devices import Part, find_device, gpu_memory_watched
from daskw2v.models.store import read_table, write_table_rows
from daskw2v.objectives import find_objective, settled
from daskw2v.objectives.base import MOMENTS, Columns, FloatArray, is_finite
from daskw2v.sampling.context_matrix import read_contexts
from daskw2v.sampling.dealing import Integers
from daskw2v.sampling.rng import Purpose, stream
from daskw2v.sampling.run import Run
from daskw2v.shared import share
from daskw2v.storage import Store
from daskw2v.strategies.base import Clock, Totals
from daskw2v.strategies.beginning import first_rows
from daskw2v.strategies.column_schedule import Step

INPUT, OUTPUT = "input", "output"
TABLES = (INPUT, OUTPUT)
_MOMENTS = ("first", "second")  # the order in which a part has them


@dataclass(frozen=True)
class Start:
    """Where rows lie: in a checkpoint, or nowhere, before they were first drawn."""

    store: Store | None = None


class Words(NamedTuple):
    """The words start..stop-1."""

    start: int
    stop: int


Rows: TypeAlias = FloatArray | Start
Moments: TypeAlias = Sequence[FloatArray] | Start


@dataclass(frozen=True)
class Parts:
    """What all tasks of a run share.

    Parameters
    ----------
    run, matrix
        The run, and where the contexts of its word-context matrix lie.
    words
        The words of each part.
    """

    run: Run
    matrix: Store
    words: tuple[Words, ...]

    @property
    def moments(self) -> tuple[str, ...]:
        """Names of what the optimizer keeps of each row."""
        return _MOMENTS[: MOMENTS[settled(self.run.params).optimizer or ""]]

    def rows(self, table: str, part: int, rows: Rows) -> FloatArray:
        """Return a part's rows, shape (n, D), wherever they are."""
        if not isinstance(rows, Start):
            return rows
        words = self.words[part]
        if rows.store is None:
            return first_rows(self.run, table, np.arange(*words))
        return read_table(rows.store, table, *words)

    def moments_of(self, table: str, part: int, moments: Moments) -> Sequence[FloatArray]:
        """Return the moments of a part's rows, each of their shape, wherever they are."""
        if not isinstance(moments, Start):
            return moments
        words = self.words[part]
        if moments.store is None:
            shape = words.stop - words.start, self.run.params.vector_size
            return [np.zeros(shape, np.float32) for _ in self.moments]
        return [read_table(moments.store, moment_table(name, table), *words) for name in self.moments]


class Trained(NamedTuple):
    """What a task leaves: rows and moments by table, what was done; and input rows' losses, (steps, n) if asked for."""

    rows: dict[str, FloatArray]
    moments: dict[str, Sequence[FloatArray]]
    totals: Totals
    losses: FloatArray


@gpu_memory_watched()
def train_part(
    parts: Parts,
    part: int,
    steps: Sequence[Step],
    moving: Mapping[str, tuple[Rows, Moments]],
    standing: Mapping[str, Sequence[Rows]],
    threads: int,
    *,
    keep_losses: bool,
) -> Trained:
    """Task: train a part's rows of one table against the other, which stays; or of both by turns, step after step.

    Parameters
    ----------
    parts, part
        What all tasks share, and the part.
    steps
        One, or several where both tables move, and this part has all words.
    moving
        The part's rows and moments, by table.
    standing
        The rows of all parts, by table.
    threads
        How many train.
    keep_losses
        Whether to return what each input row lost.
    """
    clock, words = Clock(), parts.words[part]
    tables = {t: [parts.rows(t, part, rows), *parts.moments_of(t, part, kept)] for t, (rows, kept) in moving.items()}
    worked = open_part(parts, tables, standing, threads)
    losses, loss, pairs = list[FloatArray](), 0.0, 0
    for step in steps:
        contexts = read_contexts(parts.matrix, words, (step.first, step.last))
        pairs += len(moving) * int(np.count_nonzero(contexts >= 0))
        for table in moving:
            lost = worked.train(table, columns_of(parts, words, step, table, contexts))
            if keep_losses and table == INPUT:
                losses.append(lost)
            loss += float(lost.sum(dtype=np.float64))
    taken = {table: worked.take(table) for table in moving}
    finite = all(is_finite(rows) for tables in taken.values() for rows in tables)
    for held in taken.values():
        held[0] = share(held[0])
    return Trained(
        {table: rows for table, (rows, *_) in taken.items()},
        {table: kept for table, (_, *kept) in taken.items()},
        Totals(pairs, loss, finite, 0, this_worker(), *clock.read()),
        np.array(losses, np.float32),
    )


def open_part(
    parts: Parts, moving: Mapping[str, Sequence[FloatArray]], standing: Mapping[str, Sequence[Rows]], threads: int
) -> Part:
    """Put rows that move, and those of all parts that stay, on the device."""
    run = parts.run
    tables = {t: [parts.rows(t, k, rows) for k, rows in enumerate(pieces)] for t, pieces in standing.items()}
    objective = find_objective(run.params.objective)
    return find_device(run.device).part(objective, run.params, _prepared(run), moving, tables, threads)


def columns_of(parts: Parts, words: Words, step: Step, table: str, contexts: Integers) -> Columns:
    """Return what a table's rows of some words train in a step, whose contexts these are."""
    params = parts.run.params
    key = stream(params.seed, Purpose.NEGATIVE, len(TABLES) * step.epoch + TABLES.index(table))
    return Columns(contexts, words.start, step.epoch * params.context_size + step.first, step.alpha, key)


@lru_cache(maxsize=2)
def _prepared(run: Run) -> Any:
    """Return what kernels read besides tables. Only a cache: a worker that lacks it makes it again."""
    return find_objective(run.params.objective).prepare(run.params, run.vocabulary.read_counts())


def load_rows(parts: Parts, part: int, table: str, start: Start) -> FloatArray:
    """Task: a part's rows, wherever they lie."""
    return parts.rows(table, part, start)


def take_rows(trained: Trained, table: str) -> FloatArray:
    """Task: a part's rows by themselves, which other workers gather."""
    return trained.rows[table]


def take_moments(trained: Trained, table: str) -> Sequence[FloatArray]:
    """Task: a part's moments by themselves, which stay where they are."""
    return trained.moments[table]


def moment_table(name: str, table: str) -> str:
    """Return the name under which a checkpoint has a moment of a table."""
    return f"{name}-{table}"


def save_rows(store: Store, parts: Parts, part: int, table: str, rows: Rows) -> None:
    """Task: write a part's rows, by the worker that holds them."""
    write_table_rows(store, table, parts.words[part].start, parts.rows(table, part, rows))


def save_moments(store: Store, parts: Parts, part: int, table: str, moments: Moments) -> None:
    """Task: write a part's moments, by the worker that holds them."""
    for name, values in zip(parts.moments, parts.moments_of(table, part, moments), strict=True):
        write_table_rows(store, moment_table(name, table), parts.words[part].start, values)
