"""The task that trains where partitions meet: a pure function of their rows and of the buckets they share."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from distributed import Future

from daskw2v.cluster import this_worker
from daskw2v.devices import find_device, gpu_memory_watched
from daskw2v.models.store import read_partition, write_partition
from daskw2v.objectives import find_objective
from daskw2v.objectives.base import FloatArray, is_finite
from daskw2v.raw import read_part, write_parts
from daskw2v.sampling.hierarchy import word_table
from daskw2v.sampling.rng import Purpose, draws, stream
from daskw2v.sampling.run import Run
from daskw2v.sampling.skipgrams import SkipGrams, read_bucket
from daskw2v.sampling.weights import PartitionCounts
from daskw2v.shards.tasks import new_attempt
from daskw2v.shared import by_fields, share
from daskw2v.storage import Store
from daskw2v.strategies.base import Clock, Totals
from daskw2v.strategies.beginning import first_rows
from daskw2v.strategies.rotations import Pass, Step
from daskw2v.vocabulary.partition import Partitions

INPUT, OUTPUT = "input", "output"
Words = npt.NDArray[np.uint64]


@by_fields
class Output(NamedTuple):
    """An output partition, which travels: its rows, and the alias table of its words."""

    rows: FloatArray
    words: Words


@dataclass(frozen=True)
class Origin:
    """Where a partition's rows lie: in a checkpoint or a file of a store, or nowhere, before they were first drawn."""

    store: Store | None = None
    file: str | None = None


Rows: TypeAlias = FloatArray | Output | Origin
Some: TypeAlias = Mapping[int, Rows]  # some partitions of a table, by number
Held: TypeAlias = Future | Some  # the future is of `Some`


@dataclass
class State:
    """A run between two turns: what holds each partition of both tables; an entry of history for each pass done."""

    next_pass: int
    input: list[Held]
    output: list[Held]
    history: list[dict[str, Any]] = field(default_factory=list)


def state_at(origin: Origin, n: int, next_pass: int, history: list[dict[str, Any]]) -> State:
    """Return the state of a run whose 2 n partitions all lie at an origin."""
    return State(next_pass, [{k: origin} for k in range(n)], [{k: origin} for k in range(n)], history)


@dataclass(frozen=True)
class Parts:
    """What all meetings of a run share.

    Parameters
    ----------
    run
        The run.
    partitions, counts
        How words are spread, and how often they occur.
    max_in_flight
        As in Resources.
    """

    run: Run
    partitions: Partitions
    counts: PartitionCounts
    max_in_flight: int | None

    def rows(self, table: str, partition: int, rows: Rows) -> FloatArray:
        """Return a partition's rows, shape (rows, D), wherever they are."""
        if isinstance(rows, Origin):
            return self._read(table, partition, rows)
        return rows.rows if isinstance(rows, Output) else rows

    def words(self, partition: int, rows: Rows) -> Words:
        """Return the alias table of an output partition's words."""
        if isinstance(rows, Output):
            return rows.words
        return word_table(self.counts.read(partition), self.run.params.ns_exponent)

    def _read(self, table: str, partition: int, origin: Origin) -> FloatArray:
        if origin.store is None:
            return first_rows(self.run, table, self.partitions.words(partition))
        if origin.file is None:
            return read_partition(origin.store, table, partition)
        return read_part(origin.store, origin.file, 1, 0, np.float32, self.run.params.vector_size)


class Work(NamedTuple):
    """One meeting: the row of buckets, the two partitions, the learning rate, and the stream of the draws."""

    row: Store
    contexts: int
    centers: int
    alpha: float
    key: int


def works_of(parts: Parts, this: Pass, grams: SkipGrams, step: Step) -> list[Work]:
    """Return the meetings of a step."""
    params, n = parts.run.params, parts.partitions.n
    buckets = np.array([(this.number * n + m.contexts) * n + m.centers for m in step.meetings], np.uint64)
    keys = draws(stream(params.seed, Purpose.NEGATIVE, this.epoch), buckets).tolist()
    return [
        Work(grams.row(m.contexts), m.contexts, m.centers, step.alpha, key)
        for m, key in zip(step.meetings, keys, strict=True)
    ]


@gpu_memory_watched()
def meet(
    rounds: Sequence[Sequence[Work]],
    sources: Mapping[int, Some],
    outputs: Mapping[int, Some],
    parts: Parts,
    threads: int,
    home: Store | None = None,
) -> tuple[Some, Some, Totals]:
    """Task: train the buckets of some input and some output partitions, round after round.

    Parameters
    ----------
    rounds
        Meetings; those of a round have no partition in common.
    sources, outputs
        For each partition what holds it, perhaps among others.
    parts
        What all meetings share.
    threads
        Meetings trained at the same time, at most.
    home
        Where rows are written, as files; without it they are the task's result.

    Returns
    -------
    sources, outputs, totals
        The partitions that met, and what was done.
    """
    clock, words = Clock(), dict[int, Words]()

    def open_outputs() -> Iterator[tuple[int, FloatArray]]:
        for k, held in outputs.items():
            words[k] = parts.words(k, held[k])
            yield k, parts.rows(OUTPUT, k, held[k])

    params = parts.run.params
    group = find_device(parts.run.device).meeting(
        find_objective(params.objective),
        params,
        ((k, parts.rows(INPUT, k, held[k])) for k, held in sources.items()),  # one after the other: each is large
        open_outputs(),
        parts.counts.read,
        parts.run.vocabulary.total,
        parts.max_in_flight,
    )

    def train(work: Work) -> tuple[int, float]:
        bucket = read_bucket(work.row, work.centers)
        return group.train(work.contexts, work.centers, bucket, work.alpha, words[work.centers], np.uint64(work.key))

    with ThreadPoolExecutor(threads) as pool:
        done = list(chain.from_iterable(list(pool.map(train, works)) for works in rounds))
    attempt, finite = new_attempt(), list[bool]()

    def settle(table: str, k: int, rows: FloatArray) -> Rows:
        finite.append(is_finite(rows))
        if home is None:
            return share(rows) if table == INPUT else Output(share(rows), share(words[k]))
        write_parts(home, f"{table}-{k}-{attempt}", [0, len(rows)], rows)
        return Origin(home, f"{table}-{k}-{attempt}")

    now = {k: settle(INPUT, k, group.take_source(k)) for k in sources}
    then = {k: settle(OUTPUT, k, group.take_output(k)) for k in outputs}
    pairs, loss = sum(n for n, _ in done), sum(loss for _, loss in done)
    return now, then, Totals(pairs, loss, all(finite), 0, this_worker(), *clock.read())


def join_parts(parts: Parts, *held: Some) -> FloatArray:
    """Return the input table whose partitions these hold, in their order."""
    table = np.empty((parts.partitions.n_words, parts.run.params.vector_size), np.float32)
    for k, some in enumerate(held):
        table[parts.partitions.words(k)] = parts.rows(INPUT, k, some[k])
    return table


def save_part(store: Store, table: str, partition: int, held: Some, parts: Parts) -> None:
    """Task: write a partition's rows to a model, by the worker that holds them."""
    write_partition(store, table, partition, parts.rows(table, partition, held[partition]))
