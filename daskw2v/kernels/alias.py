"""Draws from a discrete distribution in constant time (Walker's alias method, Vose's construction).

There is a slot for each outcome. It holds a threshold and an alias, which names an outcome, in one uint64, so that a
draw reads one cache line. The upper half of a draw chooses the slot. The draw yields the slot's outcome if its lower
half is below the threshold, and the alias otherwise.
"""

from itertools import pairwise
from typing import Any

import numpy as np

from daskw2v.errors import ParameterError
from daskw2v.kernels.jit import inline, kernel
from daskw2v.kernels.rng import below
from daskw2v.types import Float64Array, Int64Array, UInt64Array

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


def alias_table(weights: Float64Array) -> UInt64Array:
    """Return the alias table of a distribution.

    Parameters
    ----------
    weights
        Weight of each outcome, shape (n,) float64; the sum may be other than one.

    Returns
    -------
    table
        Threshold (upper 32 bits) and alias (lower 32 bits) of each slot, shape (n,) uint64.

    Raises
    ------
    ParameterError
        If there are no outcomes, or 2**31 or more; or if a weight is negative or not finite, or all are zero.
    """
    total = weights.sum() if len(weights) else 0.0
    if not (len(weights) < 2**31 and np.isfinite(total) and total > 0 and (weights >= 0).all()):
        raise ParameterError(
            f"{len(weights)} weights with sum {total} make no distribution.",
            "Give fewer than 2**31 finite weights >= 0, at least one of them above zero.",
        )
    n = len(weights)
    table, rest = np.empty(n, np.uint64), (np.arange(n), *np.empty((2, n), np.int64))
    _build(weights * (n / total), *rest, table)
    return table


def alias_tables(weights: Float64Array, bounds: Int64Array, first: int = 0) -> UInt64Array:
    """Return the alias tables of several distributions, one after the other in one array.

    Parameters
    ----------
    weights
        Weights of all outcomes, shape (n,) float64.
    bounds
        Start of each distribution in `weights`, from 0 on, and the end of the last, shape (distributions + 1,) int64.
    first
        Number of the slot of weights[0]. Aliases and results of `choose` are numbers of slots.

    Returns
    -------
    tables
        Thresholds and aliases, shape (n,) uint64.

    Raises
    ------
    ParameterError
        If `alias_table` raises it for one of the distributions.
    """
    tables = np.empty(len(weights), np.uint64)
    for start, stop in pairwise(bounds.tolist()):
        tables[start:stop] = alias_table(weights[start:stop]) + np.uint64(first + start)
    return tables


@kernel
def _build(threshold: Any, alias: Any, small: Any, large: Any, table: Any) -> None:
    """Write an alias table; `threshold` has weights scaled to the mean 1, `alias` the outcomes; both are overwritten.

    `small` and `large` are scratch memory, all of shape (n,).
    """
    n, n_small, n_large = len(table), 0, 0
    for i in range(n):
        if threshold[i] < 1.0:
            small[n_small] = i
            n_small += 1
        else:
            large[n_large] = i
            n_large += 1
    while n_small and n_large:
        i = small[n_small - 1]
        j = large[n_large - 1]
        n_small -= 1
        alias[i] = j
        threshold[j] -= 1.0 - threshold[i]
        if threshold[j] < 1.0:
            n_large -= 1
            small[n_small] = j
            n_small += 1
    # The remaining outcomes have weight one up to rounding, so each may be its own alias
    for i in range(n):
        share = np.uint64(min(max(threshold[i], 0.0), 1.0) * 4294967295.0)
        table[i] = (share << _HALF) | np.uint64(alias[i])


@inline
def pick(table: Any, bits: Any) -> Any:
    """Return the outcome, 0..n-1, that 64 random bits choose from an `alias_table` of n outcomes, int64."""
    slot = below(bits, len(table))
    return choose(slot, table[slot], bits)


@inline
def slot_in(span: Any, bits: Any) -> Any:
    """Return the number of the slot that 64 random bits choose from a span of slots, uint64.

    A span is its first slot << 32 | the number of its slots.
    """
    return (span >> _HALF) + below(bits, span & _LOW)


@inline
def choose(slot: Any, entry: Any, bits: Any) -> Any:
    """Return the outcome that 64 random bits choose in a slot, int64: the slot itself, or its alias.

    `entry` is the slot's threshold and alias. The arguments are uint64.
    """
    # One return, so that it compiles to a select and not to a branch
    return np.int64(slot if (bits & _LOW) < (entry >> _HALF) else entry & _LOW)
