"""A replica of the model, and the tasks that make it and train it.

A replica stays on its worker for a round, from step to step. A task that trains a step depends on the replica, on the
model at the start of the round, and on the rows that were merged since. From these a replica that is lost, or sent to
another worker, is made again with the same bits.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from dask.sizeof import sizeof

from daskw2v.cluster.shared_memory import share
from daskw2v.cluster.workers import this_worker
from daskw2v.objectives.registry import find_objective
from daskw2v.sampling.run import Run
from daskw2v.training.averaging.curvature import touches_per_window
from daskw2v.training.averaging.merge import Delta, ReplicaResult, subtract_rows
from daskw2v.training.averaging.pulling import ReachedRows, ReplicaText, make_blocks
from daskw2v.training.averaging.round_schedule import ReplicaWork
from daskw2v.training.averaging.settings import Averaging
from daskw2v.training.devices import DeviceRows, ReplicaTrainer, TextTotals, Threads, find_device
from daskw2v.training.loop.strategy import TaskClock, TaskTotals
from daskw2v.training.start.blocks import TableBlock
from daskw2v.training.start.features import load_features
from daskw2v.training.start.initial_rows import frozen_rows, get_prepared
from daskw2v.types import Float32Array


class Replica:
    """One replica of the model, on its worker. It is pickled without its tables.

    Parameters
    ----------
    run, threads
        The run, and the threads of a training task.
    blocks
        The blocks of the model.
    reached
        The rows that the replica has; None for all rows.

    Attributes
    ----------
    n_trained
        Number of steps of its round that its tables were trained; None where it has no tables, or failed in a step.
    finite
        Whether the rows that were read from its tables last are finite.
    """

    def __init__(self, run: Run, threads: Threads, blocks: Sequence[TableBlock], reached: ReachedRows | None) -> None:
        self._arguments = run, threads, blocks, reached
        self.n_trained: int | None = None
        self.finite = True
        counts = Counter[str]()
        self._indices = list[tuple[str, int]]()  # of each block: its table, and its index among the table's blocks
        for block in blocks:
            self._indices.append((block.table, counts[block.table]))
            counts[block.table] += 1
        self._numbers = {index: number for number, index in enumerate(self._indices)}
        self._trainer: ReplicaTrainer | None = None
        self._common = dict[int, Float32Array]()  # rows of the common model by block, where there are more replicas
        self._next_text: ReplicaText | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Replica, self._arguments

    @property
    def run(self) -> Run:
        """The run whose model the replica copies."""
        return self._arguments[0]

    @property
    def nbytes(self) -> int:
        """Bytes of its tables."""
        return 0 if self._trainer is None else self._trainer.nbytes

    @property
    def trainer(self) -> ReplicaTrainer:
        """The trainer that holds the replica's tables, which `make_tables` made."""
        assert self._trainer is not None  # `make_tables` was called
        return self._trainer

    def make_tables(self, rows: Mapping[int, Float32Array]) -> None:
        """Make the replica's tables from the common rows of all blocks, by number, as `pull_rows` returns them."""
        run, threads, blocks, reached = self._arguments
        self._trainer = self._next_text = None
        tables, parts = dict[str, list[Any]](), [rows[number] for number in range(len(blocks))]
        for block, part in zip(blocks, parts if reached is None else make_blocks(reached, blocks, parts), strict=True):
            tables.setdefault(block.table, []).append(part)
        objective, touched = find_objective(run.params.objective.name), partial(touches_per_window, run)
        work = objective, run.params, get_prepared(run), touched, tables, threads, frozen_rows(run), load_features(run)
        self._trainer = find_device(run.device).replica_trainer(*work)
        self._common = dict(rows) if Averaging.of(run.params).replicas > 1 else {}
        self.n_trained, self.finite = 0, True

    def replace_rows(self, rows: Mapping[int, Float32Array]) -> None:
        """Replace the replica's rows of blocks by merged rows, by the block's number, as `pull_rows` returns them."""
        self._common |= rows

        def replace(table: str, block: int, own_rows: Float32Array) -> None:
            merged = self._common[self._numbers[table, block]]
            own_rows[:, : merged.shape[1]] = merged

        self.trainer.visit([self._indices[number] for number in rows], replace, write=True)

    def begin_step(self, work: ReplicaWork) -> Callable[[], TextTotals]:
        """Begin to train the text of a step; return a function that waits for the end and returns the totals."""
        text, self._next_text = self._next_text, None
        if text is None or text.work != work:
            text = self._text(work)
        return self.trainer.begin(text.loads())

    def read_ahead(self, work: ReplicaWork) -> None:
        """Begin to read the first pieces of the next step's text, while the worker waits for merged rows."""
        self._next_text = self._text(work)
        self._next_text.read_ahead(self.trainer.pieces_ahead)

    def _text(self, work: ReplicaWork) -> ReplicaText:
        """Return the text of a step, in pieces."""
        return ReplicaText(self.run, work, self.trainer.positions, self.trainer.load)

    def changes(self, numbers: Sequence[int]) -> dict[int, Delta]:
        """Return the replica's changes of the blocks of these numbers since each was merged last, by number."""
        reached = self._arguments[-1]

        def change(table: str, block: int, own_rows: Float32Array) -> tuple[int, Delta, bool]:
            number = self._numbers[table, block]
            bits, finite = subtract_rows(self._common[number], own_rows)
            return number, Delta(share(bits), None if reached is None else reached.rows_of_block(number)), finite

        changed = self.trainer.visit([self._indices[number] for number in numbers], change)
        self.finite = all(finite for _, _, finite in changed)
        return {number: delta for number, delta, _ in changed}

    def take_rows(self) -> list[Float32Array | DeviceRows]:
        """Return the rows of each block, shapes (rows, D), and release the tables."""
        results, self.finite = self.trainer.results()
        self.n_trained = None
        return [results[table][block] for table, block in self._indices]


@sizeof.register(Replica)  # type: ignore[untyped-decorator]
def _(replica: Replica) -> int:
    return replica.nbytes  # Dask runs a task where most of its arguments are


class ReplicaStep(NamedTuple):
    """One step of a replica.

    Parameters
    ----------
    work
        The range of text that it trains.
    merged
        Numbers of the blocks that are merged after the step; none where there is one replica.
    coming
        The work of the next step, which another task trains; None where the same task does, or there is none.
    """

    work: ReplicaWork
    merged: tuple[int, ...] = ()
    coming: ReplicaWork | None = None


ReplicaStart = Mapping[int, Float32Array] | ReplicaResult


def make_replica(
    run: Run, threads: Threads, blocks: Sequence[TableBlock], reached: ReachedRows | None, start: ReplicaStart
) -> Replica:
    """Task: make a replica of the common model.

    Parameters
    ----------
    run, threads, blocks, reached
        As in `Replica`.
    start
        The rows of all blocks at the start of the round, by number; or the result of the round before, of one replica.
    """
    replica = Replica(run, threads, blocks, reached)
    with find_device(run.device).explaining_errors():
        replica.make_tables(_rows_by_block(start))
    return replica


def _rows_by_block(start: ReplicaStart) -> Mapping[int, Any]:
    """Return the rows of each block at the start of a round, by the block's number."""
    return dict(enumerate(start.rows)) if isinstance(start, ReplicaResult) else start


def train_replica(
    replica: Replica,
    steps: Sequence[ReplicaStep],
    start: ReplicaStart,
    merged: Sequence[Mapping[int, Float32Array]],
    n_last: int = 1,
    before: Any = None,
) -> ReplicaResult:
    """Task: train the last `n_last` steps of a replica, after all steps before them that its tables do not have.

    Parameters
    ----------
    replica
        The replica.
    steps
        The replica's steps from the start of the round, or of the first of several rounds, to the last one to train.
    start
        As in `make_replica`.
    merged
        The merged rows that the replica gets before each step, by the number of their block.
    n_last
        Number of steps to train, whose totals are returned.
    before
        The totals of the task that trains the step before, only to be waited for.
    """
    clock, begun = TaskClock(), list[Callable[[], TextTotals]]()
    with find_device(replica.run.device).explaining_errors():
        if replica.n_trained is None or replica.n_trained > len(steps) - n_last:
            replica.make_tables(_rows_by_block(start))
        n_trained, replica.n_trained = replica.n_trained or 0, None
        for step, rows in zip(steps[n_trained:], merged[n_trained:], strict=True):
            if rows:
                replica.replace_rows(rows)
            begun.append(replica.begin_step(step.work))
            if step.merged:
                begun[-1] = partial(_return_totals, begun[-1]())
            changes = replica.changes(step.merged)
        replica.n_trained = len(steps)
        if step.coming is not None:
            replica.read_ahead(step.coming)
        for await_totals in begun[:-n_last]:
            await_totals()
        totals = [_task_totals(replica, await_totals(), clock) for await_totals in begun[-n_last:]]
        final_rows = [] if step.merged or step.coming is not None else replica.take_rows()
    totals[-1] = totals[-1].with_end(replica.finite, *clock.read())
    return ReplicaResult(changes, final_rows, totals)


def _return_totals(totals: TextTotals) -> TextTotals:
    """Return the totals: with `partial`, a function that waits for nothing."""
    return totals


def _task_totals(replica: Replica, text_totals: TextTotals, clock: TaskClock) -> TaskTotals:
    """Return the totals of a step of a replica, and the seconds since the clock was read last."""
    examples, loss, words = text_totals
    return TaskTotals(examples, loss, replica.finite, words, this_worker(), *clock.read())


def get_block_rows(result: ReplicaResult, number: int) -> Float32Array | DeviceRows:
    """Task: return the rows of the block of this number, from the result of the only replica of a round."""
    return result.rows[number]
