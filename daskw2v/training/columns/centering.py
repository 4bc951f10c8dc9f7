"""Subtraction of the mean from the input rows of strategy `columns`, where Params say `centered`.

Dot products with negatives must be below zero for all words alike, and the rows learn this first. About two thirds of
their length are then a common vector, which does not distinguish words. Without it, cosines compare what differs
between words (compare Mu and Viswanath 2018).

Sums are taken by chunks of words, in order, so the mean has the same bits however words are cut into parts.
"""

from collections.abc import Sequence

import numpy as np
from distributed import Client, Future

from daskw2v.sampling.segments import cut
from daskw2v.types import Float32Array, Float64Array


def submit_mean(client: Client, rows: Sequence[Future], chunk: int, key: str) -> Future:
    """Submit the mean row of all parts, and return its future; each part but the last has whole chunks."""
    sums = [client.submit(_sums, part, chunk, key=f"sums-{key}-{number}") for number, part in enumerate(rows)]
    lengths = [client.submit(len, part, key=f"length-{key}-{number}") for number, part in enumerate(rows)]
    return client.submit(_mean, lengths, *sums, key=f"mean-{key}")


def subtract(rows: Float32Array, mean: Float32Array) -> Float32Array:
    """Task: return rows, shape (n, D), with the mean subtracted."""
    return rows - mean


def join_centered(chunk: int, *rows: Float32Array) -> Float32Array:
    """Return the table of all parts, in their order, with its mean row subtracted."""
    return subtract(np.concatenate(rows), _mean([len(part) for part in rows], *(_sums(part, chunk) for part in rows)))


def _sums(rows: Float32Array, chunk: int) -> Float64Array:
    """Task: return the sum of each chunk's rows, shape (chunks, D)."""
    return np.array([rows[a:b].sum(axis=0, dtype=np.float64) for a, b in cut(0, len(rows), chunk)])


def _mean(lengths: Sequence[int], *sums: Float64Array) -> Float32Array:
    """Task: return the mean row, shape (D,) float32, given the parts' lengths and sums."""
    mean: Float32Array = (np.concatenate(sums).sum(axis=0) / sum(lengths)).astype(np.float32)
    return mean
