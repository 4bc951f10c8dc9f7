"""A replica of the model, and the tasks that make it and train it.

A replica stays on its worker for a round, from step to step. A task that trains a step depends on the replica, on the
model at the start of the round, and on the rows that were merged since: a replica that is lost, or sent to another
worker, is made again of them, with the same bits.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from dask.sizeof import sizeof

from daskw2v.cluster.shared_memory import by_fields, share
from daskw2v.cluster.workers import this_worker
from daskw2v.objectives.registry import find_objective
from daskw2v.sampling.run import Run
from daskw2v.training.averaging.curvature import touched_rows
from daskw2v.training.averaging.merge import Delta, delta_of
from daskw2v.training.averaging.pulling import Reached, ReplicaText, pulled
from daskw2v.training.averaging.round_schedule import ReplicaWork
from daskw2v.training.averaging.settings import Averaging
from daskw2v.training.devices import DeviceRows, ReplicaTrainer, TextTotals, Threads, find_device
from daskw2v.training.loop.strategy import TaskClock, TaskTotals
from daskw2v.training.start.blocks import TableBlock
from daskw2v.training.start.features import features_of
from daskw2v.training.start.initial_rows import frozen_rows, prepared_of
from daskw2v.types import Float32Array


class Replica:
    """One replica of the model, on its worker. Another worker receives it without tables.

    Parameters
    ----------
    run, threads
        The run, and the threads of a training task.
    blocks
        The blocks of the model.
    reached
        The rows that it has; None for all.

    Attributes
    ----------
    done
        Number of the steps of its round that its tables have; None where it has no tables, or failed in a step.
    finite
        Whether the rows that were taken out of its tables last are finite.
    """

    def __init__(self, run: Run, threads: Threads, blocks: Sequence[TableBlock], reached: Reached | None) -> None:
        self._arguments = run, threads, blocks, reached
        self.done: int | None = None
        self.finite = True
        counts = Counter[str]()
        self._indices = list[tuple[str, int]]()  # of each block: its table, and its number in the table
        for block in blocks:
            self._indices.append((block.table, counts[block.table]))
            counts[block.table] += 1
        self._numbers = {index: number for number, index in enumerate(self._indices)}
        self._trainer: ReplicaTrainer | None = None
        self._common = dict[int, Float32Array]()  # the common rows of each block, where there are other replicas
        self._coming: ReplicaText | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Replica, self._arguments

    @property
    def run(self) -> Run:
        """The run that it is of."""
        return self._arguments[0]

    @property
    def nbytes(self) -> int:
        """Bytes of its tables."""
        return 0 if self._trainer is None else self._trainer.nbytes

    @property
    def trainer(self) -> ReplicaTrainer:
        """The trainer that holds its tables."""
        assert self._trainer is not None  # `start` was called
        return self._trainer

    def start(self, rows: Mapping[int, Float32Array]) -> None:
        """Make its tables of the common model, of which `rows` has the rows of each block, shape (rows, D)."""
        run, threads, blocks, reached = self._arguments
        self._trainer = self._coming = None
        tables, parts = dict[str, list[Any]](), [rows[number] for number in range(len(blocks))]
        for block, part in zip(blocks, parts if reached is None else pulled(reached, blocks, parts), strict=True):
            tables.setdefault(block.table, []).append(part)
        self._trainer = find_device(run.device).replica_trainer(
            find_objective(run.params.objective.name),
            run.params,
            prepared_of(run),
            partial(touched_rows, run),
            tables,
            threads,
            frozen_rows(run),
            features_of(run),
        )
        self._common = dict(rows) if Averaging.of(run.params).n_replicas > 1 else {}
        self.done, self.finite = 0, True

    def give(self, rows: Mapping[int, Float32Array]) -> None:
        """Replace the rows of the blocks with these numbers by merged rows."""
        self._common |= rows

        def replace(table: str, block: int, own_rows: Float32Array) -> None:
            merged = self._common[self._numbers[table, block]]
            own_rows[:, : merged.shape[1]] = merged

        self.trainer.visit([self._indices[number] for number in rows], replace, write=True)

    def begin(self, work: ReplicaWork) -> Callable[[], TextTotals]:
        """Begin to train a step; return a function that waits for its end and returns its totals."""
        text, self._coming = self._coming, None
        if text is None or text.work != work:
            text = self._text(work)
        return self.trainer.begin(text.loads())

    def read_ahead(self, work: ReplicaWork) -> None:
        """Begin to read the first text of the next step: its worker waits for merged rows meanwhile."""
        self._coming = self._text(work)
        self._coming.read_ahead(self.trainer.pieces_ahead)

    def _text(self, work: ReplicaWork) -> ReplicaText:
        return ReplicaText(self.run, work, self.trainer.positions, self.trainer.load)

    def changes(self, numbers: Sequence[int]) -> dict[int, Delta]:
        """Return the changes of the replica in the blocks with these numbers since each was merged last."""
        reached = self._arguments[-1]

        def change(table: str, block: int, own_rows: Float32Array) -> tuple[int, Delta, bool]:
            number = self._numbers[table, block]
            bits, finite = delta_of(self._common[number], own_rows)
            return number, Delta(share(bits), None if reached is None else reached.of(number)), finite

        changed = self.trainer.visit([self._indices[number] for number in numbers], change)
        self.finite = all(finite for _, _, finite in changed)
        return {number: delta for number, delta, _ in changed}

    def take(self) -> list[Float32Array | DeviceRows]:
        """Return the rows of each block, shapes (rows, D), and release the tables."""
        taken, self.finite = self.trainer.results()
        self.done = None
        return [taken[table][block] for table, block in self._indices]


@sizeof.register(Replica)  # type: ignore[untyped-decorator]
def _(replica: Replica) -> int:
    return replica.nbytes  # Dask runs a task where most of its arguments are


class ReplicaStep(NamedTuple):
    """One step of a replica.

    Parameters
    ----------
    work
        The work that it trains.
    merged
        Numbers of the blocks that are merged after it; none where there are no other replicas.
    coming
        The work of the next step, which another task trains; None where there is none in the round.
    """

    work: ReplicaWork
    merged: tuple[int, ...] = ()
    coming: ReplicaWork | None = None


@by_fields
class Trained(NamedTuple):
    """The result of a task that trains a replica.

    Parameters
    ----------
    changes
        The changes in each block that is merged, by the block's number.
    rows
        The rows of each block, shapes (rows, D) float32, at the end of a round without other replicas; else none.
    totals
        The totals of each step of the task.
    """

    changes: Mapping[int, Delta]
    rows: Sequence[Float32Array | DeviceRows]
    totals: Sequence[TaskTotals]


Start = Mapping[int, Float32Array] | Trained


def make_replica(
    run: Run, threads: Threads, blocks: Sequence[TableBlock], reached: Reached | None, start: Start
) -> Replica:
    """Task: make a replica of the common model.

    Parameters
    ----------
    run, threads, blocks, reached
        As in `Replica`.
    start
        The rows of all blocks, by number; or the result of the only replica of the round before.
    """
    replica = Replica(run, threads, blocks, reached)
    with find_device(run.device).explaining_errors():
        replica.start(_rows_of(start))
    return replica


def _rows_of(start: Start) -> Mapping[int, Any]:
    return dict(enumerate(start.rows)) if isinstance(start, Trained) else start


def train_replica(
    replica: Replica,
    steps: Sequence[ReplicaStep],
    start: Start,
    merged: Sequence[Mapping[int, Float32Array]],
    last: int = 1,
    before: Any = None,
) -> Trained:
    """Task: train the last of some steps of a replica, and the steps before these that its tables do not have.

    Parameters
    ----------
    replica
        The replica.
    steps
        Its steps from the start of the round, or of the first of several rounds, to the last one to train.
    start
        As in `make_replica`.
    merged
        The merged rows that it takes before each step, by the number of their block.
    last
        Number of the steps to train.
    before
        The result of a task that trains the step before.
    """
    clock, begun = TaskClock(), list[Callable[[], TextTotals]]()
    with find_device(replica.run.device).explaining_errors():
        if replica.done is None or replica.done > len(steps) - last:
            replica.start(_rows_of(start))
        done, replica.done = replica.done or 0, None
        for step, rows in zip(steps[done:], merged[done:], strict=True):
            if rows:
                replica.give(rows)
            begun.append(replica.begin(step.work))
            if step.merged:
                begun[-1] = partial(_same, begun[-1]())
            changes = replica.changes(step.merged)
        replica.done = len(steps)
        if step.coming is not None:
            replica.read_ahead(step.coming)
        for ended in begun[:-last]:
            ended()
        totals = [_totals(replica, ended(), clock) for ended in begun[-last:]]
        rows_left = [] if step.merged or step.coming is not None else replica.take()
    totals[-1] = totals[-1].ended(replica.finite, *clock.read())
    return Trained(changes, rows_left, totals)


def _same(totals: TextTotals) -> TextTotals:
    return totals


def _totals(replica: Replica, trained: TextTotals, clock: TaskClock) -> TaskTotals:
    examples, loss, words = trained
    return TaskTotals(examples, loss, replica.finite, words, this_worker(), *clock.read())


def totals_of(trained: Trained) -> Sequence[TaskTotals]:
    """Task: return the totals of a task's steps."""
    return trained.totals


def nth_rows(trained: Trained, number: int) -> Any:
    """Task: return the rows of a block."""
    return trained.rows[number]
