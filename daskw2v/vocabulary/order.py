"""Words sorted by (-count, bytes) without a Python object per word."""

import numpy as np
import numpy.typing as npt

from daskw2v.jit import kernel


@kernel
def _prefixes(
    words: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    chosen: npt.NDArray[np.int64],
    skip: int,
    prefixes: npt.NDArray[np.uint64],
    lengths: npt.NDArray[np.uint8],
) -> None:
    """Find bytes skip .. skip + 8 of words as big-endian numbers, padded by zeros, and how many there are."""
    for i in range(len(chosen)):
        begin, end = offsets[chosen[i]] + skip, offsets[chosen[i] + 1]
        length = max(0, min(8, end - begin))
        prefix = np.uint64(0)
        for k in range(8):
            byte = words[begin + k] if k < length else 0
            prefix = (prefix << np.uint64(8)) | np.uint64(byte)
        prefixes[i], lengths[i] = prefix, length


def order_words(
    words: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the order by falling count, equal counts by bytes.

    Parameters
    ----------
    words, offsets
        Distinct words as flat bytes (n,) uint8 and offsets (u + 1,) int64.
    counts
        Shape (u,) int64.

    Returns
    -------
    ndarray
        Indices of words, shape (u,) int64.
    """
    order = np.argsort(-counts, kind="stable")
    group = -counts[order]
    # Runs of words that are still equal are sorted by their next 8 bytes, until no run is left.
    tied, skip = np.arange(len(order)), 0
    while len(tied):
        prefixes, lengths = np.empty(len(tied), np.uint64), np.empty(len(tied), np.uint8)
        _prefixes(words, offsets, order[tied], skip, prefixes, lengths)
        # The length tells zeros that pad from zeros of the word. Runs keep their places: group goes first.
        by = np.lexsort((lengths, prefixes, group))
        order[tied] = order[tied][by]
        group, prefixes, lengths = group[by], prefixes[by], lengths[by]
        same = (np.diff(group) == 0) & (np.diff(prefixes) == 0) & (lengths[1:] == 8) & (lengths[:-1] == 8)
        again = np.append(same, False) | np.append(False, same)
        run = np.cumsum(np.append(True, ~same))
        tied, group, skip = tied[again], run[again], skip + 8
    return order
