"""Steps of rotation whose partitions are results of tasks, sent from worker to worker.

One task trains a group's whole step, or all groups' whole pass if one worker trains all of them at a time: partitions
are copied and sent once for all their buckets. Input partitions
prefer the worker that has them; an output partition is fetched by the worker that trains it next. Neither passes
through the client. A worker with several groups keeps those that it is not training in its memory.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from operator import getitem
from typing import NamedTuple

from distributed import Client, Future

from daskw2v.cluster import Trainers, gather
from daskw2v.sampling.held_pairs import HeldPairs
from daskw2v.sampling.skipgrams import SkipGrams
from daskw2v.training.devices import find_device, trainers_of
from daskw2v.training.rotation.bucket_task import (
    BFLOAT16,
    INPUT,
    OUTPUT,
    BucketWork,
    HeldPartition,
    RotationContext,
    RotationState,
    TrainedStep,
    bucket_works,
    train_buckets,
)
from daskw2v.training.rotation.pass_schedule import BucketRound, RotationPass

_AHEAD = 2  # steps that are submitted: the next begins while the slowest task of one still runs
_RESULTS = (INPUT, OUTPUT, "totals")  # of `train_buckets`


class _Job(NamedTuple):
    """What a task trains: steps of rounds; the worker that should do it, the threads of the task, and its priority."""

    steps: list[list[list[BucketWork]]]
    home: str
    threads: int
    priority: int


def play(
    client: Client,
    context: RotationContext,
    state: RotationState,
    this: RotationPass,
    steps: Iterator[list[list[BucketRound]]],
    grams: SkipGrams | HeldPairs,
    key: str,
) -> Iterator[TrainedStep]:
    """Train a pass; return an iterator over its steps, as they are done.

    Where one worker trains all groups at a time, the pass is one task, which is submitted at once.
    """
    trainers = trainers_of(client, context.run.device)
    submit = partial(_submit, client, trainers, context, state, grams)
    slots, n_groups = trainers.slots(), context.n_groups
    works = ([[bucket_works(context, this, of) for of in rounds] for rounds in groups] for groups in steps)
    if len(set(slots)) == 1 and _at_once(context, len(slots)) >= n_groups and context.run.params.sent_dtype != BFLOAT16:
        joined = [[list(chain(*of_groups)) for of_groups in zip(*groups, strict=True)] for groups in works]
        future = submit(_Job(joined, slots[0], len(slots), 0), key)
        return _steps_of_task(client, trainers, this, future, list(state.input))
    return _steps_of_tasks(client, trainers, this, state, works, submit, key)


def _at_once(context: RotationContext, threads: int) -> int:
    """Return how many groups a worker trains at a time: a GPU one."""
    return 1 if find_device(context.run.device).resource else threads


def _steps_of_task(
    client: Client, trainers: Trainers, this: RotationPass, future: Future, inputs: list[HeldPartition]
) -> Iterator[TrainedStep]:
    """Wait for the task of a pass; yield all its steps."""
    (totals,) = gather(client, [future], f"Pass {this.number}", trainers.takes)
    yield from (TrainedStep([of_step], inputs) for of_step in totals)


def _steps_of_tasks(
    client: Client, trainers: Trainers, this: RotationPass, state: RotationState,
    steps: Iterator[list[list[list[BucketWork]]]], submit: Callable[[_Job, str], Future], key: str,
) -> Iterator[TrainedStep]:  # fmt: skip
    """Submit step after step, a task for each group; yield each when it is done."""
    slots, waiting = trainers.slots(), deque[list[Future]]()

    def trained() -> TrainedStep:
        found = gather(client, waiting.popleft(), f"Pass {this.number}", trainers.takes)
        return TrainedStep(list(chain(*found)), list(state.input))

    for step, groups in enumerate(steps):
        jobs = [_Job([rounds], *_place_of(slots, number, len(groups)), -step) for number, rounds in enumerate(groups)]
        waiting.append([submit(job, f"{key}-{step}") for job in jobs])
        if len(waiting) == _AHEAD:
            yield trained()
    while waiting:
        yield trained()


def _place_of(slots: Sequence[str], group: int, n_groups: int) -> tuple[str, int]:
    """Return the worker of a group, and those of its threads that the group has to itself, at least one."""
    first, last = (len(slots) * k // n_groups for k in (group, group + 1))
    return slots[first], max(1, slots[first:last].count(slots[first]))


def _submit(
    client: Client, trainers: Trainers, context: RotationContext, state: RotationState, grams: SkipGrams | HeldPairs,
    job: _Job, key: str,
) -> Future:  # fmt: skip
    """Submit a task, which then holds its partitions; return the future of its totals."""
    inputs, outputs = ([getattr(work, side) for work in job.steps[0][0]] for side in (INPUT, OUTPUT))
    groups = dict.fromkeys(k // context.group_size for k in inputs)
    # Preferred, not pinned: where that worker is gone, any other takes its place. Not so a task that waits for none and
    # becomes ready while there is no worker at all: Dask gives it to that very worker or to nobody, for ever.
    first = not any(isinstance(state.input[k], Future) for k in inputs)
    where = trainers.preferring("" if first else job.home)
    trained = client.submit(
        train_buckets,
        job.steps,
        {k: state.input[k] for k in inputs},
        {k: state.output[k] for k in outputs},
        pairs=grams.place if isinstance(grams, SkipGrams) else {k: grams.of_group(k) for k in groups},
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
