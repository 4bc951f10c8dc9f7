"""The tasks of a pass of rotation, whose partitions are results of tasks, or files.

Results are sent from worker to worker. One task trains a group's whole step. If one worker trains all groups at a time,
the task trains a whole pass, or several passes that have little text: partitions are copied and sent once for all their
buckets. Input partitions prefer the worker that has them; an output partition is fetched by the worker that trains it
next. Neither passes through the client. A worker with several groups keeps those that it is not training in its memory.

Files are for models that the cluster cannot hold. A task reads a group of input and a group of output partitions,
trains all their buckets, and writes the rows to new files of the work directory: its memory is the two groups, whatever
the size of the model. Its result names the files. So a worker that is lost costs no more than its current task.
"""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from operator import getitem
from typing import NamedTuple

from distributed import Client, Future

from daskw2v.cluster.tasks import run_tasks
from daskw2v.cluster.waiting import gather
from daskw2v.cluster.workers import Trainers
from daskw2v.sampling.skipgrams import HeldPairs, SkipGrams
from daskw2v.store.storage import Store
from daskw2v.training.devices import find_device, trainers_of
from daskw2v.training.loop.strategy import TaskTotals
from daskw2v.training.rotation.bucket_jobs import BucketRounds, PairSource, StepWork
from daskw2v.training.rotation.bucket_task import (
    INPUT,
    OUTPUT,
    HeldPartition,
    PartitionOrigin,
    RotationContext,
    RotationState,
    TrainedStep,
    bucket_works,
    train_buckets,
)
from daskw2v.training.rotation.pass_schedule import BucketRound, RotationPass, is_one_task
from daskw2v.training.rotation.settings import Rotation

_AHEAD = 2  # steps that are submitted: the next begins while the slowest task of one still runs
_RESULTS = (INPUT, OUTPUT, "totals")  # of `train_buckets`
FOLDER = "parts"


class PassWork(NamedTuple):
    """A pass that is to be trained: its steps, and its pairs."""

    this: RotationPass
    steps: Iterator[list[list[BucketRound]]]
    grams: SkipGrams | HeldPairs

    def works(self, context: RotationContext) -> Iterator[list[BucketRounds]]:
        """Yield the buckets of each step, by group."""
        for groups in self.steps:
            yield [[bucket_works(context, self.this, of) for of in rounds] for rounds in groups]

    def pairs(self, groups: Sequence[int]) -> PairSource:
        """Return the source of the pairs of some groups of inputs."""
        grams = self.grams
        return grams.place if isinstance(grams, SkipGrams) else {k: grams.of_group(k) for k in groups}


class _Job(NamedTuple):
    """The arguments of a task.

    Parameters
    ----------
    steps
        Its steps, one after the other.
    passes
        The passes of these steps.
    worker
        The worker that should do the task.
    threads
        Threads of the task.
    priority
        Dask's priority of the task.
    key
        Part of the task's key; tasks that train other steps have another one.
    """

    steps: list[StepWork]
    passes: Sequence[PassWork]
    worker: str
    threads: int
    priority: int
    key: str


def goes_as_one_task(client: Client, context: RotationContext, state: RotationState, number: int) -> bool:
    """Return whether a pass is one task, perhaps together with others, and all passes before it are submitted."""
    return state.coming == number and _is_one_task(client, context)


def play_together(
    client: Client, context: RotationContext, state: RotationState, passes: Sequence[PassWork], key: str
) -> list[Iterator[TrainedStep]]:
    """Submit a task that trains some passes; return, for each pass, an iterator over its steps."""
    task = _PassesTask(client, context, state, passes, key)
    return [task.steps(number) for number in range(len(passes))]


def play(
    client: Client, context: RotationContext, state: RotationState, work: PassWork, key: str
) -> Iterator[TrainedStep]:
    """Train a pass; yield its steps, as they are done.

    It is submitted, in as many tasks as there is work for workers, when the first step is asked for.
    """
    if _is_one_task(client, context):
        yield from play_together(client, context, state, [work], key)[0]
    else:
        yield from _play_steps(client, context, state, work, key)


def _is_one_task(client: Client, context: RotationContext) -> bool:
    slots = trainers_of(client, context.run.device).slots()
    at_once = _at_once(context, len(slots))
    return is_one_task(len(set(slots)), at_once, context.n_groups, Rotation.of(context.run.params).sent_dtype)


def _at_once(context: RotationContext, threads: int) -> int:
    """Return the number of groups that a worker of so many threads trains at a time."""
    return find_device(context.run.device).tasks(threads)


class _PassesTask:
    """A task that trains passes."""

    def __init__(
        self, client: Client, context: RotationContext, state: RotationState, passes: Sequence[PassWork], key: str
    ) -> None:
        steps = [
            StepWork(number, [list(chain(*of_groups)) for of_groups in zip(*groups, strict=True)])
            for number, this in enumerate(passes)
            for groups in this.works(context)
        ]
        self._client, self._state, self._passes = client, state, passes
        self._trainers, self._began = trainers_of(client, context.run.device), time.monotonic()
        slots = self._trainers.slots()
        job = _Job(steps, passes, slots[0], len(slots), 0, key)
        self._future = _submit(client, context, state, self._trainers, job)
        self._held, self._numbers = (list(state.input), list(state.output)), [step.number_of_pass for step in steps]
        state.coming = passes[-1].this.number + 1

    def steps(self, number: int) -> Iterator[TrainedStep]:
        """Wait for the task, unless that was done; yield the steps of one of its passes."""
        totals, seconds = self._done
        inputs, outputs = self._held if number == len(self._passes) - 1 else (None, None)
        longer = seconds / sum(of_step.seconds for of_step in totals)  # than the task took its worker
        for of_step, of in zip(totals, self._numbers, strict=True):
            if of == number:
                yield TrainedStep([of_step], inputs, outputs, of_step.seconds * longer)

    @cached_property
    def _done(self) -> tuple[list[TaskTotals], float]:
        """The totals of all steps, and the seconds since this task was submitted and the one before was done."""
        what = f"Pass {self._passes[0].this.number}"
        (totals,) = gather(self._client, [self._future], what, self._trainers.takes)
        began, self._state.done = max(self._began, self._state.done), time.monotonic()
        return totals, self._state.done - began


def _play_steps(
    client: Client, context: RotationContext, state: RotationState, work: PassWork, key: str
) -> Iterator[TrainedStep]:
    """Submit step after step, a task for each group; yield each when it is done."""
    trainers, waiting = trainers_of(client, context.run.device), deque[list[Future]]()
    slots = trainers.slots()

    def trained() -> TrainedStep:
        found = gather(client, waiting.popleft(), f"Pass {work.this.number}", trainers.takes)
        return TrainedStep(list(chain(*found)), list(state.input), list(state.output))

    for step, groups in enumerate(work.works(context)):
        jobs = [
            _Job([StepWork(0, rounds)], [work], *_worker_of(slots, number, len(groups)), -step, f"{key}-{step}")
            for number, rounds in enumerate(groups)
        ]
        waiting.append([_submit(client, context, state, trainers, job) for job in jobs])
        if len(waiting) == _AHEAD:
            yield trained()
    state.coming = work.this.number + 1
    while waiting:
        yield trained()


def _worker_of(slots: Sequence[str], group: int, n_groups: int) -> tuple[str, int]:
    """Return the worker of a group, and those of its threads that the group has to itself, at least one."""
    first, last = (len(slots) * k // n_groups for k in (group, group + 1))
    return slots[first], max(1, slots[first:last].count(slots[first]))


def _submit(client: Client, context: RotationContext, state: RotationState, trainers: Trainers, job: _Job) -> Future:
    """Submit a task, which then holds its partitions; return the future of its totals."""
    inputs, outputs = ([getattr(work, side) for work in job.steps[0].rounds[0]] for side in (INPUT, OUTPUT))
    groups = list(dict.fromkeys(k // context.group_size for k in inputs))
    # Preferred, not pinned: where that worker is gone, any other takes its place. Not so a task that waits for none and
    # becomes ready while there is no worker at all: Dask gives it to that very worker or to none, for ever.
    first = not any(isinstance(state.input[k], Future) for k in inputs)
    where = trainers.preferring("" if first else job.worker)
    trained = client.submit(
        train_buckets,
        job.steps,
        {k: state.input[k] for k in inputs},
        {k: state.output[k] for k in outputs},
        pairs=[this.pairs(groups) for this in job.passes],
        context=context,
        threads=min(job.threads, len(inputs)),
        stays=len(trainers.threads) + trainers.coming == 1,
        key=f"buckets-{job.key}-{inputs[0]}-{outputs[0]}",
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


def play_through_files(
    client: Client,
    context: RotationContext,
    state: RotationState,
    work: PassWork,
    place: Store,
) -> Iterator[TrainedStep]:
    """Train a pass; yield each step when all of it is done.

    Files lie below `place`; files that a step replaces are deleted.
    """
    takes = trainers_of(client, context.run.device).takes
    for groups in work.works(context):
        jobs = {}
        for number, rounds in enumerate(groups):
            inputs = {of.input: state.input[of.input] for of in rounds[0]}
            outputs = {of.output: state.output[of.output] for of in rounds[0]}
            steps, pairs = [StepWork(0, rounds)], [work.pairs([number])]
            jobs[number] = (steps, inputs, outputs, pairs, context, 1, place / FOLDER)
        totals: list[TaskTotals] = []
        for _, (inputs, outputs, done) in run_tasks(client, f"pass {work.this.number}", train_buckets, jobs, takes):
            totals += done
            for table, trained in ((state.input, inputs), (state.output, outputs)):
                for k, origin in trained.items():
                    _remove(table[k], k)
                    table[k] = {k: origin}
        yield TrainedStep(totals, list(state.input), list(state.output))


def _remove(held: HeldPartition, partition: int) -> None:
    """Delete the file of a partition, if it is in one."""
    origin = None if isinstance(held, Future) else held[partition]
    if isinstance(origin, PartitionOrigin) and origin.store is not None and origin.file is not None:
        (origin.store / origin.file).remove()
