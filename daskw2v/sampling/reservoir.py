"""Contexts of each word, sampled uniformly and without replacement from all pairs of a text.

Each pair has a random priority, a pure function of its place in the text, and a word keeps its pairs of smallest
priority. So what it keeps does not depend on how the text is cut, nor in which order its pieces come. This is
reservoir sampling by random keys, of which bottom-k samples can be merged (Vitter 1985; Cohen and Kaplan 2007).

A pair is an entry, one uint64: its priority in the upper half; in the lower one its context, masked by bits that
follow from the priority. So entries sort by priority, and equal priorities favour no word.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.jit import inline, kernel
from daskw2v.sampling.dealing import Integers, Windows, reach_of
from daskw2v.sampling.rng import below, draw, mix
from daskw2v.sampling.segments import Segment

Entries = npt.NDArray[np.uint64]

_HALF, _LOWER = np.uint64(32), np.uint64(2**32 - 1)
NO_CONTEXT = -1  # the row of a word that has none


class Sample(NamedTuple):
    """Sampled pairs of a piece of text.

    Parameters
    ----------
    rows
        Words that have pairs, ascending, and how many pairs they have, shape (n, 2) int32.
    entries
        Of each of these words in turn, its pairs of smallest priority, `size` at most; in any order, uint64.
    """

    rows: Integers
    entries: Entries


@inline
def entry_of(bits: Any, context: Any) -> Any:
    """Return the entry of a pair, whose priority is the upper half of `bits`."""
    priority = bits >> _HALF
    return (priority << _HALF) | (np.uint64(context) ^ (mix(priority) & _LOWER))


@inline
def context_of(entry: Any) -> Any:
    """Return the context of an entry."""
    return np.int32((entry & _LOWER) ^ (mix(entry >> _HALF) & _LOWER))


def sample_pairs(
    segment: Segment, first: int, last: int, windows: Windows, key: np.uint64, n_words: int, size: int
) -> Sample:
    """Sample the pairs of the centers first..last-1 of a segment, for each center's word.

    Parameters
    ----------
    segment, first, last
        Text, and a range of indices into its tokens, of fewer than 2**31 pairs.
    windows
        How far they reach.
    key
        Stream of the priorities.
    n_words
        Words of the vocabulary.
    size
        Most pairs kept of a word.
    """
    ends = np.zeros(n_words + 1, np.int32)
    _deal(segment, first, last, windows, key, ends[1:], np.empty(0, np.uint64), False)
    sizes = ends[1:].copy()
    edges = np.cumsum(ends, dtype=np.int32)
    entries = np.empty(edges[-1], np.uint64)
    _deal(segment, first, last, windows, key, edges[:-1].copy(), entries, True)
    words = np.flatnonzero(sizes)
    kept = _cut(entries, edges, words, size)
    return Sample(np.column_stack([words, sizes[words]]).astype(np.int32), entries[:kept])


@kernel
def _deal(
    segment: Any, first: Any, last: Any, windows: Any, key: Any, places: Any, entries: Any, write: Any
) -> None:  # fmt: skip
    """Move the place of each center's word on by its pairs; write their entries there, or only count them."""
    tokens, bounds = segment.tokens, segment.bounds
    sentence = np.searchsorted(bounds, first, side="right") - 1
    for center in range(first, last):
        while center >= bounds[sentence + 1]:
            sentence += 1
        position, word = segment.positions[center], tokens[center]
        reach = reach_of(windows.window, windows.shrink, windows.key, position)
        begin, end = max(bounds[sentence], center - reach), min(bounds[sentence + 1], center + reach + 1)
        if write:
            counter = position * (2 * windows.window + 1) + windows.window - center
            at = places[word]
            for i in range(begin, end):
                if i != center:
                    entries[at] = entry_of(draw(key, counter + i), tokens[i])
                    at += 1
        places[word] += end - begin - 1


@kernel
def _cut(entries: Any, edges: Any, words: Any, size: Any) -> Any:
    """Leave the `size` smallest entries of each word at most, without gaps; return how many these are."""
    end = 0
    for word in words:
        part = entries[edges[word] : edges[word + 1]]
        if len(part) > size:
            part = np.partition(part, size - 1)[:size]
        for i in range(len(part)):
            entries[end + i] = part[i]
        end += len(part)
    return end


class Reservoir:
    """The pairs of smallest priority of each of some consecutive rows, of all pieces of text that came by.

    Parameters
    ----------
    first, n_rows
        The first row, and how many there are.
    size
        Most pairs kept of a row; they take 8 bytes each.
    """

    def __init__(self, first: int, n_rows: int, size: int) -> None:
        self._first = first
        self._heaps = np.empty((n_rows, size), np.uint64)
        self._seen = np.zeros(n_rows, np.int64)

    def add(self, sample: Sample) -> None:
        """Add what a piece of text has of these rows, and of no others; cut to the same size or a larger one."""
        _add(self._heaps, self._seen, self._first, sample.rows, sample.entries)

    def contexts(self) -> tuple[Integers, npt.NDArray[np.int64]]:
        """Return the contexts kept by rising priority, that is in random order, and the number of pairs seen.

        Returns
        -------
        contexts, seen
            Shapes (n_rows, size) int32 and (n_rows,) int64. What a row has kept is its first min(seen, size) columns;
            the others hold NO_CONTEXT.
        """
        contexts = np.full(self._heaps.shape, NO_CONTEXT, np.int32)
        _sort(self._heaps, self._seen, contexts)
        return contexts, self._seen


@inline
def _sink(heap: Any, start: Any) -> None:
    """Move an entry of a heap, whose largest entry is the first, down to its place."""
    entry, at, child = heap[start], start, 2 * start + 1
    while child < len(heap):
        if child + 1 < len(heap) and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= entry:
            break
        heap[at] = heap[child]
        at, child = child, 2 * child + 1
    heap[at] = entry


@kernel
def _add(heaps: Any, seen: Any, first: Any, rows: Any, entries: Any) -> None:
    """Fill each row; a full one is a heap, whose largest entry gives way to smaller ones."""
    size, at = heaps.shape[1], 0
    for k in range(len(rows)):
        row, pairs = rows[k, 0] - first, rows[k, 1]
        heap, held = heaps[row], min(seen[row], size)
        for i in range(at, at + min(pairs, size)):
            if held < size:
                heap[held] = entries[i]
                held += 1
                if held == size:
                    for j in range(size // 2):
                        _sink(heap, size // 2 - 1 - j)
            elif entries[i] < heap[0]:
                heap[0] = entries[i]
                _sink(heap, 0)
        at += min(pairs, size)
        seen[row] += pairs


@kernel
def _sort(heaps: Any, seen: Any, contexts: Any) -> None:
    for row in range(len(heaps)):
        held = heaps[row, : min(seen[row], heaps.shape[1])]
        held.sort()
        for column in range(len(held)):
            contexts[row, column] = context_of(held[column])


@kernel
def repeat_contexts(contexts: Any, seen: Any, first: Any, key: Any) -> None:
    """Fill the rows that have seen fewer pairs than they have columns: with all of them again, in another order.

    Each stretch of `seen` columns has every pair once; of the last one there may be but a part.

    Parameters
    ----------
    contexts, seen
        As of `Reservoir.contexts`; filled in place.
    first
        Number of the first row.
    key
        Stream of the shuffles.
    """
    size = contexts.shape[1]
    for row in range(len(contexts)):
        n = seen[row]
        if n == 0 or n >= size:
            continue
        shuffled = contexts[row, :n].copy()
        for column in range(n, size):
            i = column % n
            j = i + np.int64(below(draw(key, (first + row) * size + column), n - i))
            shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
            contexts[row, column] = shuffled[i]
