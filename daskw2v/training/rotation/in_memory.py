"""Steps of rotation whose partitions are results of tasks, sent from worker to worker.

One task trains a group's whole step: its partitions are copied and sent once for all their buckets. Input partitions
prefer the worker that has them; an output partition is fetched by the worker that trains it next. Neither passes
through the client. A worker with several groups keeps those that it is not training in its memory.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from operator import getitem
from typing import NamedTuple

from distributed import Client, Future

from daskw2v.cluster import Trainers, gather
from daskw2v.sampling.held_pairs import HeldPairs
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


def play(
    client: Client,
    context: RotationContext,
    state: RotationState,
    this: RotationPass,
    steps: Iterator[list[list[BucketRound]]],
    grams: SkipGrams | HeldPairs,
    key: str,
) -> Iterator[list[TaskTotals]]:
    """Train a pass; yield the totals of each step, as they are done."""
    trainers = trainers_of(client, context.run.device)
    slots = trainers.slots()
    waiting: deque[list[Future]] = deque()
    for step, groups in enumerate(steps):
        jobs = [
            _Job([bucket_works(context, this, of) for of in rounds], *_place_of(slots, number, len(groups)), -step)
            for number, rounds in enumerate(groups)
        ]
        waiting.append([_submit(client, trainers, context, state, grams, job, f"{key}-{step}") for job in jobs])
        if len(waiting) == _AHEAD:
            yield gather(client, waiting.popleft(), f"Pass {this.number}", trainers.takes)
    for futures in waiting:
        yield gather(client, futures, f"Pass {this.number}", trainers.takes)


class _Job(NamedTuple):
    """A group's step: its rounds, the worker that should do it, the threads of the task, and its priority."""

    rounds: list[list[BucketWork]]
    home: str
    threads: int
    priority: int


def _place_of(slots: Sequence[str], group: int, n_groups: int) -> tuple[str, int]:
    """Return the worker of a group, and those of its threads that the group has to itself, at least one."""
    first, last = (len(slots) * k // n_groups for k in (group, group + 1))
    return slots[first], max(1, slots[first:last].count(slots[first]))


def _submit(
    client: Client, trainers: Trainers, context: RotationContext, state: RotationState, grams: SkipGrams | HeldPairs,
    job: _Job, key: str,
) -> Future:  # fmt: skip
    """Submit a task, which then holds its partitions; return the future of its totals."""
    inputs, outputs = ([getattr(work, side) for work in job.rounds[0]] for side in (INPUT, OUTPUT))
    # Preferred, not pinned: where that worker is gone, any other takes its place. Not so a task that waits for none and
    # becomes ready while there is no worker at all: Dask gives it to that very worker or to nobody, for ever.
    first = not any(isinstance(state.input[k], Future) for k in inputs)
    where = trainers.preferring("" if first else job.home)
    trained = client.submit(
        train_buckets,
        job.rounds,
        {k: state.input[k] for k in inputs},
        {k: state.output[k] for k in outputs},
        pairs=grams.place if isinstance(grams, SkipGrams) else grams.of_group(inputs[0] // len(inputs)),
        context=context,
        threads=min(job.threads, len(inputs)),
        key=f"buckets-{key}-{inputs[0]}-{outputs[0]}",
        priority=job.priority,
        retries=2,
        resources=trainers.takes,
        **where,
    )
    names = [f"{name}-{trained.key}" for name in _RESULTS]
    taken: list[Future] = client.map(getitem, [trained] * len(names), range(len(names)), key=names, priority=1, **where)
    input_rows, output_rows, totals = taken
    for k in inputs:
        state.input[k] = input_rows
    for k in outputs:
        state.output[k] = output_rows
    return totals
