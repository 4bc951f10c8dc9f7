"""Merge rules: how replicas that trained apart become one model again.

`sequential` (default) composes what the replicas changed as if one replica had trained their texts one after the other,
as Maleki, Musuvathi and Mytkowicz (2017, sections 3 and 4) do for linear learners. What a replica changed fades while
the texts after it are trained: along an eigenvector of the curvature, by exp(-rate * value) with each of them. So a row
that a replica hardly touches gets the sum of the changes, and a row that each replica trains to the end gets the last
one's, with the noise of one replica. A mean would have less noise, which turns all rows towards a common direction.

`mean` is the rule of paper 001, section 3.3.

A replica's changes, its differences from the common model, travel in bfloat16, half the bytes: float32 without its
lower 16 bits, rounded to nearest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from daskw2v.cluster.shared_memory import by_fields, room
from daskw2v.config.registry import Registry
from daskw2v.kernels.bfloat16 import from_bfloat16
from daskw2v.kernels.jit import kernel
from daskw2v.kernels.multiply import multiply
from daskw2v.sampling.segments import cut
from daskw2v.training.averaging.curvature import NO_CURVATURE, Curvature
from daskw2v.types import Float32Array, Int32Array, UInt16Array

FAN_IN = 8  # replicas, or sums of them, that one task adds up
_IN_CACHE = 1 << 19  # bytes of rows that are merged at a time


@by_fields
class Delta(NamedTuple):
    """The changes of one replica in a block.

    Parameters
    ----------
    bits
        The differences in bfloat16, shape (n, D) uint16.
    rows
        The rows that these are of, ascending, shape (n,) int32; None for all rows of the block.
    """

    bits: UInt16Array
    rows: Int32Array | None = None

    def within(self, some: slice) -> "Delta":
        """Return the differences of consecutive rows, whose numbers count from the first of them."""
        if self.rows is None:
            return Delta(self.bits[some])
        first, last = np.searchsorted(self.rows, (some.start, some.stop))
        return Delta(self.bits[first:last], self.rows[first:last] - np.int32(some.start))


def delta_of(base: Float32Array, trained: Float32Array) -> tuple[UInt16Array, bool]:
    """Return the changes by training, and whether the trained rows are finite, as `objectives.base.is_finite` does.

    Parameters
    ----------
    base
        Rows before training, shape (rows, D).
    trained
        Rows after it, shape (rows, at least D); columns from D on are padding.

    Returns
    -------
    delta, finite
        The difference as the bits of bfloat16, shape (rows, D) uint16; and the answer.
    """
    delta = room(base.shape, np.uint16)
    return delta, bool(np.isfinite(_subtract(base, trained, delta)))


def dense_delta(delta: Delta, n_rows: int) -> Float32Array:
    """Return a delta of all rows of a block, shape (n_rows, D) float32."""
    if delta.rows is None:
        return from_bfloat16(delta.bits)
    changes = np.zeros((n_rows, delta.bits.shape[1]), np.float32)
    changes[delta.rows] = from_bfloat16(delta.bits)
    return changes


def nearest_bfloat16(values: Float32Array) -> UInt16Array:
    """Return the bits of the nearest numbers in bfloat16, of two the even one, shape (rows, D) uint16."""
    bits = np.empty(values.shape, np.uint16)
    _subtract(np.zeros_like(values), values, bits)
    return bits


@kernel
def _subtract(base: Any, trained: Any, delta: Any) -> Any:
    """Write the differences; return the sum of the squares of the trained rows."""
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


@dataclass(frozen=True)
class Training:
    """How a replica trained some rows between two merges; empty for rules that do not read it.

    Parameters
    ----------
    curvature
        Curvature of the rows' table.
    rates
        Sum of the learning rates of each row's updates, as expected, shape (rows,) float32.
    """

    curvature: Curvature = NO_CURVATURE
    rates: Float32Array = field(default_factory=lambda: NO_CURVATURE.values)

    def within(self, rows: slice) -> "Training":
        """Return the training of some of the rows."""
        return replace(self, rates=self.rates[rows])

    @cached_property
    def fading(self) -> Float32Array:
        """The share of a change that is left when a replica has trained its text, by row and eigenvector, (rows, D)."""
        return np.asarray(np.exp(-self.rates[:, None] * self.curvature.values))


@by_fields
class SummedChanges(NamedTuple):
    """The sum of the changes of consecutive replicas.

    Parameters
    ----------
    total
        In the coordinates of a merge rule, shape (rows, D) float32.
    n
        Number of the replicas.
    """

    total: Float32Array
    n: int


def _add(before: SummedChanges, later: SummedChanges, _: Training) -> Float32Array:
    before.total[:] += later.total
    return before.total


@dataclass(frozen=True, kw_only=True)
class MergeRule:
    """How replicas become one model. A few rows are merged at a time, so each row is merged by itself.

    Parameters
    ----------
    name
        As in Params.
    title
        Short description for `--help`.
    project
        Function from what a replica changed, shape (rows, D) float32, and the curvature of the table to the changes in
        the coordinates of the rule. A rule without it gets an empty `Training`.
    append
        Function from two `SummedChanges`, first those of the replicas whose text comes first, and `Training` to the
        total of both. It may write to the first. By default the sum.
    finish
        Function from the common rows, the `SummedChanges` of all replicas and `Training` to the merged rows.
    """

    name: str
    title: str
    project: Callable[[Float32Array, Curvature], Float32Array] | None = None
    append: Callable[[SummedChanges, SummedChanges, Training], Float32Array] = _add
    finish: Callable[[Float32Array, SummedChanges, Training], Float32Array]


def project_delta(rule: MergeRule, delta: Delta, curvature: Curvature) -> Delta:
    """Return the changes of a replica in the coordinates of a rule."""
    if rule.project is None:
        return delta
    bits = room(delta.bits.shape, np.uint16)
    for some in _parts(bits):
        bits[some] = nearest_bfloat16(rule.project(from_bfloat16(delta.bits[some]), curvature))
    return Delta(bits, delta.rows)


def add_changes(rule: MergeRule, n_rows: int, changes: Sequence[Delta], training: Training) -> SummedChanges:
    """Return the sum of the changes of consecutive replicas in a block, from the projected changes of each."""
    total = np.empty((n_rows, changes[0].bits.shape[1]), np.float32)
    for some in _parts(total):
        total[some] = _sum_within(rule, changes, training, some).total
    return SummedChanges(total, len(changes))


def join_changes(rule: MergeRule, parts: Sequence[SummedChanges], training: Training) -> SummedChanges:
    """Return the changes of several groups of replicas together, group after group."""
    total = np.empty_like(parts[0].total)
    for some in _parts(total):
        joined, of_some = SummedChanges(parts[0].total[some].copy(), parts[0].n), training.within(some)
        for part in parts[1:]:
            later = SummedChanges(part.total[some], part.n)
            joined = SummedChanges(rule.append(joined, later, of_some), joined.n + part.n)
        total[some] = joined.total
    return SummedChanges(total, sum(part.n for part in parts))


def merge_block(rule: MergeRule, base: Float32Array, changes: SummedChanges, training: Training) -> Float32Array:
    """Return a block, shape (rows, D) float32, merged."""
    merged = room(base.shape)
    for some in _parts(base):
        part = SummedChanges(changes.total[some], changes.n)
        merged[some] = rule.finish(base[some], part, training.within(some))
    return merged


def merge_deltas(rule: MergeRule, base: Float32Array, changes: Sequence[Delta], training: Training) -> Float32Array:
    """Return a block merged with the projected changes of each replica, some rows at a time to stay in a cache."""
    merged = room(base.shape)
    for some in _parts(base):
        total = _sum_within(rule, changes, training, some)
        merged[some] = rule.finish(base[some], total, training.within(some))
    return merged


def _parts(rows: Float32Array) -> list[slice]:
    return [slice(a, b) for a, b in cut(0, len(rows), max(1, _IN_CACHE // (4 * rows.shape[1])))]


def _sum_within(rule: MergeRule, changes: Sequence[Delta], training: Training, some: slice) -> SummedChanges:
    """Return the sum of the changes of replicas in some rows."""
    part, n_rows = training.within(some), some.stop - some.start
    total = dense_delta(changes[0].within(some), n_rows)
    for n, delta in enumerate(changes[1:], 1):
        total = rule.append(SummedChanges(total, n), SummedChanges(dense_delta(delta.within(some), n_rows), 1), part)
    return SummedChanges(total, len(changes))


def _in_eigenvectors(change: Float32Array, curvature: Curvature) -> Float32Array:
    return multiply(change, curvature.vectors)


def _after(before: SummedChanges, later: SummedChanges, training: Training) -> Float32Array:
    faded = before.total
    faded *= training.fading if later.n == 1 else training.fading**later.n
    faded += later.total
    return faded


def _in_columns(base: Float32Array, changes: SummedChanges, training: Training) -> Float32Array:
    back = np.ascontiguousarray(training.curvature.vectors.T)
    return np.asarray(base + multiply(changes.total, back))


_SEQUENTIAL = MergeRule(
    name="sequential", title="as if one replica had trained all texts, one after the other",
    project=_in_eigenvectors, append=_after, finish=_in_columns,
)  # fmt: skip
_MEAN = MergeRule(
    name="mean", title="the mean over all replicas",
    finish=lambda base, changes, _: base + changes.total / np.float32(changes.n),
)  # fmt: skip

MERGE_RULES = Registry("merge", "daskw2v.merge_rules", MergeRule, {rule.name: rule for rule in (_SEQUENTIAL, _MEAN)})


def find_merge_rule(name: str | None) -> MergeRule:
    """Return the merge rule of that name, by default `sequential`, or raise a ParameterError that lists them."""
    return MERGE_RULES.find(_SEQUENTIAL.name if name is None else name)
