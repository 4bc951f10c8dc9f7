"""The text of a replica in a round, and the rows that the text reaches: where these are few, it pulls these alone."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from daskw2v.cluster.shared_memory import by_fields, share
from daskw2v.features.settings import FEATURES
from daskw2v.objectives.registry import find_objective
from daskw2v.sampling.reader import open_text
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import cut_range
from daskw2v.training.averaging.round_schedule import AveragingRound, ReplicaWork
from daskw2v.training.devices import SomeRows, find_device, read_piece
from daskw2v.training.loop.strategy import in_background
from daskw2v.training.start.blocks import TableBlock
from daskw2v.training.start.features import features_of, tables_of
from daskw2v.training.start.initial_rows import prepared_of
from daskw2v.types import BoolArray, Float32Array, Int32Array, Int64Array

FEW = 1.0  # positions a row: with more text in a replica's round, it reaches most rows
MOST = 0.5  # of a block: where a replica reaches more, it takes the whole block


@by_fields
class Reached(NamedTuple):
    """The rows that a replica reaches, block by block.

    Parameters
    ----------
    rows
        Numbers of rows in their blocks, one block after the other, shape (n,) int32; none of a block that is taken
        whole.
    bounds
        Where the rows of each block begin and end among them, shape (blocks + 1,) int64.
    whole
        Whether a block is taken whole, shape (blocks,) bool.
    """

    rows: Int32Array
    bounds: Int64Array
    whole: BoolArray

    def of(self, block: int) -> Int32Array | None:
        """Return the rows of a block, or None for all of them."""
        return None if self.whole[block] else self.rows[self.bounds[block] : self.bounds[block + 1]]


def pulls(run: Run, this: AveragingRound) -> bool:
    """Return whether the replicas of a round pull rows. The vectors are the same if they take whole blocks."""
    most = (this.stop - this.start) / this.n_replicas
    known = find_objective(run.params.objective.name).reached is not None
    return known and this.n_replicas > 1 and most < FEW * run.vocabulary.size


def reach(run: Run, works: Sequence[ReplicaWork], blocks: Sequence[TableBlock]) -> Reached:
    """Task: find the rows that a replica's work of a round reaches; its text is read for it once more."""
    objective = find_objective(run.params.objective.name)
    assert objective.reached is not None  # or nothing is pulled
    marks = {table: np.zeros(rows, np.bool_) for table, rows in tables_of(run).items()}
    positions = find_device(run.device).replica_trainer.positions
    for load in (load for work in works for load in ReplicaText(run, work, positions, read_piece).loads()):
        piece = load()
        objective.reached(prepared_of(run), piece.segment, piece.first, piece.last, piece.epoch, marks)
    features = features_of(run)
    if features is not None:
        marks[FEATURES][features.select(np.flatnonzero(marks["input"])).rows] = True
    rows = [np.flatnonzero(marks[block.table][block.start : block.stop]).astype(np.int32) for block in blocks]
    whole = [len(reached) > MOST * (block.stop - block.start) for reached, block in zip(rows, blocks, strict=True)]
    pulled_rows = [reached[:0] if is_whole else reached for reached, is_whole in zip(rows, whole, strict=True)]
    return Reached(share(np.concatenate(pulled_rows)), np.cumsum([0, *map(len, pulled_rows)]), np.array(whole))


def pull(rows: Float32Array, reached: Reached, block: int) -> Float32Array:
    """Task: take the rows of a block that a replica reaches."""
    pulled_rows = reached.of(block)
    return rows if pulled_rows is None else share(np.asarray(rows)[pulled_rows])


def pulled(reached: Reached, blocks: Sequence[TableBlock], rows: Sequence[Any]) -> list[Float32Array | SomeRows]:
    """Return the blocks that a replica trains, made of the rows that it pulled."""
    return [
        part if (numbers := reached.of(n)) is None else SomeRows(block.stop - block.start, numbers, part)
        for n, (block, part) in enumerate(zip(blocks, rows, strict=True))
    ]


class ReplicaText:
    """The text of a replica's work, to be read once.

    Parameters
    ----------
    run, work
        The run, and the work of the replica.
    length
        Positions of a piece, at most.
    load
        Function from the run, an epoch, the positions and the learning rate to a piece.
    """

    def __init__(self, run: Run, work: ReplicaWork, length: int, load: Callable[..., Any]) -> None:
        self.work, self._run, self._load = work, run, load
        self._loads = deque(self._pieces(length))

    def loads(self) -> Iterator[Callable[[], Any]]:
        """Yield the function that loads each piece, in order; a piece that was read ahead is held no longer."""
        while self._loads:
            yield self._loads.popleft()

    def read_ahead(self, pieces: int) -> None:
        """Begin to load the first pieces."""
        for i in range(min(pieces, len(self._loads))):
            self._loads[i] = in_background(self._loads[i]).result

    def _pieces(self, length: int) -> Iterator[Callable[[], Any]]:
        for epoch, start, stop, rate in self.work.pieces(open_text(self._run).length):
            for a, b in cut_range(start, stop, length):
                yield partial(self._load, self._run, epoch, a, b, rate)
