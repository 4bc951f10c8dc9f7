"""Words as flat bytes: one after another, with V + 1 offsets; word i is data[offsets[i] : offsets[i + 1]]."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.types import BoolArray, Int64Array, UInt8Array

FlatWords = tuple[UInt8Array, Int64Array]  # data and offsets
_RUN_BYTES = 1 << 16  # arrays with a number for each of these bytes stay in the cache


def are_words(data: npt.NDArray[Any], offsets: npt.NDArray[Any]) -> bool:
    """Return whether arrays of any origin are flat bytes of words, and the words' offsets in these bytes."""
    return bool(
        data.dtype == np.uint8
        and offsets.dtype == np.int64
        and data.ndim == offsets.ndim == 1
        and len(offsets) > 0
        and offsets[0] == 0
        and offsets[-1] == len(data)
        and (offsets[:-1] <= offsets[1:]).all()  # differences could wrap around, and kernels read elsewhere
    )


def get_word(data: UInt8Array, offsets: Int64Array, i: int) -> bytes:
    """Return the bytes of word i of flat words."""
    return data[offsets[i] : offsets[i + 1]].tobytes()


def cut_words(offsets: Int64Array) -> Iterator[tuple[int, int]]:
    """Cut flat words into runs of about 64 KiB of complete words; yield the index range (first, stop) of each run."""
    ends = np.arange(offsets[0] + _RUN_BYTES, offsets[-1], _RUN_BYTES)
    edges = [0, *np.searchsorted(offsets, ends).tolist(), len(offsets) - 1]
    yield from ((first, last) for first, last in pairwise(edges) if first < last)


def take_words(data: UInt8Array, offsets: Int64Array, order: Int64Array) -> tuple[UInt8Array, Int64Array]:
    """Return the words at indices as flat words: bytes, uint8, and offsets, shape (k + 1,) int64.

    Parameters
    ----------
    data, offsets
        V flat words: bytes, shape (n,) uint8, and offsets, shape (V + 1,) int64.
    order
        Indices of the words to take, in any order, shape (k,) int64.
    """
    begins = offsets[order]
    lengths = offsets[order + 1] - begins
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    result = np.empty(bounds[-1], np.uint8)
    for first, last in cut_words(bounds):
        start, stop = bounds[first], bounds[last]
        shifts = np.repeat(begins[first:last] - bounds[first:last], lengths[first:last])
        result[start:stop] = data[shifts + np.arange(start, stop)]
    return result, bounds


def same_words(a: FlatWords, a_order: Int64Array, b: FlatWords, b_order: Int64Array) -> BoolArray:
    """Return whether the words of each of k pairs, one word of `a` and one word of `b`, are equal, shape (k,).

    Parameters
    ----------
    a, b
        Two sequences of flat words.
    a_order, b_order
        Indices of the words of each pair in `a` and in `b`, shape (k,) int64.
    """
    a_lengths, b_lengths = (offsets[i + 1] - offsets[i] for (_, offsets), i in ((a, a_order), (b, b_order)))
    same = a_lengths == b_lengths
    compared = np.flatnonzero(same)
    a_bytes, bounds = take_words(*a, a_order[compared])
    unequal = np.flatnonzero(a_bytes != take_words(*b, b_order[compared])[0])
    same[compared[np.searchsorted(bounds, unequal, side="right") - 1]] = False
    return same
