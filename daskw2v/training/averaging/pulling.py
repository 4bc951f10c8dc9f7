"""The text of a replica in a round, and the rows that the text reaches.

Where these are few, the replica pulls them alone: only they are sent to its worker.
"""

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
from daskw2v.training.loop.strategy import run_in_background
from daskw2v.training.start.blocks import TableBlock
from daskw2v.training.start.features import count_table_rows, load_features
from daskw2v.training.start.initial_rows import get_prepared
from daskw2v.types import BoolArray, Float32Array, Int32Array, Int64Array

FEW_POSITIONS = 1.0  # of a replica's round, for each word of the vocabulary: with more, a replica reaches most rows
MAX_PULLED_SHARE = 0.5  # of the rows of a block: where a replica reaches more, it gets the complete block


@by_fields
class ReachedRows(NamedTuple):
    """The rows that a replica reaches, block by block.

    Parameters
    ----------
    rows
        Indices of rows in their block, one block after the other, shape (n,) int32; none of a block that is complete.
    bounds
        Bounds of each block in `rows`, shape (blocks + 1,) int64.
    is_complete
        Whether a replica gets all rows of a block, shape (blocks,) bool.
    """

    rows: Int32Array
    bounds: Int64Array
    is_complete: BoolArray

    def rows_of_block(self, block: int) -> Int32Array | None:
        """Return the indices of the reached rows of the block of this number, or None for all rows."""
        return None if self.is_complete[block] else self.rows[self.bounds[block] : self.bounds[block + 1]]


def pulls_rows(run: Run, current: AveragingRound) -> bool:
    """Return whether the replicas of a round get only the rows that they reach; vectors do not depend on that."""
    positions = (current.stop - current.start) / current.n_replicas
    is_known = find_objective(run.params.objective.name).reached is not None
    return is_known and current.n_replicas > 1 and positions < FEW_POSITIONS * run.vocabulary.size


def find_reached_rows(run: Run, works: Sequence[ReplicaWork], blocks: Sequence[TableBlock]) -> ReachedRows:
    """Task: find the rows of blocks that a replica's work in a round reaches, by reading its text once more."""
    objective = find_objective(run.params.objective.name)
    assert objective.reached is not None  # or nothing is pulled
    marks = {table: np.zeros(rows, np.bool_) for table, rows in count_table_rows(run).items()}
    positions = find_device(run.device).replica_trainer.positions
    for load in (load for work in works for load in ReplicaText(run, work, positions, read_piece).loads()):
        piece = load()
        objective.reached(get_prepared(run), piece.segment, piece.first, piece.last, piece.epoch, marks)
    features = load_features(run)
    if features is not None:
        marks[FEATURES][features.select(np.flatnonzero(marks["input"])).rows] = True
    rows, is_complete = list[Int32Array](), list[bool]()
    for block in blocks:
        reached = np.flatnonzero(marks[block.table][block.start : block.stop]).astype(np.int32)
        is_complete.append(len(reached) > MAX_PULLED_SHARE * (block.stop - block.start))
        rows.append(reached[:0] if is_complete[-1] else reached)
    return ReachedRows(share(np.concatenate(rows)), np.cumsum([0, *map(len, rows)]), np.array(is_complete))


def pull_rows(rows: Float32Array, reached: ReachedRows, block: int) -> Float32Array:
    """Task: return the rows of a block that a replica gets, shape (n, D).

    `rows` are all rows of the block, `block` is its number.
    """
    indices = reached.rows_of_block(block)
    return rows if indices is None else share(np.asarray(rows)[indices])


def make_blocks(
    reached: ReachedRows, blocks: Sequence[TableBlock], rows: Sequence[Any]
) -> list[Float32Array | SomeRows]:
    """Return what a replica trains of each block, all rows or `SomeRows`, from the results of `pull_rows` for all."""
    return [
        part if (indices := reached.rows_of_block(n)) is None else SomeRows(block.stop - block.start, indices, part)
        for n, (block, part) in enumerate(zip(blocks, rows, strict=True))
    ]


class ReplicaText:
    """The text of a replica's work, in pieces, to be read once.

    Parameters
    ----------
    run, work
        The run, and the work of the replica.
    length
        Positions of a piece, at most.
    load_piece
        Function from the run, an epoch, the start and (exclusive) stop position and the `Rate` to a piece.
    """

    def __init__(self, run: Run, work: ReplicaWork, length: int, load_piece: Callable[..., Any]) -> None:
        self.work, self._run, self._load_piece = work, run, load_piece
        self._loads = deque(self._pieces(length))

    def loads(self) -> Iterator[Callable[[], Any]]:
        """Yield, for each piece in order, the function that returns it, and release the function."""
        while self._loads:
            yield self._loads.popleft()

    def read_ahead(self, n_pieces: int) -> None:
        """Begin to load the first `n_pieces` pieces in threads in the background."""
        for i in range(min(n_pieces, len(self._loads))):
            self._loads[i] = run_in_background(self._loads[i]).result

    def _pieces(self, length: int) -> Iterator[Callable[[], Any]]:
        """Yield, for each piece of at most `length` positions, the function that loads it."""
        for epoch, start, stop, rate in self.work.split_by_epoch(open_text(self._run).length):
            for a, b in cut_range(start, stop, length):
                yield partial(self._load_piece, self._run, epoch, a, b, rate)
