"""Segments, from which kernels read text: ids of known words, with frequent words subsampled.

Work is named by positions in the corpus. A segment covers the positions start..stop-1, with a margin on both sides that
completes the windows at its ends. So wherever work is cut, each pair of center and context is trained exactly once.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from daskw2v.kernels.jit import kernel
from daskw2v.kernels.rng import draw
from daskw2v.types import Float64Array, Int32Array, Int64Array, UInt64Array

# The largest sample / f at which word2vec keeps a word with a probability below 1
_SURELY_KEPT = ((math.sqrt(5) - 1) / 2) ** 2
_ALWAYS_KEPT = np.uint64(1 << 32)  # a threshold that all draws are below
SEGMENT = 1 << 20  # corpus positions in memory at once: 4 MB of codes
POSITION = 2 * 4 + 2 * 8  # bytes of a position while it is read: code, token, position, bound


class Segment(NamedTuple):
    """Subsampled tokens of a range of the corpus.

    Parameters
    ----------
    tokens
        Word ids, shape (n,) int32.
    positions
        Position of each token in the corpus, shape (n,) int64; random draws are keyed by it.
    bounds
        Bounds of the sentences in `tokens`, shape (s + 1,) int64.
    """

    tokens: Int32Array
    positions: Int64Array
    bounds: Int64Array

    def centers(self, start: int, stop: int) -> tuple[int, int]:
        """Return the range of indices of the tokens with positions in start..stop-1: first, and one past the last."""
        first, last = np.searchsorted(self.positions, [start, stop])
        return int(first), int(last)


def keep_thresholds(counts: Int64Array, sample: float, total: int | None = None) -> UInt64Array:
    """Return the probability of keeping each word, times 2**32, shape of `counts`, uint64.

    The probability is word2vec's: sqrt(sample / f) + sample / f for a word of relative frequency f. With `sample` 0,
    all words are kept.

    Parameters
    ----------
    counts
        Counts of the most frequent words, or of all. All further words are always kept.
    sample
        As in Params.
    total
        Sum of the counts of all words; None if `counts` has all words.
    """
    return (keep_shares(counts, sample, total) * 2.0**32).astype(np.uint64)


def keep_shares(counts: Int64Array, sample: float, total: int | None = None) -> Float64Array:
    """Return the probability of keeping each word, from 0 to 1, shape of `counts`; arguments as `keep_thresholds`."""
    if not sample:
        return np.ones(len(counts))
    ratio = sample * (counts.sum() if total is None else total) / np.maximum(counts, 1)
    return np.asarray(np.minimum(1.0, np.sqrt(ratio) + ratio))


def append_threshold(keep: UInt64Array) -> UInt64Array:
    """Return thresholds of words with one more for all further words, by which these are always kept."""
    return np.append(keep, _ALWAYS_KEPT)


def max_dropped_words(sample: float) -> int:
    """Return the greatest number of words that subsampling with `sample` can drop in any text.

    No text has more words that are so frequent.
    """
    return math.ceil(_SURELY_KEPT / sample) if sample else 0


def cut_range(start: int, stop: int, length: int = SEGMENT) -> Iterator[tuple[int, int]]:
    """Cut start..stop-1 into ranges of at most `length` positions; yield the first and one past the last of each."""
    for first in range(start, stop, length):
        yield first, min(stop, first + length)


class SegmentBuilder:
    """Builds a segment of parts of consecutive shards.

    Parameters
    ----------
    capacity
        Largest number of positions to add.
    keep
        `keep_thresholds` of the vocabulary, or of its most frequent words.
    key
        Key of the random numbers by which the epoch keeps or drops tokens.
    """

    def __init__(self, capacity: int, keep: UInt64Array, key: np.uint64) -> None:
        bounds = np.empty(capacity + 2, np.int64)
        bounds[0] = 0
        self._segment = Segment(np.empty(capacity, np.int32), np.empty(capacity, np.int64), bounds)
        self._n, self._sentences = 0, 1
        self._keep, self._key = append_threshold(keep), key

    def add(self, codes: Int32Array, starts: Int64Array, ids: Int32Array, position: int) -> None:
        """Add consecutive tokens of one shard to the segment.

        Parameters
        ----------
        codes
            Codes of the tokens, shape (n,) int32.
        starts
            Indices into `codes` at which a sentence starts, ascending, shape (s,) int64.
        ids
            Word id of each code, -1 for a word outside the vocabulary, shape (n_types,) int32.
        position
            Corpus position of codes[0].
        """
        rest = self._keep, self._key, self._segment, self._n, self._sentences
        self._n, self._sentences = _append_kept(codes, starts, ids, position, *rest)

    def finish(self) -> Segment:
        """Return the segment; the builder must not be used again."""
        tokens, positions, bounds = self._segment
        if self._sentences > 1 and bounds[self._sentences - 1] == self._n:
            self._sentences -= 1  # no token of the last sentence was kept
        bounds[self._sentences] = self._n
        return Segment(tokens[: self._n], positions[: self._n], bounds[: self._sentences + 1])


@kernel
def _append_kept(
    codes: Any, starts: Any, ids: Any, position: Any, keep: Any, key: Any, segment: Any, n: Any, sentences: Any
) -> Any:
    """Append the kept tokens to a segment; return the new numbers of tokens and of sentences.

    `n` and `sentences` are the numbers before; `codes` to `position` are as in `SegmentBuilder.add`. The last threshold
    of `keep` is for all further words. Each token is written, and the next one over it if it is not kept: a branch that
    depends on a draw cannot be predicted, and would take four times as long.
    """
    tokens, positions, bounds = segment
    n, n_starts, last_known = np.uint64(n), len(starts), len(keep) - 1
    for s in range(n_starts + 1):
        first = np.uint64(starts[s - 1]) if s else np.uint64(0)
        last = np.uint64(starts[s]) if s < n_starts else np.uint64(len(codes))
        if s and np.uint64(bounds[sentences - 1]) != n:  # sentences without kept tokens are dropped
            bounds[sentences] = n
            sentences += 1
        for i in range(first, last):
            word: Any = np.int64(ids[np.uint64(codes[i])])
            threshold = keep[np.uint64(max(0, min(word, last_known)))]
            tokens[n], positions[n] = word, position + i
            n += np.uint64((word >= 0) & ((draw(key, position + i) >> np.uint64(32)) < threshold))
    return np.int64(n), sentences


@kernel
def count_known(codes: Any, ids: Any) -> Any:
    """Return the number of codes whose word is in the vocabulary; `ids` are the word ids of all codes, or -1."""
    known = 0
    for code in codes:
        known += 1 if ids[code] >= 0 else 0
    return known
