"""The task that trains: one step of a replica, a pure function of the model's blocks, what was merged, and the text."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from dask.sizeof import sizeof

from daskw2v.cluster import this_worker
from daskw2v.cluster.shared_memory import by_fields
from daskw2v.sampling.run import Run
from daskw2v.training.averaging.deltas import Delta
from daskw2v.training.averaging.pulling import Reached
from daskw2v.training.averaging.replica import Replica, ReplicaState
from daskw2v.training.averaging.round_schedule import ReplicaWork
from daskw2v.training.devices import TextTotals, Threads, gpu_memory_watched
from daskw2v.training.loop.totals import TaskClock, TaskTotals
from daskw2v.training.start.blocks import TableBlock
from daskw2v.types import Float32Array


class ReplicaStep(NamedTuple):
    """One step of a replica.

    Parameters
    ----------
    work
        What it trains.
    merged
        Numbers of the blocks that are merged after it; of none if there are no other replicas.
    coming
        What it trains next; None at the end of a round.
    """

    work: ReplicaWork
    merged: tuple[int, ...]
    coming: ReplicaWork | None


@by_fields
class Trained(NamedTuple):
    """What a replica's task returns.

    Parameters
    ----------
    changes
        What it changed in each block that is merged, by the block's number.
    rows
        The rows of each block, shapes (rows, D) float32, at the end of a round without other replicas, or `GpuRows`;
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


@gpu_memory_watched()
def train_replica(
    run: Run,
    threads: Threads,
    blocks: Sequence[TableBlock],
    steps: Sequence[ReplicaStep],
    before: ReplicaState | None,
    reached: Reached | None,
    given: Mapping[int, Float32Array] | Trained,
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
        What the step before left; None before the first one.
    given
        All blocks, by number, as `Replica` takes them at the start of the round; or what the only replica of the round
        before left.
    news
        The blocks that were merged before each further step, by number.
    last
        How many of the last steps it trains.
    """
    clock, begun = TaskClock(), list[Callable[[], TextTotals]]()
    replica, done = None if before is None else before.take(), len(steps) - last
    if replica is None:
        blocks_given = dict(enumerate(given.rows)) if isinstance(given, Trained) else given
        replica, done = Replica(run, threads, blocks, reached, blocks_given), 0
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
    rows = [] if steps[-1].merged or coming is not None else replica.take()
    totals[-1] = totals[-1].ended(replica.finite, *clock.read())
    return Trained(changes, rows, ReplicaState(totals, None if coming is None else replica))


def _same(totals: TextTotals) -> TextTotals:
    return totals


def _totals(replica: Replica, trained: TextTotals, clock: TaskClock) -> TaskTotals:
    examples, loss, words = trained
    return TaskTotals(examples, loss, replica.finite, words, this_worker(), *clock.read())


def state_of(trained: Trained) -> ReplicaState:
    """Task: take what a replica's task left for the next one."""
    return trained.state


def totals_of(*trained: Trained) -> list[TaskTotals]:
    """Task: take the totals of some tasks, one after the other."""
    return [totals for replica in trained for totals in replica.state.totals]


def nth_rows(trained: Trained, number: int) -> Any:
    """Task: take the rows of a block."""
    return trained.rows[number]
