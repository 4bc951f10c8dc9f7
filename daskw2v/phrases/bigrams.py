"""Keys of bigrams: a 64-bit number for each pair of ids, counted by sorting.

Each pair has its own key, and keys look random, so their top bits divide bigrams into buckets of about the same size.
Counting sorted keys takes less memory than a hash table.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.kernels.jit import inline, kernel
from daskw2v.types import Int32Array, Int64Array, UInt64Array

NOTHING = -1  # in place of a missing word
BIGRAM = np.dtype([("key", "<u8"), ("count", "<u4")])
BUCKET_WORDS = 1 << 22  # words of text for each bucket; a task merges at most as many distinct bigrams: 180 MB

# The fractional part of the golden ratio, and its inverse modulo 2**64
_FACTOR = 0x9E3779B97F4A7C15
_MULTIPLIER, _INVERSE = np.uint64(_FACTOR), np.uint64(pow(_FACTOR, -1, 1 << 64))
_32, _ONE = np.uint64(32), np.uint64(1)


@inline
def key_of(left: Any, right: Any) -> Any:
    """Return the key of a pair of numbers below 2**31; keys are never 0."""
    return (((np.uint64(left) << _32) | np.uint64(right)) + _ONE) * _MULTIPLIER


@kernel
def _fill_keys(codes: Any, starts: Any, ids: Any, before: Any, keys: Any) -> Any:
    """Fill in the key of each bigram in a sentence; return the number of bigrams."""
    n, s, left = 0, 0, before
    for i in range(len(codes)):
        if s < len(starts) and starts[s] == i:
            s, left = s + 1, NOTHING
        right = np.int64(ids[codes[i]])
        if left != NOTHING:
            keys[n] = key_of(left, right)
            n += 1
        left = right
    return n


def bigram_keys(codes: Int32Array, starts: Int64Array, ids: Int32Array, before: int = NOTHING) -> UInt64Array:
    """Return the keys of all bigrams that end in a piece of text, in order.

    Parameters
    ----------
    codes, starts
        Codes of the words, shape (n,), and indices of the first word of each sentence, shape (s,).
    ids
        Id of each code.
    before
        Id of the word before the first one if it is in the same sentence.
    """
    keys = np.empty(len(codes), np.uint64)
    return keys[: _fill_keys(codes, starts, ids, np.int64(before), keys)]


def count_keys(keys: UInt64Array) -> npt.NDArray[Any]:
    """Count equal keys, fewer than 2**32; return a BIGRAM for each distinct one, ascending. Sorts `keys` in place."""
    keys.sort()
    first = _firsts(keys)
    bigrams = np.empty(len(first), BIGRAM)
    bigrams["key"] = keys[first]
    bigrams["count"] = np.diff(first, append=len(keys))
    return bigrams


def merge_bigrams(parts: Sequence[npt.NDArray[Any]]) -> tuple[UInt64Array, Int64Array]:
    """Add up BIGRAMs; return distinct keys, ascending, and their counts."""
    keys = np.concatenate([part["key"] for part in parts])
    order = np.argsort(keys)
    keys = keys[order]
    counts = np.concatenate([part["count"] for part in parts])[order]
    first = _firsts(keys)
    return keys[first], np.add.reduceat(counts, first, dtype=np.int64) if len(first) else np.empty(0, np.int64)


def _firsts(keys: UInt64Array) -> Int64Array:
    """Return the start of each run of equal keys."""
    new = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=new[1:])
    return np.flatnonzero(new)


def pairs_of(keys: UInt64Array) -> Int32Array:
    """Return the two ids of each key, shape (n, 2) int32."""
    numbers = keys * _INVERSE - _ONE
    return np.column_stack([numbers >> _32, numbers & np.uint64(0xFFFFFFFF)]).astype(np.int32)


def count_buckets(n_words: int) -> int:
    """Return the number of buckets for the bigrams of a text, a power of two."""
    return 1 << max(0, -(-n_words // BUCKET_WORDS) - 1).bit_length()


def cut_keys(keys: UInt64Array, n_buckets: int) -> Int64Array:
    """Return the bounds of the buckets among ascending keys, shape (n_buckets + 1,)."""
    bits = np.uint64(64 - (n_buckets.bit_length() - 1))
    inner = np.searchsorted(keys, np.arange(1, n_buckets, dtype=np.uint64) << bits)
    return np.array([0, *inner.tolist(), len(keys)])
