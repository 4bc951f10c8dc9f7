"""Sorts words by (-count, bytes) without a Python object for each word."""

import numpy as np

from daskw2v.kernels.jit import kernel
from daskw2v.types import Int64Array, UInt8Array, UInt64Array


@kernel
def _prefixes(
    words: UInt8Array,
    offsets: Int64Array,
    chosen: Int64Array,
    skip: int,
    prefixes: UInt64Array,
    lengths: UInt8Array,
) -> None:
    """Compute bytes skip .. skip + 8 of words as big-endian numbers, padded by zeros, and their number of bytes."""
    for i in range(len(chosen)):
        begin, end = offsets[chosen[i]] + skip, offsets[chosen[i] + 1]
        length = max(0, min(8, end - begin))
        prefix = np.uint64(0)
        for k in range(8):
            byte = words[begin + k] if k < length else 0
            prefix = (prefix << np.uint64(8)) | np.uint64(byte)
        prefixes[i], lengths[i] = prefix, length


def order_words(words: UInt8Array, offsets: Int64Array, counts: Int64Array) -> Int64Array:
    """Return the order by falling count; words of equal count are ordered by bytes.

    Parameters
    ----------
    words, offsets
        Bytes of distinct words (n,) uint8 and offsets (u + 1,) int64.
    counts
        Shape (u,) int64.

    Returns
    -------
    ndarray
        Indices of words, shape (u,) int64.
    """
    order = np.argsort(-counts, kind="stable")
    group = -counts[order]
    # Runs of words that are equal so far are sorted by their next 8 bytes, until no run is left.
    tied, skip = np.arange(len(order)), 0
    while len(tied):
        prefixes, lengths = np.empty(len(tied), np.uint64), np.empty(len(tied), np.uint8)
        _prefixes(words, offsets, order[tied], skip, prefixes, lengths)
        # The length distinguishes padding from zeros of the word. Runs keep their places, as group is the first key.
        by = np.lexsort((lengths, prefixes, group))
        order[tied] = order[tied][by]
        group, prefixes, lengths = group[by], prefixes[by], lengths[by]
        same = (np.diff(group) == 0) & (np.diff(prefixes) == 0) & (lengths[1:] == 8) & (lengths[:-1] == 8)
        again = np.append(same, False) | np.append(False, same)
        run = np.cumsum(np.append(True, ~same))
        tied, group, skip = tied[again], run[again], skip + 8
    return order
