"""Steps of rotation whose partitions are results of tasks, sent from worker to worker.

Input partitions prefer the worker that has them; an output partition is fetched by the worker that trains it next.
Neither passes through the client. A worker with several partitions keeps those that it is not training in its memory.

If the threads of a group of inputs are all one worker's, one task trains the group's whole step: its partitions are
copied and sent once for all their buckets. If they are several workers', each bucket is a task.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import getitem
from typing import NamedTuple, TypeAlias

from distributed import Client, Future

from daskw2v.cluster import Trainers, gather
from daskw2v.sampling.skipgrams import SkipGrams
from daskw2v.training.devices import trainers_of
from daskw2v.training.rotation.bucket_task import (
    INPUT,
    OUTPUT,
    BucketWork,
    RotationContext,
    RotationState,
    bucket_works,
    train_buckets,
)
from daskw2v.training.rotation.pass_schedule import BucketRound, RotationPass
from daskw2v.training.totals import TaskTotals

_AHEAD = 2  # steps that are submitted: the next begins while the slowest task of one still runs
_RESULTS = (INPUT, OUTPUT, "totals")  # of `train_buckets`

_Rounds: TypeAlias = list[list[BucketWork]]


def play(
    client: Client,
    context: RotationContext,
    state: RotationState,
    this: RotationPass,
    steps: Iterator[list[list[BucketRound]]],
    grams: SkipGrams,
    key: str,
) -> Iterator[list[TaskTotals]]:
    """Train a pass; yield the totals of each step, as they are done."""
    trainers = trainers_of(client, context.run.device)
    slots = [address for address, threads in trainers.homes() for _ in range(threads)] or [""]
    waiting: deque[list[Future]] = deque()
    for step, groups in enumerate(steps):
        waiting.append([])
        for number, rounds in enumerate(groups):
            works = [bucket_works(context, this, of) for of in rounds]
            for job in _jobs(works, _threads_of(slots, number, len(groups)), -step * len(works)):
                waiting[-1] += _submit(client, trainers, context, state, grams, job, f"{key}-{step}")
        if len(waiting) == _AHEAD:
            yield gather(client, waiting.popleft(), f"Pass {this.number}", trainers.takes)
    for futures in waiting:
        yield gather(client, futures, f"Pass {this.number}", trainers.takes)


class _Job(NamedTuple):
    """Tasks side by side: the rounds of each, the worker that should do them, the threads of one, and its priority."""

    tasks: list[_Rounds]
    home: str
    threads: int
    priority: int


def _jobs(rounds: _Rounds, slots: Sequence[str], priority: int) -> Iterator[_Job]:
    """Yield a group's step as jobs for its threads: one task, or several for each round."""
    size = len(rounds[0])
    if len({*slots}) == 1:
        yield _Job([rounds], slots[0], min(len(slots), size), priority)
        return
    for number, works in enumerate(rounds):
        for home, these in groupby(enumerate(works), lambda work: slots[work[0] * len(slots) // size]):
            yield _Job([[[work]] for _, work in these], home, 1, priority - number)


def _threads_of(slots: Sequence[str], group: int, n_groups: int) -> Sequence[str]:
    """Return the threads that a group has to itself, or the one that it shares with other groups."""
    first, last = (len(slots) * k // n_groups for k in (group, group + 1))
    return slots[first : max(last, first + 1)]


def _submit(
    client: Client, trainers: Trainers, context: RotationContext, state: RotationState, grams: SkipGrams, job: _Job,
    key: str,
) -> list[Future]:  # fmt: skip
    """Submit tasks, which then hold their partitions; return the futures of their totals."""
    # Preferred, not pinned: where that worker is gone, any other takes its place. Not so a task that waits for none and
    # becomes ready while there is no worker at all: Dask gives it to that very worker or to nobody, for ever.
    first = not any(isinstance(state.input[work.input], Future) for rounds in job.tasks for work in rounds[0])
    where = trainers.preferring("" if first else job.home)
    numbers = [([work.input for work in rounds[0]], [work.output for work in rounds[0]]) for rounds in job.tasks]
    trained = client.map(
        train_buckets,
        job.tasks,
        [{k: state.input[k] for k in inputs} for inputs, _ in numbers],
        [{k: state.output[k] for k in outputs} for _, outputs in numbers],
        pairs=grams.place,
        context=context,
        threads=job.threads,
        key=[f"buckets-{key}-{rounds[0][0].input}-{rounds[0][0].output}" for rounds in job.tasks],
        priority=job.priority,
        retries=2,
        resources=trainers.takes,
        **where,
    )
    nth, keys = zip(*((n, f"{name}-{f.key}") for n, name in enumerate(_RESULTS) for f in trained), strict=True)
    taken: list[Future] = client.map(getitem, trained * len(_RESULTS), nth, key=list(keys), priority=1, **where)
    for (inputs, outputs), input_rows, output_rows in zip(numbers, taken, taken[len(trained) :], strict=False):
        for k in inputs:
            state.input[k] = input_rows
        for k in outputs:
            state.output[k] = output_rows
    return taken[2 * len(trained) :]
