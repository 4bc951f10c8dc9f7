"""Draws from a discrete distribution in constant time (Walker's alias method, Vose's construction).

Each slot holds a word's threshold and its alias side by side in one uint64, so that a draw touches one cache line:
the slot's own word where the draw's lower half is below the threshold, the alias otherwise.
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
    """Build the table of a distribution.

    Parameters
    ----------
    weights
        Weight of each outcome, shape (n,) float64; they need not sum to one.

    Returns
    -------
    table
        Threshold (upper 32 bits) and alias (lower 32 bits) of each slot, shape (n,) uint64.

    Raises
    ------
    ParameterError
        If there is no outcome, or a weight is negative or not finite, or all are zero.
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
    """Build the tables of several distributions, one after the other in one array.

    Parameters
    ----------
    weights
        Weights of all outcomes, shape (n,) float64.
    bounds
        Where each distribution begins, and the end, shape (distributions + 1,) int64.
    first
        Number of the first slot: aliases and draws are numbers of slots.

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
    """Write the table from scaled weights in `threshold` and outcomes in `alias`; `small` and `large` are scratch."""
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
    """Return the outcome that 64 random bits choose, int64."""
    slot = below(bits, len(table))
    return choose(slot, table[slot], bits)


@inline
def slot_in(span: Any, bits: Any) -> Any:
    """Return the slot, uint64, that 64 random bits fall into, of a span: its first slot << 32 | their number."""
    return (span >> _HALF) + below(bits, span & _LOW)


@inline
def choose(slot: Any, entry: Any, bits: Any) -> Any:
    """Return the outcome, int64, that 64 random bits choose in the slot that they fall into, all three uint64."""
    # One return, so that it compiles to a choice between values and not to a branch
    return np.int64(slot if (bits & _LOW) < (entry >> _HALF) else entry & _LOW)
