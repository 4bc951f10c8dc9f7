"""What negative sampling needs on any device: the table that negatives are drawn from, and the keys of the draws."""

from typing import NamedTuple

import numpy as np

from daskw2v.config.params import Params
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.sampling.hierarchy import word_table
from daskw2v.types import Int64Array, UInt64Array

BATCH = 4  # windows, pairs or rows that are trained at once


class Negatives(NamedTuple):
    """What a kernel needs to know about negatives.

    Parameters
    ----------
    negative
        As in Params.
    table
        Alias table of the words, shape (V,) uint64.
    key
        Stream of this epoch's draws.
    """

    negative: int
    table: UInt64Array
    key: np.uint64


class PreparedNoise(NamedTuple):
    """The Params, and the alias table of the negatives, shape (V,) uint64."""

    params: Params
    noise: UInt64Array


def prepare_noise(params: Params, counts: Int64Array) -> PreparedNoise:
    """Build the table that negatives are drawn from."""
    return PreparedNoise(params, word_table(counts, params.ns_exponent))


def noise_bytes(params: Params, n_words: int) -> dict[str, int]:
    """Return the bytes of what `prepare_noise` builds, by its name."""
    return {"table of negatives": 8 * n_words}


def word_tables(params: Params, n_words: int) -> dict[str, int]:
    """Return the numbers of rows: two vectors for each word."""
    return {"input": n_words, "output": n_words}


def negatives_of(prepared: PreparedNoise, epoch: int) -> Negatives:
    """Return the kernel's view of the negatives of an epoch."""
    params = prepared.params
    return Negatives(params.negative, prepared.noise, stream(params.seed, Purpose.NEGATIVE, epoch))
