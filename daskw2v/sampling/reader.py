"""Reads segments of the corpus from its shards."""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from daskw2v.errors import DamageError
from daskw2v.sampling.segments import Segment, SegmentBuilder, count_known
from daskw2v.shards.layout import Corpus, own_starts
from daskw2v.store.arrays import open_array, read_array
from daskw2v.store.checksums import StoredArray
from daskw2v.store.storage import Store
from daskw2v.types import Int32Array, Int64Array, UInt64Array
from daskw2v.vocabulary.count import StoredVocabulary

_MARGIN = 64  # positions to read at first on both sides of a range, for each word of the window
OPEN_SHARDS = 32  # shards kept open, as opening one is slow; each takes some MB
CHUNKS = 8  # kept as they were read: a chunk is decoded whole, and the next range begins in the last one
CHUNK = 1 << 20  # codes that are read at once, at least


class _Shard(NamedTuple):
    path: str
    codes: StoredArray
    first: int
    starts: Int64Array
    ids: Int32Array


class SegmentReader:
    """Reads any range of corpus positions as word ids, across shards.

    Parameters
    ----------
    work
        The work directory.
    corpus, vocabulary
        The corpus, and the vocabulary of the ids.
    """

    def __init__(self, work: Store, corpus: Corpus, vocabulary: StoredVocabulary) -> None:
        self._corpus = corpus

        @lru_cache(OPEN_SHARDS)  # by path: many shards of an excerpt may be parts of one stored shard
        def open_stored(path: str) -> tuple[StoredArray, Int64Array, Int32Array]:
            group = (work / path).open_group()
            ids = vocabulary.read_map(path)
            _check_numbers(ids, -1, vocabulary.size, f"{vocabulary.home.url}/maps")
            return open_array(group, "codes"), read_array(group, "starts"), ids

        def open_shard(number: int) -> _Shard:
            shard = corpus.shards[number]
            codes, starts, ids = open_stored(shard.path)
            return _Shard(shard.path, codes, shard.first, own_starts(shard, starts), ids)

        @lru_cache(CHUNKS)
        def read_codes(path: str, start: int, stop: int) -> Int32Array:
            array, _, ids = open_stored(path)
            codes: Int32Array = array[start:stop]
            _check_numbers(codes, 0, len(ids), f"{work.url}/{path}/codes")
            return codes

        self._open_shard, self._read_codes = lru_cache(OPEN_SHARDS)(open_shard), read_codes

    def read(self, start: int, stop: int, window: int, keep: UInt64Array, key: np.uint64) -> tuple[Segment, int]:
        """Read the positions start..stop-1, with a margin on both sides that completes all windows.

        Parameters
        ----------
        start, stop
            Range of corpus positions.
        window
            Size of the margins, in tokens after subsampling.
        keep, key
            Subsampling: `keep_thresholds` of the vocabulary, and the stream of the epoch's draws.

        Returns
        -------
        segment, words
            The segment after subsampling, and the number of known tokens in start..stop-1.
        """
        end = int(self._corpus.bounds[-1])
        margin = _MARGIN * window
        while True:
            low, high = max(0, start - margin), min(end, stop + margin)
            segment, words, begun, ended = self._read(low, start, stop, high, keep, key)
            first, last = segment.centers(start, stop)
            before = low == 0 or begun or first >= window
            after = high == end or ended or len(segment.tokens) - last >= window
            if before and after:
                return segment, words
            margin *= 8  # too few tokens are kept here

    def _read(
        self, low: int, start: int, stop: int, high: int, keep: UInt64Array, key: np.uint64
    ) -> tuple[Segment, int, bool, bool]:
        """Read low..high-1; also return whether a sentence starts in low..start, and in stop..high-1."""
        bounds = self._corpus.bounds
        builder = SegmentBuilder(high - low, keep, key)
        words, begun, ended = 0, False, False
        first = int(np.searchsorted(bounds, low, side="right")) - 1
        for number in range(first, len(self._corpus.shards)):
            origin = int(bounds[number])
            if origin >= high:
                break
            a, b = max(low - origin, 0), min(high, int(bounds[number + 1])) - origin
            shard = self._open_shard(number)
            starts = shard.starts
            at_low, after_start, at_stop, at_high = np.searchsorted(
                starts, [a, min(start - origin + 1, b), max(stop - origin, a), b]
            )
            begun, ended = begun or after_start > at_low, ended or at_high > at_stop
            for at, codes in self._codes(shard, a, b):
                some = slice(*np.searchsorted(starts, [at, at + len(codes)]))
                builder.add(codes, starts[some] - at, shard.ids, origin + at)
                inner = slice(max(start - origin - at, 0), max(stop - origin - at, 0))
                words += int(count_known(codes[inner], shard.ids))
        return builder.finish(), words, bool(begun), bool(ended)

    def _codes(self, shard: _Shard, start: int, stop: int) -> Iterator[tuple[int, Int32Array]]:
        """Yield where a part of the positions start..stop-1 of a shard begins, and its codes."""
        step = shard.codes.chunks[0]
        step *= -(-CHUNK // step)
        at, end = shard.first + start, shard.first + stop
        while at < end:
            first = at // step * step
            codes = self._read_codes(shard.path, first, min(first + step, len(shard.codes)))
            last = min(end, first + len(codes))
            yield at - shard.first, codes[at - first : last - first]
            at = last


def _check_numbers(numbers: Int32Array, low: int, high: int, url: str) -> None:
    """Refuse numbers outside low..high-1, because kernels do not check bounds."""
    if len(numbers) and not low <= numbers.min() <= numbers.max() < high:
        raise DamageError.of(url, f"has numbers that are not in {low}..{high - 1}")
