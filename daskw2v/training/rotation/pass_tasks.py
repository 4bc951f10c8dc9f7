"""The tasks of a pass of rotation, whose partitions are results of tasks, or files.

Results are sent from worker to worker. One task trains a group's step. If one worker trains all groups side by side,
one task trains a pass, or several passes that have little text: partitions are copied and sent once for all their
buckets. Tasks prefer the worker that has their input partitions; an output partition is fetched by the worker that
trains it next. Neither passes through the client. A worker keeps the groups that it is not training in its memory.

Files are for models that the cluster cannot hold. A task reads a group of input and a group of output partitions,
trains all their buckets, and writes the rows to new files of the work directory: it needs memory for two groups,
whatever the size of the model. Its result names the files. So a lost worker costs no more than its current task.
"""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import chain, pairwise
from operator import getitem
from typing import NamedTuple

from distributed import Client, Future

from daskw2v.cluster.tasks import run_tasks
from daskw2v.cluster.waiting import gather
from daskw2v.cluster.workers import Trainers
from daskw2v.objectives.base import INPUT, OUTPUT
from daskw2v.sampling.skipgrams import HeldPairs, SkipGrams
from daskw2v.store.storage import Store
from daskw2v.training.devices import find_device, find_device_trainers
from daskw2v.training.loop.strategy import TaskTotals
from daskw2v.training.rotation import bucket_task
from daskw2v.training.rotation.bucket_jobs import BucketRounds, PairSource, StepWork
from daskw2v.training.rotation.bucket_task import HeldPartition, PartitionOrigin, RotationContext
from daskw2v.training.rotation.copies import average_copies, set_copies, sum_copies
from daskw2v.training.rotation.pass_schedule import BucketRound, RotationPass, fits_one_task
from daskw2v.training.rotation.settings import Rotation

_N_AHEAD = 2  # steps that are submitted: the next begins while the slowest task of one still runs
_RESULTS = (INPUT, OUTPUT, "totals")  # of `train_buckets`
FOLDER = "parts"


class TrainedStep(NamedTuple):
    """A step that is trained.

    Parameters
    ----------
    totals
        The totals of its tasks.
    input, output
        The holder of each partition of both tables after the step, or after its pass; None where its task trains later
        passes, too, or only the next task needs them.
    seconds
        The step's share of the seconds of its task, where one task trains all steps of a pass; None elsewhere.
    """

    totals: list[TaskTotals]
    input: list[HeldPartition] | None
    output: list[HeldPartition] | None
    seconds: float | None = None


class PassWork(NamedTuple):
    """A pass that is to be trained: its steps, as `RotationPasses.steps` yields them, and its pairs."""

    current: RotationPass
    steps: Iterator[list[list[BucketRound]]]
    grams: SkipGrams | HeldPairs

    def works(self, context: RotationContext) -> Iterator[list[BucketRounds]]:
        """Yield, for each step, the buckets of each group of input partitions, by round."""
        for groups in self.steps:
            yield [[bucket_task.bucket_works(context, self.current, each) for each in rounds] for rounds in groups]

    def pairs(self, groups: Sequence[int]) -> PairSource:
        """Return the source of the pairs of the groups of input partitions with these numbers; held ones as futures."""
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
        The location of the rows of all partitions.
    coming
        Number of the pass that is submitted next.

    Attributes
    ----------
    input, output
        The holder of each partition of both tables.
    """

    def __init__(self, client: Client, context: RotationContext, origin: PartitionOrigin, coming: int = 0) -> None:
        self._client, self._context, self._coming = client, context, coming
        self.input: list[HeldPartition] = [{k: origin} for k in range(context.partitions.n)]
        self.output: list[HeldPartition] = [{k: origin} for k in range(context.partitions.n)]
        self._needed = True  # whether anybody but the next task needs the model
        self._ended_at = 0.0  # end of the last task that trained passes, by `time.monotonic`

    def can_be_one_task(self, number: int) -> bool:
        """Return whether the pass of this number is submitted next, and one task may train it, and passes after it."""
        return self._coming == number and self._fits_one_task()

    def _fits_one_task(self) -> bool:
        """Return whether one task may train a pass on the workers that train now."""
        run, slots = self._context.run, self._trainers().slots()
        tasks = find_device(run.device).tasks(len(slots))
        return fits_one_task(len(set(slots)), tasks, self._context.n_groups, Rotation.of(run.params).sent_dtype)

    def _trainers(self) -> Trainers:
        """Return the workers that train now."""
        return find_device_trainers(self._client, self._context.run.device)

    def play_together(
        self, passes: Sequence[PassWork], key: str, *, needed: bool = True
    ) -> list[Iterator[TrainedStep]]:
        """Submit one task that trains passes; return, for each pass, an iterator that waits for its steps.

        `needed` says whether the model after the last pass is reported; if not, the next task may train it in place.
        """
        steps = [
            StepWork(number, [list(chain(*same_round)) for same_round in zip(*groups, strict=True)])
            for number, work in enumerate(passes)
            for groups in work.works(self._context)
        ]
        trainers, submitted_at = self._trainers(), time.monotonic()
        slots = trainers.slots()
        in_place = not self._needed and slots[0].startswith("inproc:")  # a worker in this process sends nothing
        future = self._submit(trainers, steps, passes, (slots[0], len(slots)), key, 0, in_place=in_place)
        self._average_copies(key)
        held = (list(self.input), list(self.output)) if needed else (None, None)
        numbers = [step.number_of_pass for step in steps]
        self._coming, self._needed = passes[-1].current.number + 1, needed

        @cache
        def await_task() -> tuple[list[TaskTotals], float]:
            """Return the totals of all steps, and the seconds since the task could begin."""
            (totals,) = gather(self._client, [future], f"Pass {passes[0].current.number}", trainers.task_resources)
            began_at, self._ended_at = max(submitted_at, self._ended_at), time.monotonic()
            return totals, self._ended_at - began_at

        def await_steps(number: int) -> Iterator[TrainedStep]:
            totals, seconds = await_task()
            inputs, outputs = held if number == len(passes) - 1 else (None, None)
            factor = seconds / sum(step_totals.seconds for step_totals in totals)  # client's by worker's seconds
            for step_totals, number_of_pass in zip(totals, numbers, strict=True):
                if number_of_pass == number:
                    yield TrainedStep([step_totals], inputs, outputs, step_totals.seconds * factor)

        return [await_steps(number) for number in range(len(passes))]

    def play(self, work: PassWork, key: str) -> Iterator[TrainedStep]:
        """Train a pass; yield each step when it is trained.

        Tasks are submitted when the first step is asked for: one task, or step after step, a task for each group.
        """
        if self._fits_one_task():
            yield from self.play_together([work], key)[0]
            return
        trainers, waiting = self._trainers(), deque[list[Future]]()
        slots = trainers.slots()

        def await_step() -> TrainedStep:
            totals = gather(self._client, waiting.popleft(), f"Pass {work.current.number}", trainers.task_resources)
            return TrainedStep(list(chain(*totals)), list(self.input), list(self.output))

        for step, groups in enumerate(work.works(self._context)):
            jobs = [
                ([StepWork(0, rounds)], [work], _assign_slot(slots, k, len(groups))) for k, rounds in enumerate(groups)
            ]
            waiting.append([self._submit(trainers, *job, f"{key}-{step}", step) for job in jobs])
            if len(waiting) == _N_AHEAD:
                yield await_step()
        self._average_copies(key)
        self._coming, self._needed = work.current.number + 1, True
        while waiting:
            yield await_step()

    def _submit(
        self,
        trainers: Trainers,
        steps: list[StepWork],
        passes: Sequence[PassWork],
        slot: tuple[str, int],
        key: str,
        rank: int,
        *,
        in_place: bool = False,
    ) -> Future:
        """Submit a task, which becomes the holder of its partitions; return the future of its totals.

        Parameters
        ----------
        trainers
            The workers that train.
        steps, passes
            The task's steps, one after the other, and the passes of these steps.
        slot
            The address of the worker that should run the task, and the task's number of threads.
        key
            Part of the task's key, different for tasks that train other steps.
        rank
            Dask begins tasks of lower rank first.
        in_place
            Whether the task trains the rows of the task before in place. It is not repeated then.
        """
        inputs, outputs = ([getattr(work, side) for work in steps[0].rounds[0]] for side in (INPUT, OUTPUT))
        groups = list(dict.fromkeys(k // self._context.group_size for k in inputs))
        # Preferred, not pinned: where that worker is gone, any other runs the task. But a task that waits for no other
        # and becomes ready while there is no worker prefers none: Dask would wait for that very worker for ever.
        is_first = not any(isinstance(self.input[k], Future) for k in inputs)
        preference = trainers.preferring("" if is_first else slot[0])
        rows = {k: self.input[k] for k in inputs}, {k: self.output[k] for k in outputs}
        pairs, alone = [work.pairs(groups) for work in passes], len(trainers.threads) + trainers.n_coming == 1
        arguments = *rows, pairs, self._context, min(slot[1], len(inputs))
        name = f"buckets-{key}-{inputs[0]}-{outputs[0]}"
        repeats = {"owned": in_place, "retries": 0 if in_place else 2}
        options = {"key": name, "stays": alone, "resources": trainers.task_resources, **repeats, **preference}
        trained = self._client.submit(bucket_task.train_buckets, steps, *arguments, priority=-rank, **options)
        names, n = [f"{name}-{trained.key}" for name in _RESULTS], len(_RESULTS)
        results: list[Future]
        results = self._client.map(getitem, [trained] * n, range(n), key=names, priority=1, **preference)
        input_rows, output_rows, totals = results
        for k in inputs:
            self.input[k] = input_rows
        for k in outputs:
            self.output[k] = output_rows
        return totals

    def _average_copies(self, key: str, folder: Store | None = None) -> None:
        """Submit the tasks after a pass that make all copies of a word equal; their results hold the partitions then.

        `folder` is for partitions that are files, which the tasks write anew.
        """
        if not self._context.partitions.n_copied:
            return
        submit, size = partial(self._client.submit, priority=1, retries=2), self._context.group_size
        for table, partitions in ((INPUT, self.input), (OUTPUT, self.output)):
            # The tasks' results hold one group or several, in order; each file is held alone
            ends = [k for k in range(1, len(partitions)) if partitions[k] is not partitions[k - 1]]
            ranges = pairwise([0, *(k for k in ends if k % size == 0), len(partitions)])
            holders = {
                first: partitions[first] if folder is None else {k: partitions[k][k] for k in range(first, last)}
                for first, last in ranges
            }
            sums = [
                submit(sum_copies, self._context, table, held, key=f"sum-copies-{key}-{table}-{first}")
                for first, held in holders.items()
            ]
            mean = submit(average_copies, self._context, sums, key=f"average-copies-{key}-{table}")
            changed = {
                first: submit(set_copies, self._context, table, held, mean, folder, key=f"copies-{key}-{table}-{first}")
                for first, held in holders.items()
            }
            before, holder = list(partitions), changed[0]
            for k in range(len(partitions)):
                partitions[k] = holder = changed.get(k, holder)
            if folder is not None:
                written = chain(*map(dict.items, gather(self._client, list(changed.values()), "Averaging copies")))
                for k, origin in written:
                    _remove(before[k], k)
                    partitions[k] = {k: origin}

    def play_through_files(self, work: PassWork, folder: Store, key: str) -> Iterator[TrainedStep]:
        """Train a pass, whose partitions are files below the run's folder; yield each step when it is trained.

        Files that a step replaces are deleted.
        """
        takes, n_steps = self._trainers().task_resources, self._context.n_groups
        for step, groups in enumerate(work.works(self._context), 1):
            jobs = {}
            for number, rounds in enumerate(groups):
                inputs = {bucket.input: self.input[bucket.input] for bucket in rounds[0]}
                outputs = {bucket.output: self.output[bucket.output] for bucket in rounds[0]}
                steps, pairs = [StepWork(0, rounds)], [work.pairs([number])]
                jobs[number] = (steps, inputs, outputs, pairs, self._context, 1, folder / FOLDER)
            totals: list[TaskTotals] = []
            tasks = run_tasks(self._client, f"pass {work.current.number}", bucket_task.train_buckets, jobs, takes)
            for _, (inputs, outputs, step_totals) in tasks:
                totals += step_totals
                for table, trained in ((self.input, inputs), (self.output, outputs)):
                    for k, origin in trained.items():
                        _remove(table[k], k)
                        table[k] = {k: origin}
            if step == n_steps:
                self._average_copies(key, folder / FOLDER)
            yield TrainedStep(totals, list(self.input), list(self.output))


def _assign_slot(slots: Sequence[str], group: int, n_groups: int) -> tuple[str, int]:
    """Return the address of a group's worker, and the number of its threads for the group.

    `slots` has the address of each thread's worker.
    """
    first, last = (len(slots) * k // n_groups for k in (group, group + 1))
    return slots[first], max(1, slots[first:last].count(slots[first]))


def _remove(held: HeldPartition, partition: int) -> None:
    """Delete the file of the partition of this number, if its holder says that it lies in a file."""
    origin = None if isinstance(held, Future) else held[partition]
    if isinstance(origin, PartitionOrigin) and origin.store is not None and origin.file is not None:
        (origin.store / origin.file).remove()
