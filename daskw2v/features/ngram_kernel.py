"""Hashes the n-grams of many words at once, from their UTF-8."""

from typing import Any

import numpy as np

from daskw2v.kernels.jit import inline, kernel
from daskw2v.types import Int32Array, Int64Array, UInt8Array

_OFFSET, _PRIME = 2166136261, 16777619  # of FNV-1a, as in `ngrams`: a cached kernel depends on its own file


def hash_stored_words(
    data: UInt8Array, offsets: Int64Array, minn: int, maxn: int, bucket: int
) -> tuple[Int64Array, Int32Array]:
    """Return the buckets of the n-grams of n words; `ngrams.hash_words` is the reference in Python.

    Parameters
    ----------
    data, offsets
        UTF-8 of the words, and the bounds of the words in it, as in `Vocabulary`.
    minn, maxn, bucket
        As in Params.

    Returns
    -------
    offsets, buckets
        Bounds of each word's buckets, shape (n + 1,) int64, and the buckets, int32.
    """
    sizes = np.empty(len(offsets) - 1, np.int64)
    marked = np.empty(int(np.diff(offsets).max(initial=0)) + 2, np.uint8)
    _list_ngrams(data, offsets, minn, maxn, bucket, marked, sizes, sizes, np.empty(0, np.int32))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    buckets = np.empty(starts[-1], np.int32)
    _list_ngrams(data, offsets, minn, maxn, bucket, marked, sizes, starts, buckets)
    return starts, buckets


@kernel
def _list_ngrams(
    data: Any, offsets: Any, minn: Any, maxn: Any, bucket: Any, marked: Any, sizes: Any, starts: Any, buckets: Any
) -> None:
    """Write the number of n-grams of each word to `sizes`, and their buckets to `buckets` unless that is empty.

    `data` to `bucket` are as in `hash_stored_words`. The buckets of word i begin at starts[i]. `marked` is scratch
    memory for the bytes of a word with its marks.
    """
    writes = len(buckets) > 0
    for word in range(len(offsets) - 1):
        length = offsets[word + 1] - offsets[word]
        marked[0] = 60
        for i in range(length):
            marked[i + 1] = data[offsets[word] + i]
        marked[length + 1] = 62
        length += 2
        n = 0
        if not _ends_sentence(marked, length):
            for start in range(length):
                if (marked[start] & 0xC0) == 0x80:
                    continue
                hash, end, characters = np.uint32(_OFFSET), start, 0
                while end < length and characters < maxn:
                    hash = _hash_byte(hash, marked[end])
                    end += 1
                    while end < length and (marked[end] & 0xC0) == 0x80:
                        hash = _hash_byte(hash, marked[end])
                        end += 1
                    characters += 1
                    if characters >= minn and not (characters == 1 and (start == 0 or end == length)):
                        if writes:
                            buckets[starts[word] + n] = np.int32(np.uint64(hash) % np.uint64(bucket))
                        n += 1
        sizes[word] = n


@inline
def _hash_byte(hash: Any, byte: Any) -> Any:
    """Return the hash of FNV-1a after one more byte, which is read as a signed number."""
    signed = np.uint32(np.int32(np.int8(byte)))
    return np.uint32((hash ^ signed) * np.uint32(_PRIME))


@inline
def _ends_sentence(marked: Any, length: Any) -> Any:
    """Return whether a word between its marks is `ngrams.END_OF_SENTENCE`."""
    return length == 6 and marked[1] == 60 and marked[2] == 47 and marked[3] == 115 and marked[4] == 62
