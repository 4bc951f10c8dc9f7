"""Words as flat bytes: one after another, with V + 1 offsets; word i is data[offsets[i] : offsets[i + 1]]."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.types import BoolArray, Int64Array, UInt8Array

FlatWords = tuple[UInt8Array, Int64Array]  # data and offsets
_AT_ONCE = 1 << 16  # bytes: arrays of results for each of them stay in the cache


def are_words(data: npt.NDArray[Any], offsets: npt.NDArray[Any]) -> bool:
    """Return whether arrays, which a stranger may have written, are flat bytes of words and their offsets."""
    return bool(
        data.dtype == np.uint8
        and offsets.dtype == np.int64
        and data.ndim == offsets.ndim == 1
        and len(offsets) > 0
        and offsets[0] == 0
        and offsets[-1] == len(data)
        and (offsets[:-1] <= offsets[1:]).all()  # differences could wrap around, and kernels read elsewhere
    )


def word_at(data: UInt8Array, offsets: Int64Array, i: int) -> bytes:
    """Return the bytes of word i."""
    return data[offsets[i] : offsets[i + 1]].tobytes()


def cut_words(offsets: Int64Array) -> Iterator[tuple[int, int]]:
    """Cut words into runs of 64 KiB, or one word more; yield the first word of each, and the one behind its last."""
    ends = np.arange(offsets[0] + _AT_ONCE, offsets[-1], _AT_ONCE)
    edges = [0, *np.searchsorted(offsets, ends).tolist(), len(offsets) - 1]
    yield from ((first, last) for first, last in pairwise(edges) if first < last)


def take_words(data: UInt8Array, offsets: Int64Array, order: Int64Array) -> tuple[UInt8Array, Int64Array]:
    """Return the bytes and offsets of words order[0], order[1], ...

    Parameters
    ----------
    data, offsets
        Flat bytes (n,) uint8 and offsets (V + 1,) int64.
    order
        Which words, shape (k,) int64.
    """
    begins = offsets[order]
    lengths = offsets[order + 1] - begins
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    taken = np.empty(bounds[-1], np.uint8)
    for first, last in cut_words(bounds):
        start, stop = bounds[first], bounds[last]
        moved = np.repeat(begins[first:last] - bounds[first:last], lengths[first:last])
        taken[start:stop] = data[moved + np.arange(start, stop)]
    return taken, bounds


def same_words(words: FlatWords, order: Int64Array, others: FlatWords, other_order: Int64Array) -> BoolArray:
    """Return which words order[0], order[1], ... equal the other words other_order[0], ..., shape (k,)."""
    lengths, other_lengths = (bounds[i + 1] - bounds[i] for (_, bounds), i in ((words, order), (others, other_order)))
    same = lengths == other_lengths
    compared = np.flatnonzero(same)
    taken, bounds = take_words(*words, order[compared])
    unequal = np.flatnonzero(taken != take_words(*others, other_order[compared])[0])
    same[compared[np.searchsorted(bounds, unequal, side="right") - 1]] = False
    return same
