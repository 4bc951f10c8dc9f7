"""Meetings whose partitions lie in the work directory: for models that the cluster's memory does not hold.

A task reads a group of input and a group of output partitions, trains all their buckets in turn, and writes the rows to
new files: its memory is the two groups, whatever the model's size. What it returns is where they are. So nothing is
lost with a worker but the task it was doing.
"""

from collections.abc import Iterator

from distributed import Client

from daskw2v.sampling.skipgrams import SkipGrams
from daskw2v.shards.tasks import run_tasks
from daskw2v.storage import Store
from daskw2v.strategies.base import Totals
from daskw2v.strategies.meeting import Origin, Parts, Rows, State, Work, meet_stored, works_of
from daskw2v.strategies.rotations import Pass, Step

FOLDER = "parts"


def play(
    client: Client, parts: Parts, state: State, this: Pass, turns: Iterator[list[Step]], grams: SkipGrams, place: Store
) -> Iterator[list[Totals]]:
    """Do a pass; yield what the meetings of each turn did, when all are done.

    Files lie below `place`; those that the turn's replace are deleted.
    """
    for steps in turns:
        groups: dict[int, list[Work]] = {}  # by their first input partition
        for step in steps:
            groups.setdefault(step.meetings[0].contexts, []).extend(works_of(parts, this, grams, step))
        jobs = {}
        for first, works in groups.items():
            sources = {work.contexts: state.input[work.contexts] for work in works}
            outputs = {work.centers: state.output[work.centers] for work in works}
            jobs[first] = (works, sources, outputs, parts, place / FOLDER)
        totals = []
        for _, (sources, outputs, total) in run_tasks(client, f"pass {this.number}", meet_stored, jobs):
            totals.append(total)
            for rows, now in ((state.input, sources), (state.output, outputs)):
                for k, origin in now.items():
                    _remove(rows[k])
                    rows[k] = origin
        yield totals


def _remove(rows: Rows) -> None:
    if isinstance(rows, Origin) and rows.store is not None and rows.file is not None:
        (rows.store / rows.file).remove()
