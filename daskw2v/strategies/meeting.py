"""The tasks that train when partitions meet: pure functions of their rows and of the buckets they share."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from distributed import Future

from daskw2v.devices import CpuMeeting, find_device
from daskw2v.models.store import read_partition, write_partition
from daskw2v.objectives import find_objective
from daskw2v.objectives.base import FloatArray, is_finite
from daskw2v.sampling.hierarchy import word_table
from daskw2v.sampling.rng import Purpose, draws, stream
from daskw2v.sampling.run import Run
from daskw2v.sampling.skipgrams import SkipGrams, read_bucket
from daskw2v.sampling.weights import PartitionCounts
from daskw2v.shards.tasks import new_attempt
from daskw2v.storage import Store
from daskw2v.strategies.base import Totals
from daskw2v.strategies.rotations import Pass, Step
from daskw2v.vocabulary.partition import Partitions

INPUT, OUTPUT = "input", "output"
Words = npt.NDArray[np.uint64]


class Output(NamedTuple):
    """An output partition, which travels: its rows, and the alias table of its words."""

    rows: FloatArray
    words: Words


@dataclass(frozen=True)
class Origin:
    """Where a partition's rows lie: in a checkpoint or a file of a store, or nowhere, before they were first drawn."""

    store: Store | None = None
    file: str | None = None


Rows: TypeAlias = Future | Origin


@dataclass
class State:
    """A run between two meetings: where the partitions of both tables are; an entry of history for each pass done."""

    next_pass: int
    input: list[Rows]
    output: list[Rows]
    history: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Parts:
    """What all meetings of a run share.

    Parameters
    ----------
    run
        The run.
    partitions, counts
        How words are spread, and how often they occur.
    """

    run: Run
    partitions: Partitions
    counts: PartitionCounts

    def rows(self, table: str, partition: int, origin: Origin) -> FloatArray:
        """Return a partition's rows at their origin, shape (rows, D)."""
        params = self.run.params
        if origin.store is None:
            return find_objective(params.objective).initial(params, table, self.partitions.words(partition))
        if origin.file is None:
            return read_partition(origin.store, table, partition)
        shape = self.partitions.size(partition), params.vector_size
        content = origin.store.read_range(origin.file, 0, 4 * shape[0] * shape[1])
        return np.frombuffer(content, np.float32).reshape(shape)

    def words(self, partition: int) -> Words:
        """Return the alias table of a partition's words."""
        return word_table(self.counts.read(partition), self.run.params.ns_exponent)


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


def meet(
    work: Work, source: FloatArray | Origin, output: Output | Origin, parts: Parts
) -> tuple[FloatArray, Output, Totals]:
    """Task: train the bucket of an input and an output partition; return both, and what was done."""
    if isinstance(source, Origin):
        source = parts.rows(INPUT, work.contexts, source)
    if isinstance(output, Origin):
        output = Output(parts.rows(OUTPUT, work.centers, output), parts.words(work.centers))
    params = parts.run.params
    both = find_device(parts.run.device).meeting(find_objective(params.objective), params, [source], [output.rows])
    pairs, loss = _train(both, 0, 0, work, output.words)
    trained = both.take_source(0), both.take_output(0)
    return trained[0], Output(trained[1], output.words), Totals(pairs, loss, all(map(is_finite, trained)))


def meet_stored(
    works: Sequence[Work], sources: dict[int, Origin], outputs: dict[int, Origin], parts: Parts, home: Store
) -> tuple[dict[int, Origin], dict[int, Origin], Totals]:
    """Task: train the buckets of a group of input and a group of output partitions, one after the other.

    Parameters
    ----------
    works
        The meetings, in their order.
    sources, outputs
        Where the rows of each partition are.
    parts
        What all meetings share.
    home
        Where files of the rows are written.

    Returns
    -------
    sources, outputs, totals
        Where the rows are now, and what was done.
    """
    params = parts.run.params
    group = find_device(parts.run.device).meeting(
        find_objective(params.objective),
        params,
        (parts.rows(INPUT, k, origin) for k, origin in sources.items()),  # one after the other: each is large
        (parts.rows(OUTPUT, k, origin) for k, origin in outputs.items()),
    )
    words = {k: parts.words(k) for k in outputs}
    inputs, centers = list(sources), list(outputs)
    done = [
        _train(group, inputs.index(work.contexts), centers.index(work.centers), work, words[work.centers])
        for work in works
    ]
    attempt, finite = new_attempt(), []

    def write(table: str, k: int, rows: FloatArray) -> Origin:
        finite.append(is_finite(rows))
        name = f"{table}-{k}-{attempt}"
        home.write_raw(name, rows)
        return Origin(home, name)

    now = {k: write(INPUT, k, group.take_source(i)) for i, k in enumerate(sources)}
    then = {k: write(OUTPUT, k, group.take_output(i)) for i, k in enumerate(outputs)}
    return now, then, Totals(sum(n for n, _ in done), sum(loss for _, loss in done), all(finite))


def _train(group: CpuMeeting, source: int, output: int, work: Work, words: Words) -> tuple[int, float]:
    bucket = read_bucket(work.row, work.centers)
    return group.train(source, output, bucket, work.alpha, words, np.uint64(work.key))


def save_part(store: Store, table: str, partition: int, rows: FloatArray | Output | Origin, parts: Parts) -> None:
    """Task: write a partition's rows to a model, by the worker that holds them."""
    if isinstance(rows, Origin):
        rows = parts.rows(table, partition, rows)
    write_partition(store, table, partition, rows.rows if isinstance(rows, Output) else rows)
