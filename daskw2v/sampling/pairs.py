"""Pairs of a context and a center as single numbers: the center's row in the upper half, the context's in the lower.

Rows are those of partitions. Where a partition has fewer than 2**16 rows a pair takes 4 bytes, else 8.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from daskw2v.kernels.jit import inline
from daskw2v.types import Int64Array

Pairs: TypeAlias = npt.NDArray[np.uint32] | npt.NDArray[np.uint64]
PAIR_TYPES = ("uint32", "uint64")


def pair_type(n_rows: int) -> np.dtype[Any]:
    """Return the type of pairs of partitions with so many rows, at most; one number stands for no row."""
    return np.dtype(PAIR_TYPES[0 if n_rows < 1 << 16 else 1])


def empty_pairs(n: int, dtype: npt.DTypeLike) -> Pairs:
    """Return room for n pairs."""
    pairs: Pairs = np.empty(n, dtype)
    return pairs


@inline
def half_of(pairs: Any) -> Any:
    """Return the bits of a row in an array of pairs."""
    return np.uint64(4 * pairs.itemsize)


@inline
def no_row(half: Any) -> Any:
    """Return what stands for a center in another partition."""
    return (np.uint64(1) << half) - np.uint64(1)


@inline
def center_of(pair: Any, half: Any) -> Any:
    """Return the center's row, or `no_row`, int64."""
    return np.int64(np.uint64(pair) >> half)


@inline
def context_of(pair: Any, half: Any) -> Any:
    """Return the context's row, int64."""
    return np.int64(np.uint64(pair) & no_row(half))


def pack(rows: Sequence[Int64Array] | Int64Array, dtype: npt.DTypeLike) -> Pairs:
    """Return the pairs of contexts and centers; -1 is a center in another partition."""
    half, (contexts, centers) = np.uint64(4 * np.dtype(dtype).itemsize), np.asarray(rows, np.int64).view(np.uint64)
    packed: Pairs = ((centers & no_row.py_func(half)) << half | contexts).astype(dtype)
    return packed


def unpack(pairs: Pairs) -> tuple[Int64Array, Int64Array]:
    """Return contexts and centers, shapes of `pairs`; -1 for a center in another partition."""
    half = np.uint64(4 * pairs.itemsize)
    wide, none = pairs.astype(np.uint64), no_row.py_func(half)
    centers = wide >> half
    return (wide & none).astype(np.int64), np.where(centers == none, -1, centers.astype(np.int64))
