"""Merging of replicas that were trained apart: merge rules, and the tasks that merge a block.

`sequential` (default) composes the changes of the replicas as if one replica had trained their texts one after the
other, as Maleki, Musuvathi and Mytkowicz (2017, sections 3 and 4) do for linear learners. The changes of a replica fade
while the later texts are trained: along an eigenvector of the curvature, by exp(-rate * value) with each text. So a row
that a replica hardly touches gets the sum of the changes, and a row that each replica trains to the end gets the change
of the last replica, with the noise of one replica. A mean would have less noise, which turns all rows towards a common
direction. Eigenvectors along which next to nothing fades are left out: nine of ten of them, on real text.

`mean` is the rule of BlazingText (Gupta and Khare 2017, section 3.3).

A replica's changes, its differences from the common model, travel in bfloat16, half the bytes: float32 without its
lower 16 bits, rounded to nearest.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from distributed import Client, Future

from daskw2v.cluster.shared_memory import allocate_shared, by_fields, share
from daskw2v.config.registry import Registry
from daskw2v.kernels.jit import inline, kernel
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import cut_range
from daskw2v.training.averaging.curvature import NO_CURVATURE, Curvature, kept_share, touches_per_window
from daskw2v.training.averaging.settings import Averaging
from daskw2v.training.devices import DeviceRows
from daskw2v.training.loop.strategy import TaskTotals
from daskw2v.training.start.blocks import TableBlock
from daskw2v.types import Float32Array, Int32Array, UInt16Array

FAN_IN = 8  # replicas, or sums of them, that one task adds up
_IN_CACHE = 1 << 19  # bytes of rows that are merged at a time
_TOGETHER = 8  # rows that are read from the first cache for one eigenvector after the other
_NEGLIGIBLE = 1 / 8  # share of a change that may fade along an eigenvector that is left out


@by_fields
class Delta(NamedTuple):
    """The changes of one replica in the rows of a block.

    Parameters
    ----------
    bits
        The changes as bits of bfloat16, shape (len(rows), D) uint16.
    rows
        Indices of the changed rows in the block, ascending, int32; None for all rows of the block.
    """

    bits: UInt16Array
    rows: Int32Array | None = None

    @property
    def n(self) -> int:
        """Number of replicas whose changes these are: 1. It corresponds to `SummedChanges.n`."""
        return 1

    def add_to(self, total: Float32Array, rows: slice) -> None:
        """Add the changes of a slice of the block's rows, with start and stop, to a sum of them, float32."""
        if self.rows is None:
            _add_bits(total, self.bits[rows])
            return
        first, last = np.searchsorted(self.rows, (rows.start, rows.stop))
        _add_bits_to(total, self.bits[first:last], self.rows[first:last], rows.start)


@kernel
def _add_bits(total: Any, changes: Any) -> None:
    """Add changes, as bits of bfloat16, to a total; both have shape (rows, D)."""
    values = np.empty(total.shape[1], np.float32)
    for i in range(total.shape[0]):
        _add_row(total, i, changes, i, values, values.view(np.uint32))


@kernel
def _add_bits_to(total: Any, changes: Any, rows: Any, start: Any) -> None:
    """Add changes of some rows, as bits of bfloat16, to a total of the rows from `start` on."""
    values = np.empty(total.shape[1], np.float32)
    for i in range(len(rows)):
        _add_row(total, rows[i] - start, changes, i, values, values.view(np.uint32))


@inline
def _add_row(total: Any, row: Any, changes: Any, i: Any, values: Any, bits: Any) -> None:
    """Add row i of changes to a row of a total; `bits` are those of `values`, which are overwritten."""
    for k in range(total.shape[1]):
        bits[k] = np.uint32(changes[i, k]) << np.uint32(16)
    for k in range(total.shape[1]):
        total[row, k] += values[k]


def subtract_rows(base: Float32Array, trained: Float32Array) -> tuple[UInt16Array, bool]:
    """Return trained rows minus the rows before training, in bfloat16, and whether the trained rows are finite.

    Parameters
    ----------
    base
        Rows before training, shape (rows, D).
    trained
        Rows after training, shape (rows, at least D); columns from D on are padding.

    Returns
    -------
    delta, finite
        The differences as bits of bfloat16, shape (rows, D) uint16; and whether the trained rows are finite, as
        `objectives.base.is_finite` answers.
    """
    delta = allocate_shared(base.shape, np.uint16)
    return delta, bool(np.isfinite(_subtract(base, trained, delta)))


@kernel
def _subtract(base: Any, trained: Any, delta: Any) -> Any:
    """Write trained - base to `delta`, as bits of bfloat16; return the sum of the squares of the trained rows."""
    squares = np.float32(0)
    row = np.empty(base.shape[1], np.float32)
    bits = row.view(np.uint32)
    for i in range(base.shape[0]):
        for k in range(base.shape[1]):
            squares += trained[i, k] * trained[i, k]
            row[k] = trained[i, k] - base[i, k]
        for k in range(base.shape[1]):
            to_even = np.uint32(0x7FFF) + ((bits[k] >> np.uint32(16)) & np.uint32(1))
            delta[i, k] = (bits[k] + to_even) >> np.uint32(16)
    return squares


@by_fields
class ReplicaResult(NamedTuple):
    """The result of a task that trains a replica.

    Parameters
    ----------
    changes
        The replica's changes of each block that is merged, by the block's number.
    rows
        The rows of each block, shapes (rows, D) float32, at the end of a round of one replica; else empty.
    totals
        The totals of the last `n_last` steps, as in `train_replica`.
    """

    changes: Mapping[int, Delta]
    rows: Sequence[Float32Array | DeviceRows]
    totals: Sequence[TaskTotals]


@dataclass(frozen=True)
class Training:
    """The training of rows by replicas between two merges; empty for rules that do not read it.

    Parameters
    ----------
    curvature
        Curvature of the rows' table.
    rates
        Expected sum of the learning rates of each row's updates by one replica, shape (rows,) float32.
    n_replicas
        Number of replicas that are merged.
    """

    curvature: Curvature = NO_CURVATURE
    rates: Float32Array = field(default_factory=lambda: NO_CURVATURE.values)
    n_replicas: int = 1

    def slice_rows(self, rows: slice) -> "Training":
        """Return the training of a slice of the rows."""
        return replace(self, rates=self.rates[rows])

    def fade(self, changes: Float32Array, n_later: int) -> None:
        """Fade changes of the rows, shape (rows, D) float32, in place, by the texts of `n_later` replicas.

        Eigenvectors are left out along which the first replica's changes lose less than `_NEGLIGIBLE` of their size
        until all replicas are merged.
        """
        fastest = self.n_replicas * self.rates.max(initial=0)
        some = slice(int(np.searchsorted(fastest * self.curvature.values, _NEGLIGIBLE)), None)
        values, vectors = self.curvature.values[some], np.ascontiguousarray(self.curvature.vectors.T[some])
        if len(values):
            _add_shares(changes, vectors, np.expm1((-n_later * self.rates)[:, None] * values))


@kernel
def _add_shares(rows: Any, vectors: Any, shares: Any) -> None:
    """Add to each row a share of its part along each of some orthonormal vectors.

    Shapes are (rows, D), (vectors, D) and (rows, vectors), all float32.
    """
    for first in range(0, rows.shape[0], _TOGETHER):
        for k in range(vectors.shape[0]):
            for i in range(first, min(first + _TOGETHER, rows.shape[0])):
                length = np.float32(0)
                for d in range(vectors.shape[1]):
                    length += rows[i, d] * vectors[k, d]
                length *= shares[i, k]
                for d in range(vectors.shape[1]):
                    rows[i, d] += length * vectors[k, d]


@by_fields
class SummedChanges(NamedTuple):
    """The sum of the changes of consecutive replicas.

    Parameters
    ----------
    total
        The sum, shape (rows, D) float32: of `sequential`, of changes that faded.
    n
        Number of replicas.
    """

    total: Float32Array
    n: int

    def add_to(self, total: Float32Array, rows: slice) -> None:
        """Add the changes of a slice of the rows to a sum of them, float32."""
        total += self.total[rows]


ReplicaChanges: TypeAlias = Delta | SummedChanges


@dataclass(frozen=True, kw_only=True)
class MergeRule:
    """A rule that merges replicas into one model. It gets a few rows at a time, so it merges each row by itself.

    Parameters
    ----------
    name
        As `merge` of Params.
    title
        Short description for `--help`.
    fade
        Function that changes the sum of the changes of replicas, shape (rows, D) float32, in place, before the changes
        of later replicas are added. It gets `Training`, the sum and the number of later replicas. A rule without `fade`
        gets an empty `Training`.
    finish
        Function from the common rows, the `SummedChanges` of all replicas and `Training` to the merged rows. It may
        overwrite the sum.
    """

    name: str
    title: str
    fade: Callable[[Training, Float32Array, int], None] | None = None
    finish: Callable[[Float32Array, SummedChanges, Training], Float32Array]


def add_changes(
    rule: MergeRule, shape: tuple[int, int], changes: Sequence[ReplicaChanges], training: Training
) -> SummedChanges:
    """Return the sum of the changes of consecutive replicas, or of groups of replicas, in a block.

    `shape` is the block's, (rows, D).
    """
    total = np.zeros(shape, np.float32)
    for rows in _cache_slices(total):
        _add_slice(rule, changes, training.slice_rows(rows), rows, total[rows])
    return SummedChanges(total, sum(part.n for part in changes))


def merge_block(
    rule: MergeRule, base: Float32Array, changes: Sequence[ReplicaChanges], training: Training
) -> Float32Array:
    """Return the merged rows of a block, shape (rows, D) float32.

    Parameters
    ----------
    rule
        The merge rule.
    base
        The block's rows before training, shape (rows, D) float32.
    changes
        The changes of all replicas, or of groups of them, in their order.
    training
        The training of the block's rows.
    """
    merged, n = allocate_shared(base.shape), sum(part.n for part in changes)
    for rows in _cache_slices(base):
        part, total = training.slice_rows(rows), merged[rows]
        total[:] = 0
        _add_slice(rule, changes, part, rows, total)
        merged[rows] = rule.finish(base[rows], SummedChanges(total, n), part)
    return merged


def _cache_slices(rows: Float32Array) -> list[slice]:
    """Return consecutive slices that cover all rows, each of so few rows that a cache holds them."""
    return [slice(a, b) for a, b in cut_range(0, len(rows), max(1, _IN_CACHE // (4 * rows.shape[1])))]


def _add_slice(
    rule: MergeRule, changes: Sequence[ReplicaChanges], training: Training, rows: slice, total: Float32Array
) -> None:
    """Add the changes of all replicas in a slice of the rows to zeros; `training` is that of the slice."""
    for i, part in enumerate(changes):
        if i and rule.fade is not None:
            rule.fade(training, total, part.n)
        part.add_to(total, rows)


def _finish_sequential(base: Float32Array, changes: SummedChanges, _: Training) -> Float32Array:
    """Return the common rows plus the changes."""
    changes.total[:] += base
    return changes.total


def _finish_mean(base: Float32Array, changes: SummedChanges, _: Training) -> Float32Array:
    """Return the common rows plus the mean of the changes of all replicas."""
    return base + changes.total / np.float32(changes.n)


_SEQUENTIAL = MergeRule(
    name="sequential",
    title="as if one replica had trained all texts, one after the other",
    fade=Training.fade,
    finish=_finish_sequential,
)
_MEAN = MergeRule(name="mean", title="the mean over all replicas", finish=_finish_mean)

MERGE_RULES = Registry("merge", "daskw2v.merge_rules", MergeRule, {rule.name: rule for rule in (_SEQUENTIAL, _MEAN)})


def find_merge_rule(name: str | None) -> MergeRule:
    """Return the merge rule of this name, `sequential` for None, or raise a ParameterError that lists all names."""
    return MERGE_RULES.find(_SEQUENTIAL.name if name is None else name)


Curvatures: TypeAlias = Mapping[str, Curvature]  # of each table; empty for rules that do not need it


class BlockTraining(NamedTuple):
    """The training of a block since it was merged last, as each replica did it.

    Parameters
    ----------
    run, block
        The run, and the block.
    rate
        Sum of the learning rates over the positions that a replica trained.
    """

    run: Run
    block: TableBlock
    rate: float

    @property
    def rule(self) -> MergeRule:
        """The merge rule of the run's Params, by which the replicas' rows of this block become one."""
        return find_merge_rule(Averaging.of(self.run.params).merge)

    def row_training(self, curvatures: Curvatures) -> Training:
        """Return the training of the block's rows, from the curvature of each table; empty without curvatures."""
        if not curvatures:
            return Training()
        touched = touches_per_window(self.run)[self.block.table][self.block.start : self.block.stop]
        rates = (self.rate * kept_share(self.run) * touched).astype(np.float32)
        return Training(curvatures[self.block.table], rates, Averaging.of(self.run.params).replicas)


def submit_merge(
    client: Client,
    training: BlockTraining,
    curvatures: Future | Curvatures,
    before: Future,
    number: int,
    trained: Sequence[Future],
    key: str,
) -> Future:
    """Submit the merging of a block; return the future of the merged rows.

    The shape of the tree of tasks depends on the number of replicas alone.

    Parameters
    ----------
    client
        The cluster.
    training
        The training of the block by each replica.
    curvatures
        `Curvatures`, or the future of it.
    before
        Future of the block's rows before the training.
    number
        Number of the block.
    trained
        Futures of `ReplicaResult`, of each replica.
    key
        Part of the tasks' keys.
    """
    parts = [client.submit(_pick_changes, replica, number, key=f"change-{replica.key}-{number}") for replica in trained]
    level = 0
    while len(parts) > FAN_IN:
        groups = range(0, len(parts), FAN_IN)
        parts = [
            client.submit(_sum_changes, training, curvatures, *parts[i : i + FAN_IN], key=f"changes-{key}-{level}-{i}")
            for i in groups
        ]
        level += 1
    return client.submit(_merge_changes, training, curvatures, before, *parts, key=f"merge-{key}")


def _pick_changes(trained: ReplicaResult, number: int) -> Delta:
    """Task: return a replica's changes of the block of this number."""
    return trained.changes[number]


def _sum_changes(training: BlockTraining, curvatures: Curvatures, *changes: ReplicaChanges) -> SummedChanges:
    """Task: return the sum of the changes of consecutive replicas, or of groups of replicas, in a block."""
    shape = training.block.stop - training.block.start, training.run.params.vector_size
    added = add_changes(training.rule, shape, changes, training.row_training(curvatures))
    return added._replace(total=share(added.total))


def _merge_changes(
    training: BlockTraining, curvatures: Curvatures, before: Float32Array, *changes: ReplicaChanges
) -> Float32Array:
    """Task: return the rows of a block merged with the changes of all replicas, shape (rows, D)."""
    return share(merge_block(training.rule, np.asarray(before), changes, training.row_training(curvatures)))
