"""Steps of rotation whose partitions are files of the work directory: for models that the cluster cannot hold.

A task reads a group of input and a group of output partitions, trains all their buckets, and writes the rows to new
files: its memory is the two groups, whatever the size of the model. Its result says where the files are. So a worker
that is lost costs no more than the task it was doing.
"""

from collections.abc import Iterator

from distributed import Client, Future

from daskw2v.cluster.tasks import run_tasks
from daskw2v.store.storage import Store
from daskw2v.training.devices import trainers_of
from daskw2v.training.loop.totals import TaskTotals
from daskw2v.training.rotation.bucket_jobs import StepWork
from daskw2v.training.rotation.bucket_task import (
    HeldPartition,
    PartitionOrigin,
    RotationContext,
    RotationState,
    TrainedStep,
    train_buckets,
)
from daskw2v.training.rotation.in_memory import PassWork

FOLDER = "parts"


def play(
    client: Client,
    context: RotationContext,
    state: RotationState,
    work: PassWork,
    place: Store,
) -> Iterator[TrainedStep]:
    """Train a pass; yield each step when all of it is done.

    Files lie below `place`; those that a step's replace are deleted.
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
