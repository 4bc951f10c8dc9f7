"""Negatives in two stages: first a partition, then a word of it (Stergiou et al. 2017, "Hierarchical Sampling").

Each worker has the alias table of the partitions' total weights, shape (p,). Only the worker that trains a partition
has the table of its words, shape (V/p,). Together they draw each word with the same probability as one table of all
words.

The rule decides which partition a negative is drawn from ("Distributed SGNS" there). `tns`: the partition of the
pair's target. `sns`: one random partition for all negatives of a pair. `bns`: a random partition for each negative.
"""

from typing import Any

import numpy as np

from daskw2v.kernels.alias import alias_table, pick
from daskw2v.kernels.jit import inline
from daskw2v.kernels.rng import GOLDEN, mix
from daskw2v.sampling.weights import word_weights
from daskw2v.types import Float64Array, Int64Array, UInt64Array

TNS, SNS, BNS = range(3)
RULES = {"tns": TNS, "sns": SNS, "bns": BNS}
WORD = np.uint64(0xD1B54A32D192ED03)  # makes the draw of a word independent of that of its partition


def make_word_table(counts: Int64Array | Float64Array, exponent: float | None) -> UInt64Array:
    """Return the alias table of words as negatives, by their counts to an exponent, shape of `counts`, uint64.

    `exponent` is as in `word_weights`.
    """
    return alias_table(word_weights(counts, exponent))


def split_negatives(rule: int, negative: int) -> tuple[int, int]:
    """Return how many of a pair's `negative` negatives are trained with it, and how many with each noise entry.

    `rule` is TNS, SNS or BNS. A noise entry is a context that is trained with negatives only, as `pairs` makes them.
    """
    return {TNS: (negative, 0), SNS: (0, negative), BNS: (0, 1)}[rule]


@inline
def draw_partition(rule: Any, state: Any, k: Any, target: Any, partitions: Any) -> Any:
    """Return the partition of which negative k (from 0) of a pair is drawn.

    Parameters
    ----------
    rule
        TNS, SNS or BNS.
    state
        Initial state of the pair's random numbers, uint64.
    target
        Partition of the pair's target, its center.
    partitions
        Alias table of the partitions.
    """
    number = np.uint64(k if rule == BNS else 0) + np.uint64(1)
    drawn = pick(partitions, mix(state + number * GOLDEN))
    return target if rule == TNS else drawn


@inline
def draw_negative_bits(state: Any, k: Any) -> Any:
    """Return 64 random bits for negative k (from 0) of a pair, whose random numbers start from `state`, uint64."""
    return mix(state + WORD + (np.uint64(k) + np.uint64(1)) * GOLDEN)


@inline
def draw_negative_row(state: Any, k: Any, words: Any) -> Any:
    """Return the row of negative k (from 0) of a pair in its partition.

    `state` is as in `draw_negative_bits`; `words` is the result of `make_word_table` for the partition.
    """
    return pick(words, draw_negative_bits(state, k))
