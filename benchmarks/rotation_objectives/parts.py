"""Windows cut into parts by the partition of their contexts, and dealt into buckets."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.kernels.jit import kernel
from daskw2v.sampling.dealing import SPAN, WindowSize, reach_of
from daskw2v.sampling.segments import Segment
from daskw2v.vocabulary.partition import Partitions

Ints = npt.NDArray[np.int64]


class Parts(NamedTuple):
    """Parts of windows, bucket by bucket; in a bucket they are ordered as `sampling.dealing` orders pairs.

    Parameters
    ----------
    centers, windows
        Of each part, the row of its center in its partition, and the number of its window, shapes (n,).
    starts
        Bounds of the parts' contexts, shape (n + 1,).
    contexts
        Rows of the contexts in their partition, part by part.
    edges
        Bounds of the buckets, shape (outputs * inputs + 1,): bucket j * inputs + i has the parts of the output
        partition j and the input partition i.
    sizes
        Number of contexts of each window.
    """

    centers: Ints
    windows: Ints
    starts: Ints
    contexts: Ints
    edges: Ints
    sizes: Ints


def deal_parts(
    segment: Segment, start: int, stop: int, windows: WindowSize, inputs: Partitions, outputs: Partitions
) -> Parts:
    """Deal the windows around the positions start..stop-1."""
    own, place = outputs.place(segment.tokens), inputs.place(segment.tokens)
    begins, ends = np.zeros((2, len(segment.tokens)), np.int64)
    _extents(segment, windows, begins, ends)
    cuts = np.searchsorted(segment.positions, [*range(start, stop, SPAN), stop]).tolist()
    key = own[0] * outputs.most + own[1]
    order = np.concatenate([np.arange(0)] + [a + np.argsort(key[a:b], kind="stable") for a, b in pairwise(cuts)])
    sizes, none = np.zeros((2, outputs.n, inputs.n), np.int64), Parts(*[np.zeros(0, np.int64)] * 6)
    _deal(order, begins, ends, *own, *place, sizes, none, write=False)
    edges, first = (np.concatenate([[0], np.cumsum(size)]) for size in sizes)
    lengths = edges[-1], edges[-1], edges[-1] + 1, first[-1], len(order)
    centers, numbers, starts, contexts, of_windows = (np.zeros(n, np.int64) for n in lengths)
    found = Parts(centers, numbers, starts, contexts, edges, of_windows)
    found.starts[-1] = first[-1]
    places = np.stack([edges[:-1], first[:-1]]).reshape(sizes.shape)
    _deal(order, begins, ends, *own, *place, places, found, write=True)
    return found


@kernel
def _extents(segment: Any, windows: Any, begins: Any, ends: Any) -> None:
    for sentence in range(len(segment.bounds) - 1):
        first, last = segment.bounds[sentence], segment.bounds[sentence + 1]
        for i in range(first, last):
            reach = reach_of(windows.window, windows.shrink, windows.key, segment.positions[i])
            begins[i], ends[i] = max(first, i - reach), min(last, i + reach + 1)


@kernel
def _deal(
    order: Any, begins: Any, ends: Any, output: Any, own_row: Any, input: Any, row: Any, places: Any, parts: Any,
    write: Any,
) -> None:  # fmt: skip
    """Move the places of parts and of contexts in each bucket on, and write them there if `write`."""
    for window in range(len(order)):
        center = order[window]
        j = output[center]
        for i in range(places.shape[2]):
            n = 0
            for c in range(begins[center], ends[center]):
                if c != center and input[c] == i:
                    if write:
                        parts.contexts[places[1, j, i] + n] = row[c]
                    n += 1
            if n > 0:
                if write:
                    item = places[0, j, i]
                    parts.centers[item], parts.windows[item] = own_row[center], window
                    parts.starts[item] = places[1, j, i]
                    parts.sizes[window] += n
                places[0, j, i] += 1
                places[1, j, i] += n
