"""A replica, and the task that trains it.

In the middle of a round, the tables of a replica stay on its worker from step to step. The task trains one step: it is
a pure function of the model's blocks, the merged rows, and the text.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from dask.sizeof import sizeof

from daskw2v.cluster import this_worker
from daskw2v.cluster.shared_memory import by_fields, share
from daskw2v.objectives.registry import find_objective
from daskw2v.sampling.run import Run
from daskw2v.training.averaging.curvature import touched_rows
from daskw2v.training.averaging.merge import Delta, delta_of
from daskw2v.training.averaging.pulling import Reached, ReplicaText, pulled
from daskw2v.training.averaging.round_schedule import ReplicaWork
from daskw2v.training.averaging.settings import Averaging
from daskw2v.training.devices import DeviceRows, TextTotals, Threads, find_device
from daskw2v.training.loop.strategy import TaskClock, TaskTotals
from daskw2v.training.start.blocks import TableBlock
from daskw2v.training.start.features import features_of
from daskw2v.training.start.initial_rows import frozen_rows, prepared_of
from daskw2v.types import Float32Array


class Replica:
    """One replica of the model.

    Parameters
    ----------
    run, threads
        The run, and the threads of its task.
    blocks
        The blocks of the model.
    reached
        The rows that it has; None for all.
    rows
        The rows of each block, by number, shape (rows, D) float32.
    """

    def __init__(
        self,
        run: Run,
        threads: Threads,
        blocks: Sequence[TableBlock],
        reached: Reached | None,
        rows: Mapping[int, Float32Array],
    ) -> None:
        self._run = run
        parts = [rows[number] for number in range(len(blocks))]
        tables: dict[str, list[Any]] = {}
        self._places: list[tuple[str, int]] = []  # the table of each block, and its number there
        for block, part in zip(blocks, parts if reached is None else pulled(reached, blocks, parts), strict=True):
            of_table = tables.setdefault(block.table, [])
            self._places.append((block.table, len(of_table)))
            of_table.append(part)
        objective = find_objective(run.params.objective.name)
        self._trainer = find_device(run.device).replica_trainer(
            objective,
            run.params,
            prepared_of(run),
            partial(touched_rows, run),
            tables,
            threads,
            frozen_rows(run),
            features_of(run),
        )
        self._coming: ReplicaText | None = None
        self._numbers, self._reached = {place: number for number, place in enumerate(self._places)}, reached
        # The common rows of each block
        self._common = dict(rows) if Averaging.of(run.params).n_replicas > 1 else dict[int, Float32Array]()
        self.finite = True

    def give(self, rows: Mapping[int, Float32Array]) -> None:
        """Replace the rows of some blocks by merged ones, by number."""
        self._common |= rows

        def replace(table: str, place: int, own: Float32Array) -> None:
            merged = self._common[self._numbers[table, place]]
            own[:, : merged.shape[1]] = merged

        self._trainer.visit([self._places[number] for number in rows], replace, write=True)

    def begin(self, work: ReplicaWork) -> Callable[[], TextTotals]:
        """Begin to train a step; return a function that waits for its end and returns its totals."""
        text, self._coming = self._coming, None
        if text is None or text.work != work:
            text = self._text(work)
        return self._trainer.begin(text.loads())

    def read_ahead(self, work: ReplicaWork) -> None:
        """Begin to read the first text of the next step: its worker waits for merged rows meanwhile."""
        self._coming = self._text(work)
        self._coming.read_ahead(self._trainer.pieces_ahead)

    def _text(self, work: ReplicaWork) -> ReplicaText:
        return ReplicaText(self._run, work, self._trainer.positions, self._trainer.load)

    def changes(self, numbers: Sequence[int]) -> dict[int, Delta]:
        """Return the changes of the replica in some blocks since they were merged last."""

        def change(table: str, place: int, own: Float32Array) -> tuple[int, Delta, bool]:
            number = self._numbers[table, place]
            bits, finite = delta_of(self._common[number], own)
            return number, Delta(share(bits), None if self._reached is None else self._reached.of(number)), finite

        found = self._trainer.visit([self._places[number] for number in numbers], change)
        self.finite = all(finite for _, _, finite in found)
        return {number: delta for number, delta, _ in found}

    def take(self) -> list[Float32Array | DeviceRows]:
        """Return the rows of each block, shapes (rows, D), and release the tables."""
        taken, self.finite = self._trainer.results()
        return [taken[table][place] for table, place in self._places]

    @property
    def nbytes(self) -> int:
        """Bytes of its tables."""
        return self._trainer.nbytes


class ReplicaState:
    """The state after a step: its totals; and the replica for the next step, which waits on its worker.

    The task that takes the replica trains it, so it can be taken once. The replica is not sent: a state that arrives on
    another worker, or comes back from a disk, has none.

    Parameters
    ----------
    totals
        The totals of each step of its task.
    replica
        The replica, if there is another step.
    """

    def __init__(self, totals: Sequence[TaskTotals], replica: Replica | None = None) -> None:
        self.totals = totals
        self._waiting = deque([] if replica is None else [replica])

    def take(self) -> Replica | None:
        """Return the replica, or None if it is not there."""
        try:
            return self._waiting.pop()
        except IndexError:
            return None

    def __reduce__(self) -> tuple[Any, ...]:
        return ReplicaState, (self.totals,)

    def __sizeof__(self) -> int:  # Dask runs a task where most of what it takes is
        return object.__sizeof__(self) + sum(replica.nbytes for replica in list(self._waiting))


class ReplicaStep(NamedTuple):
    """One step of a replica.

    Parameters
    ----------
    work
        The work that it trains.
    merged
        Numbers of the blocks that are merged after it; of none if there are no other replicas.
    coming
        The work of the next step; None at the end of a round.
    """

    work: ReplicaWork
    merged: tuple[int, ...]
    coming: ReplicaWork | None


@by_fields
class Trained(NamedTuple):
    """The result of a replica's task.

    Parameters
    ----------
    changes
        The changes in each block that is merged, by the block's number.
    rows
        The rows of each block, shapes (rows, D) float32, at the end of a round without other replicas, or `DeviceRows`;
        else none.
    state
        Totals, and the replica if the round goes on.
    """

    changes: Mapping[int, Delta]
    rows: Sequence[Any]
    state: ReplicaState


@sizeof.register(Trained)  # type: ignore[untyped-decorator]
def _(trained: Trained) -> int:
    """Return its bytes without those of the replica, which is gone from it when the next step has begun."""
    return int(sizeof((trained.changes, trained.rows)))


def train_replica(
    run: Run,
    threads: Threads,
    blocks: Sequence[TableBlock],
    steps: Sequence[ReplicaStep],
    before: ReplicaState | None,
    reached: Reached | None,
    start: Mapping[int, Float32Array] | Trained,
    news: Sequence[Mapping[int, Float32Array]],
    last: int = 1,
) -> Trained:
    """Task: train the last of some steps of a round, or of rounds of one replica.

    The result depends on all arguments but `before`: a replica that is not there is made again, by all of the steps.

    Parameters
    ----------
    run, threads, blocks, reached
        As in `Replica`.
    steps
        The replica's steps of the round, or of the rounds, up to the last one to train.
    before
        The state after the step before; None before the first one.
    start
        The rows of all blocks, by number, as `Replica` takes them at the start of the round; or the result of the only
        replica of the round before.
    news
        The blocks that were merged before each further step, by number.
    last
        How many of the last steps it trains.
    """
    clock, begun = TaskClock(), list[Callable[[], TextTotals]]()
    with find_device(run.device).explaining_errors():
        replica, done = None if before is None else before.take(), len(steps) - last
        if replica is None:
            rows = dict(enumerate(start.rows)) if isinstance(start, Trained) else start
            replica, done = Replica(run, threads, blocks, reached, rows), 0
        for number in range(done, len(steps)):
            if number:
                replica.give(news[number - 1])
            begun.append(replica.begin(steps[number].work))
            if steps[number].merged:
                begun[-1] = partial(_same, begun[-1]())
            changes = replica.changes(steps[number].merged)
        coming = steps[-1].coming
        if coming is not None:
            replica.read_ahead(coming)
        for ended in begun[:-last]:
            ended()
        totals = [_totals(replica, ended(), clock) for ended in begun[-last:]]
        left = [] if steps[-1].merged or coming is not None else replica.take()
    totals[-1] = totals[-1].ended(replica.finite, *clock.read())
    return Trained(changes, left, ReplicaState(totals, None if coming is None else replica))


def _same(totals: TextTotals) -> TextTotals:
    return totals


def _totals(replica: Replica, trained: TextTotals, clock: TaskClock) -> TaskTotals:
    examples, loss, words = trained
    return TaskTotals(examples, loss, replica.finite, words, this_worker(), *clock.read())


def state_of(trained: Trained) -> ReplicaState:
    """Task: take the state that a replica's task left for the next one."""
    return trained.state


def totals_of(*trained: Trained) -> list[TaskTotals]:
    """Task: take the totals of some tasks, one after the other."""
    return [totals for replica in trained for totals in replica.state.totals]


def nth_rows(trained: Trained, number: int) -> Any:
    """Task: take the rows of a block."""
    return trained.rows[number]
