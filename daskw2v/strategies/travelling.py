"""Meetings whose partitions are results of tasks, which travel from worker to worker.

Input partitions prefer the worker that has them, output partitions are fetched by whoever meets them next; neither
passes through the client. A worker with several partitions keeps those that are not meeting in its memory.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import getitem
from typing import Any

from distributed import Client, Future

from daskw2v.cluster import gather
from daskw2v.sampling.skipgrams import SkipGrams
from daskw2v.strategies.base import Totals
from daskw2v.strategies.meeting import INPUT, OUTPUT, Parts, State, Work, meet, works_of
from daskw2v.strategies.rotations import Pass, Step

_AHEAD = 2  # turns given to the cluster: the next begins where the slowest of one still works
_RESULTS = (INPUT, OUTPUT, "totals")  # of `meet`


def play(
    client: Client, parts: Parts, state: State, this: Pass, turns: Iterator[list[Step]], grams: SkipGrams, key: str
) -> Iterator[list[Totals]]:
    """Do a pass; yield what the meetings of each turn did, as they are done."""
    homes = _homes(client, parts.partitions.n)
    waiting: deque[list[Future]] = deque()
    for turn, steps in enumerate(turns):
        waiting.append([])
        for number, step in enumerate(steps):
            works, priority = works_of(parts, this, grams, step), -(turn * len(steps) + number)
            waiting[-1] += _submit(client, parts, state, works, homes, f"{key}-{turn}-{number}", priority)
        if len(waiting) == _AHEAD:
            yield gather(client, waiting.popleft(), f"Pass {this.number}")
    for futures in waiting:
        yield gather(client, futures, f"Pass {this.number}")


def _homes(client: Client, n: int) -> list[str | None]:
    """Return the worker that each input partition stays on during a pass.

    Neighbours share a worker, since they are a group: while it turns, its output partitions stay there too.
    """
    slots = [address for address, threads in sorted(client.nthreads().items()) for _ in range(threads)] or [None]
    return [slots[i * len(slots) // n] for i in range(n)]


def _submit(
    client: Client, parts: Parts, state: State, works: Sequence[Work], homes: Sequence[str | None], key: str,
    priority: int,
) -> list[Future]:  # fmt: skip
    """Give the meetings of a step to the cluster; return the futures of what they do."""
    totals: list[Future] = []
    for home, group in groupby(works, lambda work: homes[work.contexts]):
        these = list(group)
        # Preferred, not pinned: where that worker is gone, any other takes its place.
        where: dict[str, Any] = {} if home is None else {"workers": [home], "allow_other_workers": True}
        met = client.map(
            meet,
            these,
            [state.input[work.contexts] for work in these],
            [state.output[work.centers] for work in these],
            parts=parts,
            key=[f"meet-{key}-{work.contexts}" for work in these],
            priority=priority,
            retries=2,
            **where,
        )
        numbers, keys = zip(*((nth, f"{name}-{f.key}") for nth, name in enumerate(_RESULTS) for f in met), strict=True)
        taken = client.map(getitem, met * len(_RESULTS), numbers, key=list(keys), priority=1, **where)
        for n, work in enumerate(these):
            state.input[work.contexts], state.output[work.centers] = taken[n], taken[len(these) + n]
        totals += taken[2 * len(these) :]
    return totals
