"""Meetings whose partitions lie in the work directory: for models that the cluster's memory does not hold.

A task reads a group of input and a group of output partitions, trains all their buckets in turn, and writes the rows to
new files: its memory is the two groups, whatever the model's size. What it returns is where they are. So nothing is
lost with a worker but the task it was doing.
"""

from collections.abc import Iterator

from distributed import Client, Future

from daskw2v.devices import trainers_of
from daskw2v.sampling.skipgrams import SkipGrams
from daskw2v.shards.tasks import run_tasks
from daskw2v.storage import Store
from daskw2v.strategies.base import Totals
from daskw2v.strategies.meeting import Held, Origin, Parts, State, meet, works_of
from daskw2v.strategies.rotations import Pass, Step

FOLDER = "parts"


def play(
    client: Client,
    parts: Parts,
    state: State,
    this: Pass,
    turns: Iterator[list[list[Step]]],
    grams: SkipGrams,
    place: Store,
) -> Iterator[list[Totals]]:
    """Do a pass; yield what the meetings of each turn did, when all are done.

    Files lie below `place`; those that the turn's replace are deleted.
    """
    takes = trainers_of(client, parts.run.device).takes
    for groups in turns:
        jobs = {}
        for number, steps in enumerate(groups):
            rounds = [works_of(parts, this, grams, step) for step in steps]
            sources = {work.contexts: state.input[work.contexts] for work in rounds[0]}
            outputs = {work.centers: state.output[work.centers] for work in rounds[0]}
            jobs[number] = (rounds, sources, outputs, parts, 1, place / FOLDER)
        totals = []
        for _, (sources, outputs, total) in run_tasks(client, f"pass {this.number}", meet, jobs, takes):
            totals.append(total)
            for table, now in ((state.input, sources), (state.output, outputs)):
                for k, origin in now.items():
                    _remove(table[k], k)
                    table[k] = {k: origin}
        yield totals


def _remove(held: Held, partition: int) -> None:
    """Delete the file of a partition, if it lies in one."""
    origin = None if isinstance(held, Future) else held[partition]
    if isinstance(origin, Origin) and origin.store is not None and origin.file is not None:
        (origin.store / origin.file).remove()
