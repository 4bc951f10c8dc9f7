"""Contexts of each word, sampled uniformly without replacement from all pairs of a text.

Each pair has a random priority, a pure function of its position, and the pairs of lowest priority are kept for each
word. So the sample does not depend on how the text is cut, or on the order of its pieces. This is reservoir sampling by
random keys, whose bottom-k samples can be merged (Vitter 1985; Cohen and Kaplan 2007).

A pair is stored as an entry, a uint64: its priority in the upper half, and its context in the lower half, XORed with
bits derived from the priority. So entries sort by priority, and ties between priorities favour no word.
"""

from typing import Any, NamedTuple

import numpy as np

from daskw2v.kernels.jit import inline, kernel
from daskw2v.kernels.rng import below, draw, mix
from daskw2v.sampling.pairs import WindowSize, draw_window_size
from daskw2v.sampling.segments import Segment, append_threshold
from daskw2v.types import Int32Array, Int64Array, UInt64Array

_HALF, _LOWER = np.uint64(32), np.uint64(2**32 - 1)
NO_CONTEXT = -1  # context in the rows of words without pairs


class PairSample(NamedTuple):
    """Sampled pairs of a piece of text.

    Parameters
    ----------
    rows
        The words that have pairs, ascending, and the number of pairs of each, shape (n, 2) int32.
    entries
        Entries of the pairs of lowest priority, word by word, in any order for a word, uint64.
    """

    rows: Int32Array
    entries: UInt64Array


@inline
def pack_entry(bits: Any, context: Any) -> Any:
    """Return the entry of a pair with a context, uint64; the upper half of `bits` is the pair's priority."""
    priority = bits >> _HALF
    return (priority << _HALF) | (np.uint64(context) ^ (mix(priority) & _LOWER))


@inline
def unpack_entry(entry: Any) -> Any:
    """Return the context of an entry, int32."""
    return np.int32((entry & _LOWER) ^ (mix(entry >> _HALF) & _LOWER))


def sample_pairs(
    segment: Segment,
    first: int,
    last: int,
    windows: WindowSize,
    key: np.uint64,
    n_words: int,
    size: int,
    keep: UInt64Array,
) -> PairSample:
    """Sample the pairs of the centers first..last-1 of a segment, for each center's word.

    Parameters
    ----------
    segment, first, last
        Text, and a range of indices into its tokens, with fewer than 2**31 pairs.
    windows
        Size of windows.
    key
        Key of the priorities.
    n_words
        Number of words in the vocabulary.
    size
        Greatest number of pairs to keep of a word.
    keep
        `segments.keep_thresholds` of contexts, for the most frequent words or all. Pairs of further words all count.
    """
    keep = append_threshold(keep)
    ends = np.zeros(n_words + 1, np.int32)
    _add_entries(segment, first, last, windows, key, keep, ends[1:], np.empty(0, np.uint64), False)
    sizes = ends[1:].copy()
    edges = np.cumsum(ends, dtype=np.int32)
    entries = np.empty(edges[-1], np.uint64)
    _add_entries(segment, first, last, windows, key, keep, edges[:-1].copy(), entries, True)
    words = np.flatnonzero(sizes)
    kept = _keep_smallest(entries, edges, words, size)
    return PairSample(np.column_stack([words, sizes[words]]).astype(np.int32), entries[:kept])


@kernel
def _add_entries(
    segment: Any, first: Any, last: Any, windows: Any, key: Any, keep: Any, next_indices: Any, entries: Any, write: Any
) -> None:
    """Advance the next index of each center's word by the center's pairs, and write their entries if `write`.

    `next_indices` are indices in `entries`, shape (words,). The upper half of a pair's random number is its priority;
    the lower half decides whether its context is kept.
    """
    tokens, bounds, last_known = segment.tokens, segment.bounds, len(keep) - 1
    sentence = np.searchsorted(bounds, first, side="right") - 1
    for center in range(first, last):
        while center >= bounds[sentence + 1]:
            sentence += 1
        position, word = segment.positions[center], tokens[center]
        reach = draw_window_size(windows.window, windows.shrink, windows.key, position)
        begin, end = max(bounds[sentence], center - reach), min(bounds[sentence + 1], center + reach + 1)
        counter, index = position * (2 * windows.window + 1) + windows.window - center, next_indices[word]
        for i in range(begin, end):
            bits = draw(key, counter + i)
            if i != center and (bits & _LOWER) < keep[min(tokens[i], last_known)]:
                if write:
                    entries[index] = pack_entry(bits, tokens[i])
                index += 1
        next_indices[word] = index


@inline
def _sift_down(heap: Any, start: Any) -> None:
    """Move an entry of a max-heap down until no child is larger."""
    entry, index, child = heap[start], start, 2 * start + 1
    while child < len(heap):
        if child + 1 < len(heap) and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= entry:
            break
        heap[index] = heap[child]
        index, child = child, 2 * child + 1
    heap[index] = entry


@inline
def _make_heap(entries: Any) -> None:
    """Reorder entries into a max-heap."""
    half = len(entries) // 2
    for i in range(half):
        _sift_down(entries, half - 1 - i)


@inline
def _replace_largest(heap: Any, entry: Any) -> None:
    """Replace the largest entry of a max-heap, if another one is smaller."""
    if entry < heap[0]:
        heap[0] = entry
        _sift_down(heap, 0)


@kernel
def _keep_smallest(entries: Any, edges: Any, words: Any, size: Any) -> Any:
    """Move the `size` smallest entries of each word to the front of `entries`, word after word; return their number.

    `edges` are the bounds of each word's entries, shape (words + 1,); `words` are the words that have any, ascending.
    A word's entries are in no order afterwards.
    """
    end = 0
    for word in words:
        part = entries[edges[word] : edges[word + 1]]
        kept = part[: min(len(part), size)]
        if len(part) > size:  # np.partition would take a heap's time, and ten times as long to compile
            _make_heap(kept)
            for entry in part[size:]:
                _replace_largest(kept, entry)
        for i in range(len(kept)):
            entries[end + i] = kept[i]
        end += len(kept)
    return end


class Reservoir:
    """The pairs of lowest priority of a range of rows, over all pieces of text that were added.

    Parameters
    ----------
    first, n_rows
        The first row, and the number of rows.
    size
        Greatest number of pairs to keep of a row; each takes 8 bytes.
    """

    def __init__(self, first: int, n_rows: int, size: int) -> None:
        self._first = first
        self._heaps = np.empty((n_rows, size), np.uint64)
        self._seen = np.zeros(n_rows, np.int64)

    def add(self, sample: PairSample) -> None:
        """Add the sample of a piece of text with rows of the range only, and a `size` not below the reservoir's."""
        _add_sample(self._heaps, self._seen, self._first, sample.rows, sample.entries)

    def contexts(self) -> tuple[Int32Array, Int64Array]:
        """Return the contexts of each row in order of priority, which is random, and the number of pairs added.

        No sample may be added afterwards.

        Returns
        -------
        contexts, seen
            Shapes (n_rows, size) int32 and (n_rows,) int64. A row has contexts in its first min(seen, size) columns
            and NO_CONTEXT in the rest.
        """
        contexts = np.full(self._heaps.shape, NO_CONTEXT, np.int32)
        _sort_rows(self._heaps, self._seen, contexts)
        return contexts, self._seen


@kernel
def _add_sample(heaps: Any, seen: Any, first: Any, rows: Any, entries: Any) -> None:
    """Add the rows and entries of a `PairSample` to heaps, shape (n, size), of which row 0 is the row `first`.

    A full row is a max-heap, whose largest entry is replaced by smaller ones. `seen` counts the pairs of each row.
    """
    size, begin = heaps.shape[1], 0
    for k in range(len(rows)):
        row, pairs = rows[k, 0] - first, rows[k, 1]
        heap, n_entries = heaps[row], min(seen[row], size)
        for i in range(begin, begin + min(pairs, size)):
            if n_entries < size:
                heap[n_entries] = entries[i]
                n_entries += 1
                if n_entries == size:
                    _make_heap(heap)
            else:
                _replace_largest(heap, entries[i])
        begin += min(pairs, size)
        seen[row] += pairs


@kernel
def _sort_rows(heaps: Any, seen: Any, contexts: Any) -> None:
    """Sort the entries of each row, and write their contexts to `contexts`, shape (n, size)."""
    for row in range(len(heaps)):
        entries = heaps[row, : min(seen[row], heaps.shape[1])]
        entries.sort()
        for column in range(len(entries)):
            contexts[row, column] = unpack_entry(entries[column])


@kernel
def repeat_contexts(contexts: Any, seen: Any, first: Any, key: Any) -> None:
    """Fill rows with fewer pairs than columns by repeating all their pairs, each time in another order.

    Every `seen` columns have each pair once; the last repetition may be incomplete.

    Parameters
    ----------
    contexts, seen
        From `Reservoir.contexts`; filled in place.
    first
        Number of the first row in the whole matrix.
    key
        Key of the random orders.
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


@kernel
def merge_rows(contexts: Any, seen: Any, first: Any, rows: Any, old: Any, key: Any) -> None:
    """Merge rows of old text into rows of new text, both in random order.

    Parameters
    ----------
    contexts, seen
        Rows of new text, as `Reservoir.contexts` returns them, shapes (n, l) and (n,); changed in place into rows
        of all text.
    first
        Number of the first row.
    rows
        Index of each old row in the whole matrix, and number of its pairs, shape (m, 2) int64.
    old
        Contexts of the old rows, with new ids, shape (m, l).
    key
        Key of the random numbers.
    """
    size = contexts.shape[1]
    for k in range(len(rows)):
        row, old_remaining = rows[k, 0] - first, rows[k, 1]
        new, new_remaining, n_old = contexts[row].copy(), seen[row], 0
        seen[row] += old_remaining
        for column in range(min(seen[row], size)):
            remaining = np.uint64(old_remaining + new_remaining)  # beyond 2**32 for a frequent word
            if draw(key, rows[k, 0] * size + column) % remaining < np.uint64(old_remaining):
                contexts[row, column] = old[k, n_old]
                old_remaining, n_old = old_remaining - 1, n_old + 1
            else:
                contexts[row, column] = new[column - n_old]
                new_remaining -= 1
