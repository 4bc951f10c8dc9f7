"""From stored codes to what a kernel reads: ids gathered, unknown words dropped, frequent words subsampled.

Work is named by token positions of the whole corpus. A segment covers the positions start..stop-1 and carries some
tokens around them, so that the windows of its first and last centers are whole: wherever work is cut, each
pair of center and context is trained once.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.jit import kernel
from daskw2v.sampling.rng import draw

# The largest sample / f at which word2vec's chance to keep a word is below one
_KEPT = ((math.sqrt(5) - 1) / 2) ** 2
SEGMENT = 1 << 20  # corpus positions held at once: 4 MB of codes


class Segment(NamedTuple):
    """Subsampled tokens of a stretch of the corpus.

    Parameters
    ----------
    tokens
        Word ids, shape (n,) int32.
    positions
        Each token's position in the corpus, shape (n,) int64; the counters of its draws.
    bounds
        Where each sentence starts in `tokens`, and where the last one ends, shape (s + 1,) int64.
    """

    tokens: npt.NDArray[np.int32]
    positions: npt.NDArray[np.int64]
    bounds: npt.NDArray[np.int64]

    def centers(self, start: int, stop: int) -> tuple[int, int]:
        """Return the range of indices whose positions lie in start..stop-1."""
        first, last = np.searchsorted(self.positions, [start, stop])
        return int(first), int(last)


def keep_thresholds(counts: npt.NDArray[np.int64], sample: float, total: int | None = None) -> npt.NDArray[np.uint64]:
    """Return, for each word, how many of 2**32 draws keep it, shape of `counts`, uint64.

    The chance is word2vec's: sqrt(sample / f) + sample / f for a word of relative frequency f; `sample` 0
    keeps all.

    Parameters
    ----------
    counts
        Of the most frequent words, or of all; words that thresholds are not known of are kept.
    sample
        As in Params.
    total
        Sum of the counts of all words, where `counts` are not all.
    """
    if not sample:
        return np.full(len(counts), 2**32, np.uint64)
    ratio = sample * (counts.sum() if total is None else total) / np.maximum(counts, 1)
    return (np.minimum(1.0, np.sqrt(ratio) + ratio) * 2.0**32).astype(np.uint64)


def most_dropped(sample: float) -> int:
    """Return how many words `sample` can drop at most, whatever the text: only so many can be frequent enough."""
    return math.ceil(_KEPT / sample) if sample else 0


def cut(start: int, stop: int, length: int = SEGMENT) -> Iterator[tuple[int, int]]:
    """Cut the positions start..stop-1 into consecutive ranges of at most `length`."""
    for a in range(start, stop, length):
        yield a, min(stop, a + length)


class SegmentBuilder:
    """Collects a segment from the pieces of consecutive shards.

    Parameters
    ----------
    capacity
        Most positions that will be added.
    keep
        `keep_thresholds` of the vocabulary.
    key
        Stream of the subsampling draws of this epoch.
    """

    def __init__(self, capacity: int, keep: npt.NDArray[np.uint64], key: np.uint64) -> None:
        self._tokens = np.empty(capacity, np.int32)
        self._positions = np.empty(capacity, np.int64)
        self._bounds = np.empty(capacity + 2, np.int64)
        self._bounds[0] = 0
        self._n = 0
        self._sentences = 1
        self._keep = keep
        self._key = key

    def add(
        self,
        codes: npt.NDArray[np.int32],
        starts: npt.NDArray[np.int64],
        ids: npt.NDArray[np.int32],
        position: int,
    ) -> None:
        """Add tokens of one shard.

        Parameters
        ----------
        codes
            Local codes, shape (n,) int32.
        starts
            Indices into `codes` at which a sentence starts, ascending, shape (s,) int64.
        ids
            Word id of each local code, -1 for a word outside the vocabulary, shape (n_types,) int32.
        position
            Corpus position of codes[0].
        """
        self._n, self._sentences = _select(
            codes, starts, ids, position, self._keep, self._key, self._tokens, self._positions, self._bounds,
            self._n, self._sentences,
        )  # fmt: skip

    def finish(self) -> Segment:
        """Return the segment; the builder must not be used again."""
        if self._sentences > 1 and self._bounds[self._sentences - 1] == self._n:
            self._sentences -= 1  # of the last sentence nothing is left
        self._bounds[self._sentences] = self._n
        return Segment(self._tokens[: self._n], self._positions[: self._n], self._bounds[: self._sentences + 1])


@kernel
def _select(
    codes: Any, starts: Any, ids: Any, position: Any, keep: Any, key: Any, tokens: Any, positions: Any,
    bounds: Any, n: Any, sentences: Any,
) -> Any:  # fmt: skip
    """Append the kept tokens; return the new numbers of tokens and of sentences begun."""
    s = 0
    for i in range(len(codes)):
        if s < len(starts) and starts[s] == i:
            s += 1
            if bounds[sentences - 1] != n:  # a sentence of which nothing is left is none
                bounds[sentences] = n
                sentences += 1
        word = ids[codes[i]]
        if word >= len(keep) or (word >= 0 and (draw(key, position + i) >> np.uint64(32)) < keep[word]):
            tokens[n] = word
            positions[n] = position + i
            n += 1
    return n, sentences


@kernel
def count_known(codes: Any, ids: Any) -> Any:
    """Return how many of the codes are words of the vocabulary."""
    known = 0
    for code in codes:
        known += 1 if ids[code] >= 0 else 0
    return known
