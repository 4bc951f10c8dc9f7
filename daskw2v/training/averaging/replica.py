"""A replica in the middle of a round: its tables, which stay on its worker from step to step."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from daskw2v.cluster.shared_memory import share
from daskw2v.kernels import buffers
from daskw2v.objectives.base import is_finite
from daskw2v.objectives.registry import find_objective
from daskw2v.sampling.run import Run
from daskw2v.training.averaging.deltas import Delta, delta_of
from daskw2v.training.averaging.merge import MergedBlock, find_merge_rule, merge_deltas, merged_block
from daskw2v.training.averaging.pulling import Reached, pulled
from daskw2v.training.averaging.replica_text import ReplicaText
from daskw2v.training.averaging.round_schedule import ReplicaWork
from daskw2v.training.blocks import TableBlock
from daskw2v.training.devices import Threads, find_device
from daskw2v.training.prepared import prepared_of
from daskw2v.training.totals import TaskTotals
from daskw2v.types import Float32Array, Float64Array


class Replica:
    """One replica of the model.

    Parameters
    ----------
    run, threads
        What is trained, and how.
    blocks
        The blocks of the model.
    reached
        Which rows it has; None for all.
    given
        The rows of each block, by number, shape (rows, D) float32; with their velocity where it merges the block.
    """

    def __init__(
        self,
        run: Run,
        threads: Threads,
        blocks: Sequence[TableBlock],
        reached: Reached | None,
        given: Mapping[int, Float32Array | MergedBlock],
    ) -> None:
        self._run, self._reached = run, reached
        self._known = {number: merged_block(block) for number, block in given.items()}  # of the merged model
        self._exchanged = set[int]()  # blocks whose merged rows are its own memory
        parts = [self._known[number].rows for number in range(len(blocks))]
        tables: dict[str, list[Any]] = {}
        self._places: list[tuple[str, int]] = []  # of each block: its table, and its number there
        for block, part in zip(blocks, parts if reached is None else pulled(reached, blocks, parts), strict=True):
            of_table = tables.setdefault(block.table, [])
            self._places.append((block.table, len(of_table)))
            of_table.append(part)
        self._numbers = {place: number for number, place in enumerate(self._places)}
        objective = find_objective(run.params.objective)
        self._trainer = find_device(run.device).replica_trainer(
            objective, run.params, prepared_of(run), partial(_touched, run), tables, threads
        )
        self._coming: ReplicaText | None = None
        self.finite = True

    def give(self, rows: Mapping[int, Float32Array]) -> None:
        """Replace the rows of some blocks, by number."""
        self._known |= {number: MergedBlock(part, None) for number, part in rows.items()}
        self._copy(rows)

    def exchange(self, changes: Sequence[Mapping[int, Delta]]) -> None:
        """Merge some blocks as all replicas do, each for itself, given what each of them changed."""
        rule = find_merge_rule(self._run.params.merge)
        for number in changes[0]:
            before, deltas = self._known[number], [of_replica[number] for of_replica in changes]
            into = before if number in self._exchanged else None
            self._known[number] = merge_deltas(rule, before, deltas, into)
            self._exchanged.add(number)
        self._copy(changes[0])

    def _copy(self, numbers: Iterable[int]) -> None:
        """Copy the merged rows of some blocks to its tables."""

        def replace(table: str, place: int, own: Float32Array) -> None:
            own[:, : self._run.params.vector_size] = self._known[self._numbers[table, place]].rows

        self._trainer.visit([self._places[number] for number in numbers], replace, write=True)

    def merged(self, numbers: Iterable[int]) -> dict[int, MergedBlock]:
        """Return some blocks as they were merged last."""
        return {number: self._known[number].shared() for number in numbers}

    def train(self, work: ReplicaWork) -> tuple[int, float, int]:
        """Train a step; return the number of examples, their summed loss, and the number of corpus words."""
        text, self._coming = self._coming, None
        if text is None or text.work != work:
            text = ReplicaText(self._run, work, self._trainer.positions)
        return *self._trainer.train(text.loads()), text.words

    def read_ahead(self, work: ReplicaWork) -> None:
        """Begin to read what the next step trains first: its worker waits for merged rows meanwhile."""
        self._coming = ReplicaText(self._run, work, self._trainer.positions)
        self._coming.read_ahead(self._trainer.pieces_ahead)

    def changes(self, numbers: Iterable[int]) -> dict[int, Delta]:
        """Return what it changed in some blocks since it was given them."""

        def change(table: str, place: int, own: Float32Array) -> tuple[int, Delta, bool]:
            number = self._numbers[table, place]
            bits, finite = delta_of(self._known[number].rows, own)
            return number, Delta(share(bits), None if self._reached is None else self._reached.of(number)), finite

        found = self._trainer.visit([self._places[number] for number in numbers], change)
        self.finite = all(finite for _, _, finite in found)
        return {number: delta for number, delta, _ in found}

    def take(self) -> list[Float32Array]:
        """Return the rows of each block, shapes (rows, D), and release the tables."""
        width = self._run.params.vector_size

        def take(table: str, place: int, own: Float32Array) -> Float32Array:
            part = buffers.here.table((len(own), width))
            part[:] = own[:, :width]
            return share(part)

        taken = self._trainer.take_by(take)
        rows = [taken[table][place] for table, place in self._places]
        self.finite = all(is_finite(part) for part in rows)
        return rows

    @property
    def nbytes(self) -> int:
        """Bytes of its tables."""
        return self._trainer.nbytes


class ReplicaState:
    """What a step leaves: its totals; and the replica for the next step, which waits on its worker.

    Whoever takes the replica trains it, so it can be taken once. It is not sent: what arrives elsewhere, or comes back
    from a disk, has none.

    Parameters
    ----------
    totals
        What was done in the step.
    replica
        The replica, if there is another step.
    """

    def __init__(self, totals: TaskTotals, replica: Replica | None = None) -> None:
        self.totals = totals
        self._waiting = deque([] if replica is None else [replica])

    def take(self) -> Replica | None:
        """Return the replica, or None if it is not there."""
        try:
            return self._waiting.pop()
        except IndexError:
            return None

    def __reduce__(self) -> tuple[Any, ...]:
        return ReplicaState, (self.totals,)

    def __sizeof__(self) -> int:  # Dask runs a task where most of what it takes is
        return object.__sizeof__(self) + sum(replica.nbytes for replica in list(self._waiting))


@lru_cache(maxsize=2)
def _touched(run: Run) -> dict[str, Float64Array]:
    """Return how likely a window touches each row. Only a cache, as `prepared_of` is."""
    touched = find_objective(run.params.objective).touched
    assert touched is not None  # all objectives have it that train windows
    return touched(prepared_of(run), run.vocabulary.read_counts())
