"""Steps of rotation whose partitions are results of tasks, sent from worker to worker.

One task trains a group's whole step, or all groups' whole pass if one worker trains all of them at a time: partitions
are copied and sent once for all their buckets. Input partitions prefer the worker that has them; an output partition is
fetched by the worker that trains it next. Neither passes through the client. A worker with several groups keeps those
that it is not training in its memory.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain
from operator import getitem
from typing import NamedTuple

from distributed import Client, Future

from daskw2v.cluster import Trainers, gather
from daskw2v.sampling.held_pairs import HeldPairs
from daskw2v.sampling.skipgrams import SkipGrams
from daskw2v.training.devices import find_device, trainers_of
from daskw2v.training.rotation.bucket_task import (
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
from daskw2v.training.rotation.pass_schedule import BucketRound, RotationPass, is_one_task

_AHEAD = 2  # steps that are submitted: the next begins while the slowest task of one still runs
_RESULTS = (INPUT, OUTPUT, "totals")  # of `train_buckets`


class _Job(NamedTuple):
    """What a task trains: steps of rounds; the worker that should do it, the threads of the task, and its priority."""

    steps: list[list[list[BucketWork]]]
    home: str
    threads: int
    priority: int


class _Submission(NamedTuple):
    """What is needed to submit a pass: arguments of `play`."""

    client: Client
    context: RotationContext
    state: RotationState
    this: RotationPass
    steps: Iterator[list[list[BucketRound]]]
    grams: SkipGrams | HeldPairs
    key: str

    @property
    def trainers(self) -> Trainers:
        """The workers that train now."""
        return trainers_of(self.client, self.context.run.device)

    def works(self) -> Iterator[list[list[list[BucketWork]]]]:
        """Yield the buckets of each step: by group, and by round."""
        for groups in self.steps:
            yield [[bucket_works(self.context, self.this, of) for of in rounds] for rounds in groups]


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

    A pass that is one task is submitted at once, if all passes before it are; all others when the first step is asked
    for, to the workers that are there then.
    """
    of = _Submission(client, context, state, this, steps, grams, key)
    if state.coming == this.number and _is_one_task(of):
        return _wait_for_steps(of, _submit_pass(of), list(state.input))
    return _play_in_turn(of)


def _play_in_turn(of: _Submission) -> Iterator[TrainedStep]:
    """Submit a pass when all before it are submitted; yield each step when it is done."""
    if _is_one_task(of):
        future = _submit_pass(of)
        yield from _wait_for_steps(of, future, list(of.state.input))
    else:
        yield from _play_steps(of)


def _is_one_task(of: _Submission) -> bool:
    slots = of.trainers.slots()
    at_once = _at_once(of.context, len(slots))
    return is_one_task(len(set(slots)), at_once, of.context.n_groups, of.context.run.params.sent_dtype)


def _at_once(context: RotationContext, threads: int) -> int:
    """Return how many groups a worker trains at a time: a GPU one."""
    return 1 if find_device(context.run.device).resource else threads


def _submit_pass(of: _Submission) -> Future:
    """Submit a pass as one task; return the future of its totals."""
    rounds = [[list(chain(*of_groups)) for of_groups in zip(*groups, strict=True)] for groups in of.works()]
    trainers, slots = of.trainers, of.trainers.slots()
    of.state.coming = of.this.number + 1
    return _submit(of, trainers, _Job(rounds, slots[0], len(slots), 0), of.key)


def _wait_for_steps(of: _Submission, future: Future, inputs: list[HeldPartition]) -> Iterator[TrainedStep]:
    """Wait for the task of a pass; yield all its steps."""
    (totals,) = gather(of.client, [future], f"Pass {of.this.number}", of.trainers.takes)
    yield from (TrainedStep([of_step], inputs) for of_step in totals)


def _play_steps(of: _Submission) -> Iterator[TrainedStep]:
    """Submit step after step, a task for each group; yield each when it is done."""
    trainers, waiting = of.trainers, deque[list[Future]]()
    slots = trainers.slots()

    def trained() -> TrainedStep:
        found = gather(of.client, waiting.popleft(), f"Pass {of.this.number}", trainers.takes)
        return TrainedStep(list(chain(*found)), list(of.state.input))

    for step, groups in enumerate(of.works()):
        jobs = [_Job([rounds], *_place_of(slots, number, len(groups)), -step) for number, rounds in enumerate(groups)]
        waiting.append([_submit(of, trainers, job, f"{of.key}-{step}") for job in jobs])
        if len(waiting) == _AHEAD:
            yield trained()
    of.state.coming = of.this.number + 1
    while waiting:
        yield trained()


def _place_of(slots: Sequence[str], group: int, n_groups: int) -> tuple[str, int]:
    """Return the worker of a group, and those of its threads that the group has to itself, at least one."""
    first, last = (len(slots) * k // n_groups for k in (group, group + 1))
    return slots[first], max(1, slots[first:last].count(slots[first]))


def _submit(of: _Submission, trainers: Trainers, job: _Job, key: str) -> Future:
    """Submit a task, which then holds its partitions; return the future of its totals."""
    client, context, state, grams = of.client, of.context, of.state, of.grams
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
