"""Merge rules: how replicas that trained apart become one model again.

A rule is a small value: how replicas' moves add up, and what the sum does to the model. Figures on 17 million
words with 8 replicas (quality relative to one replica): the plain mean ruins the vectors, since each replica
saw an eighth of the text and the mean undoes its progress; outer momentum with factor 1 - 1/N makes the long-run
step N times the mean, which is what N replicas' worth of text calls for, and brings nearly all of it back.
`python -m benchmarks.quality` prints the figures of this package.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from daskw2v.jit import kernel
from daskw2v.objectives.base import FloatArray
from daskw2v.registry import find
from daskw2v.shared import by_fields


@by_fields
class Moves(NamedTuple):
    """Replicas' moves away from the common model, added up row by row.

    Parameters
    ----------
    total
        Sum of the moves, shape (rows, D) float32.
    movers
        Replicas that moved each row, shape (rows, 1) float32.
    n
        Replicas in all.
    """

    total: FloatArray
    movers: FloatArray
    n: int


class Merged(NamedTuple):
    """A block of the merged model, and of the outer optimiser's velocity (None where a rule has none)."""

    rows: FloatArray
    velocity: FloatArray | None


Finish = Callable[[FloatArray, FloatArray | None, Moves], Merged]


@dataclass(frozen=True)
class MergeRule:
    """What a merge does to a block: `finish(base, velocity, moves)`; `has_velocity` says what state it keeps."""

    name: str
    finish: Finish
    has_velocity: bool = False


def add_moves(base: FloatArray, *trained: FloatArray) -> Moves:
    """Add up what replicas did to a block; nothing is changed in place."""
    total = np.zeros_like(base)
    movers = np.zeros((len(base), 1), np.float32)
    for block in trained:  # in order: float addition is not associative, and results must repeat
        _add_move(total, movers, base, block)
    return Moves(total, movers, len(trained))


@kernel
def _add_move(total: Any, movers: Any, base: Any, block: Any) -> None:
    """Add one replica's move: one pass over memory, where NumPy would make four."""
    for row in range(base.shape[0]):
        moved = False
        for column in range(base.shape[1]):
            move = block[row, column] - base[row, column]
            total[row, column] += move
            moved |= move != 0
        movers[row, 0] += moved


def join_moves(*parts: Moves) -> Moves:
    """Add up sums of several groups of replicas."""
    first, *rest = parts
    total, movers = first.total.copy(), first.movers.copy()
    for part in rest:
        total += part.total
        movers += part.movers
    return Moves(total, movers, sum(part.n for part in parts))


def _mean(base: FloatArray, velocity: FloatArray | None, moves: Moves) -> Merged:
    return Merged(base + moves.total / np.float32(moves.n), velocity)


def _touched(base: FloatArray, velocity: FloatArray | None, moves: Moves) -> Merged:
    share = np.divide(moves.total, np.maximum(moves.movers, 1), dtype=np.float32)
    return Merged(base + share, velocity)


def _momentum(base: FloatArray, velocity: FloatArray | None, moves: Moves) -> Merged:
    # Nesterov's momentum on the mean move as a gradient (SlowMo, DiLoCo), step 1
    factor = np.float32(1 - 1 / moves.n)
    faster = moves.total / np.float32(moves.n)
    rows = base + faster
    if velocity is not None:
        faster += factor * velocity
    rows += factor * faster
    return Merged(rows, faster)


MERGE_RULES = {
    rule.name: rule
    for rule in (
        MergeRule("momentum", _momentum, has_velocity=True),
        MergeRule("touched", _touched),
        MergeRule("mean", _mean),
    )
}


def find_merge_rule(name: str) -> MergeRule:
    """Return the merge rule of that name, or raise a ParameterError that lists them."""
    return find(MERGE_RULES, "merge", name)
