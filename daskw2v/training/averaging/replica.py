"""A replica in the middle of a round: its tables, which stay on its worker from step to step."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from daskw2v.objectives.registry import find_objective
from daskw2v.sampling.run import Run
from daskw2v.training.averaging.common_model import BlockKey, common_model
from daskw2v.training.averaging.device_delta import Change
from daskw2v.training.averaging.merge import MergedBlock, rows_of
from daskw2v.training.averaging.pulling import Reached, pulled
from daskw2v.training.averaging.replica_text import ReplicaText
from daskw2v.training.averaging.round_schedule import ReplicaWork
from daskw2v.training.blocks import TableBlock
from daskw2v.training.devices import TextTotals, Threads, find_device
from daskw2v.training.devices.gpu_rows import GpuRows
from daskw2v.training.features import features_of
from daskw2v.training.initial_rows import frozen_rows
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
        self._run = run
        parts = [rows_of(given[number]) for number in range(len(blocks))]
        tables: dict[str, list[Any]] = {}
        self._places: list[BlockKey] = []
        for block, part in zip(blocks, parts if reached is None else pulled(reached, blocks, parts), strict=True):
            of_table = tables.setdefault(block.table, [])
            self._places.append((block.table, len(of_table)))
            of_table.append(part)
        objective = find_objective(run.params.objective)
        self._trainer = find_device(run.device).replica_trainer(
            objective,
            run.params,
            prepared_of(run),
            partial(_touched, run),
            tables,
            threads,
            frozen_rows(run),
            features_of(run),
        )
        self._coming: ReplicaText | None = None
        self._common = common_model(run.params, self._trainer, self._places, given, reached)
        self.finite = True

    def give(self, rows: Mapping[int, Float32Array]) -> None:
        """Replace the rows of some blocks, by number."""
        self._common.give(rows)

    def exchange(self, changes: Sequence[Mapping[int, Change]]) -> None:
        """Merge some blocks as all replicas do, each for itself, given what each of them changed."""
        self._common.merge(changes)

    def merged(self, numbers: Iterable[int]) -> dict[int, MergedBlock]:
        """Return some blocks as they were merged last."""
        return self._common.merged(numbers)

    def begin(self, work: ReplicaWork) -> Callable[[], TextTotals]:
        """Begin to train a step; return what waits for its end, and returns its totals."""
        text, self._coming = self._coming, None
        if text is None or text.work != work:
            text = self._text(work)
        return self._trainer.begin(text.loads())

    def read_ahead(self, work: ReplicaWork) -> None:
        """Begin to read what the next step trains first: its worker waits for merged rows meanwhile."""
        self._coming = self._text(work)
        self._coming.read_ahead(self._trainer.pieces_ahead)

    def _text(self, work: ReplicaWork) -> ReplicaText:
        return ReplicaText(self._run, work, self._trainer.positions, self._trainer.load)

    def changes(self, numbers: Iterable[int]) -> Mapping[int, Change]:
        """Return what it changed in some blocks since it was given them."""
        found, self.finite = self._common.changes(numbers)
        return found

    def take(self) -> list[Float32Array | GpuRows]:
        """Return the rows of each block, shapes (rows, D), and release the tables."""
        taken, self.finite = self._trainer.results()
        return [taken[table][place] for table, place in self._places]

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
        What was done in each step of its task.
    replica
        The replica, if there is another step.
    """

    def __init__(self, totals: Sequence[TaskTotals], replica: Replica | None = None) -> None:
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
