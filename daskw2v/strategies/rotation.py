"""Strategy `rotation`: partitions of the model meet two by two, and no row is ever in two hands.

Input partitions stay on their workers, output partitions travel (paper 003 moves two vectors for each pair instead).
In a round each input partition meets one output partition, and they train the bucket of pairs that needs no other row;
after p rounds, a pass, all have met (`rotations`). What a meeting does depends on its two partitions and its bucket
only: so any number of workers, alive or lost, gives the same bits, and those are as good as one worker's.

A meeting is a task, and partitions are its results: they go from worker to worker, never through the client. A worker
with several partitions keeps those that are not meeting in memory or, beyond its limit, on its disk (Dask spills them).
"""

import time
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import getitem
from typing import Any, TypeAlias

import numpy as np
from distributed import Client, Future

from daskw2v.cluster import gather, total_threads
from daskw2v.errors import ParameterError
from daskw2v.models.store import create_model
from daskw2v.objectives import find_bucket_trainer, find_objective
from daskw2v.params import Params, Resources
from daskw2v.progress import Listener, Progress
from daskw2v.sampling.rng import Purpose, draws, stream
from daskw2v.sampling.run import Run
from daskw2v.sampling.skipgrams import Dealer, SkipGrams, Stretch, build_skipgrams
from daskw2v.sampling.weights import partition_counts
from daskw2v.storage import Store
from daskw2v.strategies import checkpoint
from daskw2v.strategies.base import Outcome, Strategy, Totals, check_finite, entry_of, progress_of
from daskw2v.strategies.blocks import rows_per_block
from daskw2v.strategies.meeting import Origin, Parts, Work, meet, save_part
from daskw2v.strategies.rotations import Pass, Rotations, Step
from daskw2v.vocabulary.partition import Partitions

_AHEAD = 2  # turns given to the cluster: the next begins where the slowest of one still works
_RESULTS = ("input", "output", "totals")  # of `meet`

Rows: TypeAlias = Future | Origin


@dataclass
class _State:
    """A run between two rounds: the partitions of both tables; and an entry of history for each pass done."""

    next_pass: int
    input: list[Rows]
    output: list[Rows]
    history: list[dict[str, Any]] = field(default_factory=list)


def _train(client: Client, run: Run, place: Store, length: int, resources: Resources, listener: Listener) -> Outcome:
    """Train a run to its end, or go on with it from its last checkpoint.

    Raises
    ------
    ParameterError
        If there are more partitions than words.
    TrainingError
        If the model is no longer finite, or a task keeps killing its workers.
    """
    params, n = run.params, run.params.n_partitions
    partitions = Partitions(run.vocabulary.size, n)
    counts = partition_counts(client, run.vocabulary, partitions, params.ns_exponent, place / "weights")
    dealer = Dealer(run, counts.weights)
    parts = Parts(run, partitions, counts)
    passes = Rotations(params, length)
    state = _restore(place, n)
    session = f"{place.name}-{uuid.uuid4().hex[:8]}"  # keys of an earlier client's tasks must not be met
    saved = time.monotonic()
    if total_threads(client) > n:
        message = f"{n} of {total_threads(client)} threads have work: n_partitions={n} meet at a time"
        listener(Progress("train", 0, 0, "", message=message))
    for this in map(passes.__getitem__, range(state.next_pass, len(passes))):
        began = time.monotonic()
        grams = build_skipgrams(client, dealer, _home(place, params, this), _stretch(params, this))
        dealt, done = time.monotonic() - began, list[Totals]()
        for totals in _play(client, parts, state, passes, this, grams, session):
            done += totals
            share = len(done) / n**2
            alpha = passes.alpha(this.number, share)
            check_finite(f"A partition in pass {this.number}", totals, alpha, place)
            progress = this.epoch * length + this.start + int((this.stop - this.start) * share)
            words = Totals(0, 0.0, True, int(grams.words * share))
            entry = entry_of(this.number, progress, [*done, words], alpha, time.monotonic() - began)
            listener(progress_of(entry, length * params.epochs))
        state.history.append({**entry, "deal_seconds": round(dealt, 4)})
        state.next_pass += 1
        if time.monotonic() - saved >= resources.checkpoint_seconds and state.next_pass < len(passes):
            state = _checkpoint(client, parts, place, state)
            _remove_trained(place, params, [passes[number] for number in range(state.next_pass, len(passes))])
            saved = time.monotonic()
    return Outcome(state.history, 1, lambda store: _save(client, parts, store, state))


def _stretch(params: Params, this: Pass) -> Stretch:
    """Return what is dealt for a pass: `pair_epochs` epochs share the draws of the first."""
    return Stretch(this.epoch // params.pair_epochs * params.pair_epochs, this.start, this.stop)


def _home(place: Store, params: Params, this: Pass) -> Store:
    stretch = _stretch(params, this)
    return place / "skipgrams" / f"{stretch.epoch}-{stretch.start}-{stretch.stop}"


def _remove_trained(place: Store, params: Params, coming: Sequence[Pass]) -> None:
    """Delete the pairs that neither coming passes read, nor tasks that a lost worker's would need again."""
    needed = {_home(place, params, this).name for this in coming}
    for name in (place / "skipgrams").children():
        if name not in needed:
            (place / "skipgrams" / name).remove()


def _play(
    client: Client, parts: Parts, state: _State, passes: Rotations, this: Pass, grams: SkipGrams, session: str
) -> Iterator[list[Totals]]:
    """Do a pass; yield what the meetings of each turn did, as they are done."""
    homes = _homes(client, parts.partitions.n)
    waiting: deque[list[Future]] = deque()
    for turn, steps in enumerate(passes.turns(this.number)):
        waiting.append([])
        for number, step in enumerate(steps):
            key = f"{session}-{this.number}-{turn}-{number}"
            works = _works(parts, this, grams, step)
            waiting[-1] += _submit(client, parts, state, works, homes, key, -(turn * len(steps) + number))
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


def _works(parts: Parts, this: Pass, grams: SkipGrams, step: Step) -> list[Work]:
    params, n = parts.run.params, parts.partitions.n
    buckets = np.array([(this.number * n + m.contexts) * n + m.centers for m in step.meetings], np.uint64)
    keys = draws(stream(params.seed, Purpose.NEGATIVE, this.epoch), buckets).tolist()
    return [
        Work(grams.row(m.contexts), m.contexts, m.centers, step.alpha, key)
        for m, key in zip(step.meetings, keys, strict=True)
    ]


def _submit(
    client: Client, parts: Parts, state: _State, works: Sequence[Work], homes: Sequence[str | None], key: str,
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


def _save(client: Client, parts: Parts, store: Store, state: _State) -> None:
    """Write all partitions, each by the worker that holds it."""
    vocabulary, width = parts.run.vocabulary, parts.run.params.vector_size
    tables = {"input": state.input, "output": state.output}
    shapes = dict.fromkeys(tables, (vocabulary.size, width))
    create_model(store, shapes, rows_per_block(width), parts.partitions.n)
    attempt = uuid.uuid4().hex
    writes = [
        client.submit(save_part, store, name, k, rows, key=f"save-{attempt}-{name}-{k}", retries=2)
        for name, partitions in tables.items()
        for k, rows in enumerate(partitions)
    ]
    gather(client, writes, "Writing the model")


def _checkpoint(client: Client, parts: Parts, place: Store, state: _State) -> _State:
    """Write a checkpoint; return the state that reads from it, so that nothing before it need be done again."""
    store = checkpoint.folder(place, state.next_pass)
    _save(client, parts, store, state)
    checkpoint.finish(place, store, {"next_pass": state.next_pass, "history": state.history})
    n = parts.partitions.n
    return _State(state.next_pass, [Origin(store)] * n, [Origin(store)] * n, state.history)


def _restore(place: Store, n: int) -> _State:
    """Return the state of the newest finished checkpoint, or that before the first pass."""
    found = checkpoint.newest(place)
    if found is None:
        return _State(0, [Origin()] * n, [Origin()] * n)
    store, manifest = found
    return _State(int(manifest["next_pass"]), [Origin(store)] * n, [Origin(store)] * n, list(manifest["history"]))


def _check(params: Params, resources: Resources) -> None:
    find_bucket_trainer(find_objective(params.objective), resources.device)
    if params.negative_sharing != "shared":
        raise ParameterError(
            f"negative_sharing={params.negative_sharing!r} has no kernel for strategy='rotation'.",
            "Leave negative_sharing out (pairs of a bucket share negatives by four), or choose strategy='averaging'.",
        )


ROTATION = Strategy(
    "rotation", ("n_partitions", "passes_per_epoch", "negative_rule", "pair_epochs"), (), _check, _train
)
