"""Negatives in two stages: first a partition, then a word of it (Stergiou et al. 2017, "Hierarchical Sampling").

Every worker holds the table of the partitions, `alias_table` of the sum of the weights of each, shape (p,); only a
partition's owner holds the table of its words, shape (V/p,). Together they draw each word as often as one table of all
words does.

Where a negative is drawn is a rule of its own ("Distributed SGNS" there): `tns`, from the partition of the pair's
target; `sns`, all negatives of a pair from one partition; `bns`, each from one of its own.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.jit import inline
from daskw2v.sampling.alias import alias_table, pick
from daskw2v.sampling.rng import GOLDEN, mix

TNS, SNS, BNS = range(3)
RULES = {"tns": TNS, "sns": SNS, "bns": BNS}
WORD = np.uint64(0xD1B54A32D192ED03)  # sets the draw of a word apart from that of its partition


def word_weights(counts: npt.NDArray[np.int64], exponent: float) -> npt.NDArray[np.float64]:
    """Return the weights that negatives are drawn by: counts ** exponent, shape of `counts`."""
    return np.asarray(counts.astype(np.float64) ** exponent)


def word_table(counts: npt.NDArray[np.int64], exponent: float) -> npt.NDArray[np.uint64]:
    """Return the alias table of words, given their counts, shape of `counts`, uint64."""
    return alias_table(word_weights(counts, exponent))


def split_negatives(rule: int, negative: int) -> tuple[int, int]:
    """Return the negatives that are trained with a pair's center, and with each item of noise trained elsewhere."""
    return {TNS: (negative, 0), SNS: (0, negative), BNS: (0, 1)}[rule]


@inline
def partition_of(rule: Any, state: Any, k: Any, target: Any, partitions: Any) -> Any:
    """Return the partition that negative k (from 0) of a pair is drawn from.

    Parameters
    ----------
    rule
        TNS, SNS or BNS.
    state
        Where the pair's draws start from, uint64.
    target
        Partition of the pair's target.
    partitions
        Alias table of the partitions.
    """
    number = np.uint64(k if rule == BNS else 0) + np.uint64(1)
    drawn = pick(partitions, mix(state + number * GOLDEN))
    return target if rule == TNS else drawn


@inline
def bits_of_negative(state: Any, k: Any) -> Any:
    """Return the 64 random bits of negative k (from 0) of a pair, whose draws start from `state`."""
    return mix(state + WORD + (np.uint64(k) + np.uint64(1)) * GOLDEN)


@inline
def row_of_negative(state: Any, k: Any, words: Any) -> Any:
    """Return the row of negative k (from 0) of a pair in its partition, whose `word_table` is given."""
    return pick(words, bits_of_negative(state, k))
