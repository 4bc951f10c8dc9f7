"""The tasks of a pass of rotation, whose partitions are results of tasks, or files.

Results are sent from worker to worker. One task trains a group's whole step. If one worker trains all groups at a time,
the task trains a whole pass, or several passes that have little text: partitions are copied and sent once for all their
buckets. Input partitions prefer the worker that has them; an output partition is fetched by the worker that trains it
next. Neither passes through the client. A worker keeps the groups that it is not training in its memory.

Files are for models that the cluster cannot hold. A task reads a group of input and a group of output partitions,
trains all their buckets, and writes the rows to new files of the work directory: its memory is the two groups, whatever
the size of the model. Its result names the files. So a worker that is lost costs no more than its current task.
"""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from functools import cache
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
    bucket_works,
    train_buckets,
)
from daskw2v.training.rotation.pass_schedule import BucketRound, RotationPass, is_one_task
from daskw2v.training.rotation.settings import Rotation

_AHEAD = 2  # steps that are submitted: the next begins while the slowest task of one still runs
_RESULTS = (INPUT, OUTPUT, "totals")  # of `train_buckets`
FOLDER = "parts"


class TrainedStep(NamedTuple):
    """A step that is done.

    Parameters
    ----------
    totals
        The totals of its tasks.
    input, output
        The holder of each partition of both tables after it, or after its pass; None where its task trains more passes.
    seconds
        Its share of the time of its task, where that trains whole passes; None elsewhere.
    """

    totals: list[TaskTotals]
    input: list[HeldPartition] | None
    output: list[HeldPartition] | None
    seconds: float | None = None


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
        """Return the source of the pairs of these groups of inputs."""
        grams = self.grams
        return grams.stored if isinstance(grams, SkipGrams) else {k: grams.slices_of_group(k) for k in groups}


class PassTasks:
    """The model between two steps, and the tasks that train it.

    Parameters
    ----------
    client
        The cluster.
    context
        The arguments that all tasks share.
    origin
        Where the rows of all partitions are.
    coming
        The pass that is submitted next.

    Attributes
    ----------
    input, output
        The holder of each partition of both tables.
    """

    def __init__(self, client: Client, context: RotationContext, origin: PartitionOrigin, coming: int = 0) -> None:
        self._client, self._context, self._coming = client, context, coming
        self.input: list[HeldPartition] = [{k: origin} for k in range(context.partitions.n)]
        self.output: list[HeldPartition] = [{k: origin} for k in range(context.partitions.n)]
        self._done = 0.0  # when the last task of whole passes was done, by `time.monotonic`

    def goes_as_one_task(self, number: int) -> bool:
        """Return whether a pass is one task, perhaps together with others, and all passes before it are submitted."""
        return self._coming == number and self._is_one_task()

    def _is_one_task(self) -> bool:
        run, slots = self._context.run, self._trainers().slots()
        at_once = find_device(run.device).tasks(len(slots))  # groups that a worker trains at a time
        return is_one_task(len(set(slots)), at_once, self._context.n_groups, Rotation.of(run.params).sent_dtype)

    def _trainers(self) -> Trainers:
        return trainers_of(self._client, self._context.run.device)

    def play_together(self, passes: Sequence[PassWork], key: str) -> list[Iterator[TrainedStep]]:
        """Submit a task that trains whole passes; return, for each pass, an iterator over its steps."""
        steps = [
            StepWork(number, [list(chain(*of_groups)) for of_groups in zip(*groups, strict=True)])
            for number, this in enumerate(passes)
            for groups in this.works(self._context)
        ]
        trainers, began = self._trainers(), time.monotonic()
        slots = trainers.slots()
        future = self._submit(trainers, steps, passes, (slots[0], len(slots)), key, 0)
        held, numbers = (list(self.input), list(self.output)), [step.number_of_pass for step in steps]
        self._coming = passes[-1].this.number + 1

        @cache
        def done() -> tuple[list[TaskTotals], float]:
            """Return the totals of all steps, and the seconds since the task was submitted and the one before done."""
            (totals,) = gather(self._client, [future], f"Pass {passes[0].this.number}", trainers.takes)
            since, self._done = max(began, self._done), time.monotonic()
            return totals, self._done - since

        def steps_of(number: int) -> Iterator[TrainedStep]:
            totals, seconds = done()
            inputs, outputs = held if number == len(passes) - 1 else (None, None)
            longer = seconds / sum(of_step.seconds for of_step in totals)  # than the task took its worker
            for of_step, of in zip(totals, numbers, strict=True):
                if of == number:
                    yield TrainedStep([of_step], inputs, outputs, of_step.seconds * longer)

        return [steps_of(number) for number in range(len(passes))]

    def play(self, work: PassWork, key: str) -> Iterator[TrainedStep]:
        """Train a pass; yield its steps, as they are done.

        It is submitted when the first step is asked for: as one task, or step after step, a task for each group.
        """
        if self._is_one_task():
            yield from self.play_together([work], key)[0]
            return
        trainers, waiting = self._trainers(), deque[list[Future]]()
        slots = trainers.slots()

        def trained() -> TrainedStep:
            totals = gather(self._client, waiting.popleft(), f"Pass {work.this.number}", trainers.takes)
            return TrainedStep(list(chain(*totals)), list(self.input), list(self.output))

        for step, groups in enumerate(work.works(self._context)):
            jobs = [([StepWork(0, rounds)], [work], _slot_of(slots, k, len(groups))) for k, rounds in enumerate(groups)]
            waiting.append([self._submit(trainers, *job, f"{key}-{step}", step) for job in jobs])
            if len(waiting) == _AHEAD:
                yield trained()
        self._coming = work.this.number + 1
        while waiting:
            yield trained()

    def _submit(
        self,
        trainers: Trainers,
        steps: list[StepWork],
        passes: Sequence[PassWork],
        slot: tuple[str, int],
        key: str,
        rank: int,
    ) -> Future:
        """Submit a task, which then holds its partitions; return the future of its totals.

        Parameters
        ----------
        trainers
            The workers that train.
        steps, passes
            Its steps, one after the other, and the passes of these steps.
        slot
            The worker that should do the task, and threads of the task.
        key
            Part of the task's key; tasks that train other steps have another one.
        rank
            Dask begins tasks of lower rank first.
        """
        inputs, outputs = ([getattr(work, side) for work in steps[0].rounds[0]] for side in (INPUT, OUTPUT))
        groups = list(dict.fromkeys(k // self._context.group_size for k in inputs))
        # Preferred, not pinned: where that worker is gone, any other does the task. Not so a task that waits for none
        # and becomes ready while there is no worker at all: Dask gives it to that very worker or to none, for ever.
        first = not any(isinstance(self.input[k], Future) for k in inputs)
        where = trainers.preferring("" if first else slot[0])
        rows = {k: self.input[k] for k in inputs}, {k: self.output[k] for k in outputs}
        pairs, alone = [this.pairs(groups) for this in passes], len(trainers.threads) + trainers.coming == 1
        arguments = *rows, pairs, self._context, min(slot[1], len(inputs))
        options = {"key": f"buckets-{key}-{inputs[0]}-{outputs[0]}", "retries": 2, "resources": trainers.takes, **where}
        trained = self._client.submit(train_buckets, steps, *arguments, stays=alone, priority=-rank, **options)
        names = [f"{name}-{trained.key}" for name in _RESULTS]
        results: list[Future] = self._client.map(
            getitem, [trained] * len(names), range(len(names)), key=names, priority=1, **where
        )
        input_rows, output_rows, totals = results
        for k in inputs:
            self.input[k] = input_rows
        for k in outputs:
            self.output[k] = output_rows
        return totals

    def play_through_files(self, work: PassWork, folder: Store) -> Iterator[TrainedStep]:
        """Train a pass; yield each step when all of it is done.

        Files lie below the run's folder; files that a step replaces are deleted.
        """
        takes = self._trainers().takes
        for groups in work.works(self._context):
            jobs = {}
            for number, rounds in enumerate(groups):
                inputs = {of.input: self.input[of.input] for of in rounds[0]}
                outputs = {of.output: self.output[of.output] for of in rounds[0]}
                steps, pairs = [StepWork(0, rounds)], [work.pairs([number])]
                jobs[number] = (steps, inputs, outputs, pairs, self._context, 1, folder / FOLDER)
            totals: list[TaskTotals] = []
            tasks = run_tasks(self._client, f"pass {work.this.number}", train_buckets, jobs, takes)
            for _, (inputs, outputs, done) in tasks:
                totals += done
                for table, trained in ((self.input, inputs), (self.output, outputs)):
                    for k, origin in trained.items():
                        _remove(table[k], k)
                        table[k] = {k: origin}
            yield TrainedStep(totals, list(self.input), list(self.output))


def _slot_of(slots: Sequence[str], group: int, n_groups: int) -> tuple[str, int]:
    """Return the worker of a group, and the number of its threads that only this group has, at least one."""
    first, last = (len(slots) * k // n_groups for k in (group, group + 1))
    return slots[first], max(1, slots[first:last].count(slots[first]))


def _remove(held: HeldPartition, partition: int) -> None:
    """Delete the file of a partition, if it is in one."""
    origin = None if isinstance(held, Future) else held[partition]
    if isinstance(origin, PartitionOrigin) and origin.store is not None and origin.file is not None:
        (origin.store / origin.file).remove()
