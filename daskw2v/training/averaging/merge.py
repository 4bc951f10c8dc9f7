"""Merge rules: how replicas that trained apart become one model again.

A rule is a small value: how replicas' deltas are summed, and how the sum changes the model. Figures on 17 million
words with 8 replicas (quality relative to one replica): the plain mean ruins the vectors, since each replica
saw an eighth of the text and the mean undoes its progress; outer momentum with factor 1 - 1/N makes the long-run
step N times the mean, which is what N replicas' worth of text calls for, and brings nearly all of it back.
`python -m benchmarks.quality` prints the figures of this package.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from daskw2v.cluster.shared_memory import by_fields, room, share
from daskw2v.config.registry import Registry
from daskw2v.kernels import buffers
from daskw2v.kernels.cuda import load
from daskw2v.kernels.jit import kernel
from daskw2v.sampling.segments import cut
from daskw2v.training.averaging.deltas import Delta, Deltas, add_deltas
from daskw2v.types import Float32Array

EXCHANGED = 3  # replicas that merge for themselves, at most: where more exchange what they changed, more is sent
FAN_IN = 8  # replicas, or sums of them, that one task adds up
_IN_CACHE = 1 << 19  # bytes of rows that are merged at a time


@by_fields
class MergedBlock(NamedTuple):
    """A block of the merged model, and of the outer optimizer's velocity (None where a rule has none)."""

    rows: Float32Array
    velocity: Float32Array | None

    def shared(self) -> "MergedBlock":
        """Return it as the result of a task, which must not be changed any more."""
        return MergedBlock(share(self.rows), None if self.velocity is None else share(self.velocity))


def merged_block(block: Any) -> MergedBlock:
    """Return a block that may not have been merged yet, in this machine's memory."""
    return block if isinstance(block, MergedBlock) else MergedBlock(np.asanyarray(block), None)


def rows_of(block: Any) -> Any:
    """Return the rows of a block that may have been merged."""
    return block.rows if isinstance(block, MergedBlock) else block


class FinishMerge(Protocol):
    """The function of a merge rule."""

    def __call__(self, base: Float32Array, velocity: Float32Array | None, deltas: Deltas) -> MergedBlock:
        """Apply deltas to some rows of the common model; they are cut anywhere, so each row has to stand for itself.

        Parameters
        ----------
        base, velocity
            Rows of the common model, and their velocity, shapes (rows, D) float32; None before the first merge, and
            where a rule has none.
        deltas
            What all replicas changed in these rows.
        """


@dataclass(frozen=True, kw_only=True)
class MergeRule:
    """How replicas become one model.

    Parameters
    ----------
    name
        As in Params.
    title
        Short description for `--help`.
    finish
        Merges some rows.
    has_velocity
        Whether it keeps a velocity.
    on_devices
        By a device's name, what merges there in place of `finish`: called with what `averaging.cuda.model.CudaModel` is
        called with, but its formula, it returns a `CommonModel`. On other devices `finish` merges, on their hosts.
    """

    name: str
    title: str
    finish: FinishMerge
    has_velocity: bool = False
    on_devices: Mapping[str, Callable[..., Any]] = field(default_factory=dict)


def merge_block(
    rule: MergeRule, before: MergedBlock, deltas_of: Callable[[slice], Deltas], into: MergedBlock | None = None
) -> MergedBlock:
    """Merge a block some rows at a time, which stay in the processor's cache from sum to result.

    Parameters
    ----------
    rule
        How it is merged.
    before
        The block, and its velocity.
    deltas_of
        Returns the summed deltas of some rows.
    into
        Where the result is written, if not to new memory; it may be `before`.
    """
    base, velocity = before
    if into is None:
        into = MergedBlock(room(base.shape), buffers.here.table(base.shape) if rule.has_velocity else None)
    for a, b in cut(0, len(base), max(1, _IN_CACHE // (4 * base.shape[1]))):
        some = slice(a, b)
        merged = rule.finish(base[some], None if velocity is None else velocity[some], deltas_of(some))
        into.rows[some] = merged.rows
        if into.velocity is not None:
            into.velocity[some] = merged.velocity
    return into


def merge_deltas(
    rule: MergeRule, before: MergedBlock, deltas: Sequence[Delta], into: MergedBlock | None = None
) -> MergedBlock:
    """Merge what replicas changed in a block, as `merge_block` does."""

    def deltas_of(rows: slice) -> Deltas:
        return add_deltas(rows.stop - rows.start, *(delta.within(rows) for delta in deltas))

    return merge_block(rule, before, deltas_of, into)


def _mean(base: Float32Array, velocity: Float32Array | None, deltas: Deltas) -> MergedBlock:
    return MergedBlock(base + deltas.total / np.float32(deltas.n), velocity)


def _touched(base: Float32Array, velocity: Float32Array | None, deltas: Deltas) -> MergedBlock:
    share = np.divide(deltas.total, np.maximum(deltas.changed, 1), dtype=np.float32)
    return MergedBlock(base + share, velocity)


def _momentum(base: Float32Array, velocity: Float32Array | None, deltas: Deltas) -> MergedBlock:
    # Nesterov's momentum on the mean delta as a gradient (SlowMo, DiLoCo), step 1
    rows, faster = np.empty_like(deltas.total), np.empty_like(deltas.total)
    factor = np.float32(1 - 1 / deltas.n)
    before, kept = (deltas.total, np.float32(0)) if velocity is None else (velocity, factor)
    _accelerate(base, before, kept, deltas.total, np.float32(1 / deltas.n), factor, rows, faster)
    return MergedBlock(rows, faster)


@kernel
def _accelerate(
    base: Any, velocity: Any, kept: Any, total: Any, share: Any, factor: Any, rows: Any, faster: Any
) -> None:
    """Write merged rows and their velocity in one pass over memory, where NumPy would take seven."""
    for row in range(base.shape[0]):
        for column in range(base.shape[1]):
            mean = share * total[row, column]
            speed = mean + kept * velocity[row, column]
            faster[row, column] = speed
            rows[row, column] = base[row, column] + mean + factor * speed


def _on_cuda(formula: str) -> Mapping[str, Callable[..., Any]]:
    """Return `MergeRule.on_devices` of a formula of `averaging.cuda.kernels`."""

    def common_model(*args: Any) -> Any:
        model, kernels = (load(f"daskw2v.training.averaging.cuda.{module}") for module in ("model", "kernels"))
        return model.CudaModel(getattr(kernels, formula), *args)

    return {"cuda": common_model}


_MOMENTUM = MergeRule(
    name="momentum", title="outer momentum on the mean of the changes", finish=_momentum, has_velocity=True,
    on_devices=_on_cuda("MOMENTUM"),
)  # fmt: skip
_TOUCHED = MergeRule(
    name="touched", title="the mean over the replicas that changed a row", finish=_touched,
    on_devices=_on_cuda("TOUCHED"),
)  # fmt: skip
_MEAN = MergeRule(name="mean", title="the mean over all replicas", finish=_mean, on_devices=_on_cuda("MEAN"))

MERGE_RULES = Registry(
    "merge", "daskw2v.merge_rules", MergeRule, {rule.name: rule for rule in (_MOMENTUM, _TOUCHED, _MEAN)}
)


def most_exchanged(rule: MergeRule, device: str, workers: int) -> int:
    """Return how many replicas merge for themselves, at most, where so many workers train.

    If what they exchange stays on the devices of one worker, that costs next to nothing: then as many do as one task
    would add up otherwise, in the same order.
    """
    return FAN_IN if workers == 1 and device in rule.on_devices else EXCHANGED


def find_merge_rule(name: str) -> MergeRule:
    """Return the merge rule of that name, or raise a ParameterError that lists them."""
    return MERGE_RULES.find(name)
