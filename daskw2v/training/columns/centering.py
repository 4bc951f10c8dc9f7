"""Rows less their mean: what a model of strategy `columns` has as input rows, where Params say `centered`.

Against negatives most dot products must be below zero, whatever the words, and rows that all count alike learn that
before anything else: some two thirds of their length are one and the same vector, which tells words from nothing.
Without it cosines compare what is each word's own (compare Mu and Viswanath 2018).

Sums are taken by chunks of words, in their order. So the mean is the same bits however words are cut into parts.
"""

from collections.abc import Sequence

import numpy as np
from distributed import Client, Future

from daskw2v.sampling.segments import cut
from daskw2v.types import Float32Array, Float64Array


def submit_mean(client: Client, rows: Sequence[Future], chunk: int, key: str) -> Future:
    """Return the future of the mean row of all parts, which are whole chunks but for the last one."""
    sums = [client.submit(_sums, part, chunk, key=f"sums-{key}-{number}") for number, part in enumerate(rows)]
    lengths = [client.submit(len, part, key=f"length-{key}-{number}") for number, part in enumerate(rows)]
    return client.submit(_mean, lengths, *sums, key=f"mean-{key}")


def subtract(rows: Float32Array, mean: Float32Array) -> Float32Array:
    """Task: rows less their mean."""
    return rows - mean


def join_centered(chunk: int, *rows: Float32Array) -> Float32Array:
    """Return the table that parts make, in their order, less its mean row."""
    return subtract(np.concatenate(rows), _mean([len(part) for part in rows], *(_sums(part, chunk) for part in rows)))


def _sums(rows: Float32Array, chunk: int) -> Float64Array:
    """Task: the sum of each chunk's rows, shape (chunks, D)."""
    return np.array([rows[a:b].sum(axis=0, dtype=np.float64) for a, b in cut(0, len(rows), chunk)])


def _mean(lengths: Sequence[int], *sums: Float64Array) -> Float32Array:
    """Task: the mean row, shape (D,) float32."""
    mean: Float32Array = (np.concatenate(sums).sum(axis=0) / sum(lengths)).astype(np.float32)
    return mean
