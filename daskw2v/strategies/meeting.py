"""The task that trains when two partitions meet: a pure function of their rows and of the bucket they share."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.devices import find_device
from daskw2v.models.store import read_partition, write_partition
from daskw2v.objectives import find_objective
from daskw2v.objectives.base import FloatArray, is_finite
from daskw2v.sampling.hierarchy import word_table
from daskw2v.sampling.run import Run
from daskw2v.sampling.skipgrams import read_bucket
from daskw2v.sampling.weights import PartitionCounts
from daskw2v.storage import Store
from daskw2v.strategies.base import Totals
from daskw2v.vocabulary.partition import Partitions


class Output(NamedTuple):
    """An output partition, which travels: its rows, and the alias table of its words."""

    rows: FloatArray
    words: npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Origin:
    """Where a partition's rows come from before its first meeting: a checkpoint, or the first draws without one."""

    checkpoint: Store | None = None


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
        """Return a partition's rows at their origin."""
        if origin.checkpoint is not None:
            return read_partition(origin.checkpoint, table, partition)
        params = self.run.params
        return find_objective(params.objective).initial(params, table, self.partitions.words(partition))


class Work(NamedTuple):
    """One meeting: the row of buckets, the two partitions, the learning rate, and the stream of the draws."""

    row: Store
    contexts: int
    centers: int
    alpha: float
    key: int


def meet(
    work: Work, source: FloatArray | Origin, output: Output | Origin, parts: Parts
) -> tuple[FloatArray, Output, Totals]:
    """Task: train the bucket of an input and an output partition; return both, and what was done."""
    params = parts.run.params
    if isinstance(source, Origin):
        source = parts.rows("input", work.contexts, source)
    if isinstance(output, Origin):
        words = word_table(parts.counts.read(work.centers), params.ns_exponent)
        output = Output(parts.rows("output", work.centers, output), words)
    both = find_device(parts.run.device).meeting(find_objective(params.objective), params, source, output.rows)
    bucket = read_bucket(work.row, work.centers)
    pairs, loss = both.train(bucket, work.alpha, output.words, np.uint64(work.key))
    trained = both.take()
    return trained[0], Output(trained[1], output.words), Totals(pairs, loss, all(map(is_finite, trained)))


def save_part(store: Store, table: str, partition: int, rows: FloatArray | Output) -> None:
    """Task: write a partition's rows, by the worker that holds them."""
    write_partition(store, table, partition, rows.rows if isinstance(rows, Output) else rows)
