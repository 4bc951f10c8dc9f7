"""Parts of the words: each is trained by a worker of its own.

Parts are made of units, whole blocks of batches. A unit depends on the number of words alone, so that results do not
depend on the workers.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from distributed import Client

from daskw2v.cluster import Trainers
from daskw2v.config.resources import Resources
from daskw2v.sampling.context_matrix import ContextMatrix
from daskw2v.sampling.run import Run
from daskw2v.training.columns.part_task import ColumnsContext, WordRange
from daskw2v.training.devices import trainers_of
from daskw2v.training.start.blocks import rows_per_block

_UNITS = 256  # most units of a vocabulary
UNIT_WORDS = 256  # fewest words of a unit, and what its words are a multiple of


class PartWorker(NamedTuple):
    """The worker that trains a part, and its threads."""

    address: str
    threads: int


@dataclass(frozen=True)
class ColumnsCluster:
    """The workers of a run, and the arguments that all of its tasks share.

    Parameters
    ----------
    client, trainers
        The cluster, and those of its workers that train.
    context
        The arguments that all tasks share.
    workers
        The worker of each part.
    session
        Part of the keys of this client's tasks, which are no other client's.
    """

    client: Client
    trainers: Trainers
    context: ColumnsContext
    workers: tuple[PartWorker, ...]
    session: str


def share_words(client: Client, run: Run, matrix: ContextMatrix, resources: Resources, session: str) -> ColumnsCluster:
    """Share the words among the workers in proportion to their threads, in whole units."""
    n_words, unit = run.vocabulary.size, unit_size(run.vocabulary.size)
    n = -(-n_words // unit)
    trainers = trainers_of(client, run.device)
    workers = trainers.homes()[:n] or [("", 1)]
    homes = [PartWorker(address, min(resources.threads or threads, threads)) for address, threads in workers]
    weights = [worker.threads for worker in homes]
    ends = [n * sum(weights[:k]) // sum(weights) for k in range(len(homes) + 1)]
    words = [WordRange(a * unit, min(n_words, b * unit)) for a, b in pairwise(ends)]
    busy = [number for number, part in enumerate(words) if part.stop > part.start]
    context = ColumnsContext(run, matrix.place, tuple(words[number] for number in busy))
    return ColumnsCluster(client, trainers, context, tuple(homes[number] for number in busy), session)


def unit_size(n_words: int) -> int:
    """Return the number of words of a unit."""
    return -(-max(UNIT_WORDS, -(-n_words // _UNITS)) // UNIT_WORDS) * UNIT_WORDS


def row_block(n_words: int, width: int) -> int:
    """Return the number of rows in a chunk of a table: those of a unit, or of an even part of it if rows are long."""
    unit, most = unit_size(n_words), rows_per_block(width)
    return next(n for n in range(min(unit, most), 0, -1) if unit % n == 0)
