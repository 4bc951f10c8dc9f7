"""Meetings whose partitions are results of tasks, which travel from worker to worker.

Input partitions prefer the worker that has them, output partitions are fetched by whoever meets them next; neither
passes through the client. A worker with several partitions keeps those that are not meeting in its memory.

Where the threads that a group of inputs has are one worker's, a task does the group's whole turn: its partitions are
copied, and travel, once for all their meetings. Where they are several workers', each meeting is a task.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import getitem
from typing import NamedTuple, TypeAlias

from distributed import Client, Future

from daskw2v.cluster import Trainers, gather
from daskw2v.devices import trainers_of
from daskw2v.sampling.skipgrams import SkipGrams
from daskw2v.strategies.base import Totals
from daskw2v.strategies.meeting import INPUT, OUTPUT, Parts, State, Work, meet, works_of
from daskw2v.strategies.rotations import Pass, Step

_AHEAD = 2  # turns given to the cluster: the next begins where the slowest of one still works
_RESULTS = (INPUT, OUTPUT, "totals")  # of `meet`

Rounds: TypeAlias = list[list[Work]]


def play(
    client: Client,
    parts: Parts,
    state: State,
    this: Pass,
    turns: Iterator[list[list[Step]]],
    grams: SkipGrams,
    key: str,
) -> Iterator[list[Totals]]:
    """Do a pass; yield what the meetings of each turn did, as they are done."""
    trainers = trainers_of(client, parts.run.device)
    slots = [address for address, threads in trainers.homes() for _ in range(threads)] or [""]
    waiting: deque[list[Future]] = deque()
    for turn, groups in enumerate(turns):
        waiting.append([])
        for number, steps in enumerate(groups):
            rounds = [works_of(parts, this, grams, step) for step in steps]
            for job in _jobs(rounds, _share(slots, number, len(groups)), -turn * len(rounds)):
                waiting[-1] += _submit(client, trainers, parts, state, job, f"{key}-{turn}")
        if len(waiting) == _AHEAD:
            yield gather(client, waiting.popleft(), f"Pass {this.number}", trainers.takes)
    for futures in waiting:
        yield gather(client, futures, f"Pass {this.number}", trainers.takes)


class _Job(NamedTuple):
    """Tasks side by side: the rounds of each, the worker that should do them, the threads of one, and its priority."""

    tasks: list[Rounds]
    home: str
    threads: int
    priority: int


def _jobs(rounds: Rounds, slots: Sequence[str], priority: int) -> Iterator[_Job]:
    """Yield what a group's turn is for the threads it has: one task, or several for each round."""
    size = len(rounds[0])
    if len({*slots}) == 1:
        yield _Job([rounds], slots[0], min(len(slots), size), priority)
        return
    for number, works in enumerate(rounds):
        for home, these in groupby(enumerate(works), lambda work: slots[work[0] * len(slots) // size]):
            yield _Job([[[work]] for _, work in these], home, 1, priority - number)


def _share(slots: Sequence[str], group: int, n_groups: int) -> Sequence[str]:
    """Return the threads that a group has to itself, or the one that it shares with other groups."""
    first, last = (len(slots) * k // n_groups for k in (group, group + 1))
    return slots[first : max(last, first + 1)]


def _submit(client: Client, trainers: Trainers, parts: Parts, state: State, job: _Job, key: str) -> list[Future]:
    """Give tasks to the cluster, whose results then hold their partitions; return the futures of what they do."""
    # Preferred, not pinned: where that worker is gone, any other takes its place. Not so a task that waits for none and
    # becomes ready while there is no worker at all: Dask gives it to that very worker or to nobody, for ever.
    first = not any(isinstance(state.input[work.contexts], Future) for rounds in job.tasks for work in rounds[0])
    where = trainers.preferring("" if first else job.home)
    numbers = [([work.contexts for work in rounds[0]], [work.centers for work in rounds[0]]) for rounds in job.tasks]
    met = client.map(
        meet,
        job.tasks,
        [{k: state.input[k] for k in inputs} for inputs, _ in numbers],
        [{k: state.output[k] for k in outputs} for _, outputs in numbers],
        parts=parts,
        threads=job.threads,
        key=[f"meet-{key}-{rounds[0][0].contexts}-{rounds[0][0].centers}" for rounds in job.tasks],
        priority=job.priority,
        retries=2,
        resources=trainers.takes,
        **where,
    )
    nth, keys = zip(*((n, f"{name}-{f.key}") for n, name in enumerate(_RESULTS) for f in met), strict=True)
    taken: list[Future] = client.map(getitem, met * len(_RESULTS), nth, key=list(keys), priority=1, **where)
    for (inputs, outputs), source, output in zip(numbers, taken, taken[len(met) :], strict=False):
        for k in inputs:
            state.input[k] = source
        for k in outputs:
            state.output[k] = output
    return taken[2 * len(met) :]
