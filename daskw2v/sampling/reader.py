"""Segments of the corpus, read from the shards that hold them."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.errors import DamageError
from daskw2v.intact import StoredArray
from daskw2v.sampling.segments import Segment, SegmentBuilder, count_known
from daskw2v.shards.layout import Corpus, own_starts
from daskw2v.storage import Store, open_array, read_array
from daskw2v.vocabulary.count import StoredVocabulary

_MARGIN = 64  # positions read around a range at first, for each word of the window
OPEN_SHARDS = 32  # each epoch goes through all shards of the text, and to open one is slow; each costs some MB


class _Shard(NamedTuple):
    url: str
    codes: StoredArray
    first: int
    starts: npt.NDArray[np.int64]
    ids: npt.NDArray[np.int32]


class SegmentReader:
    """Reads any range of corpus positions as word ids, whatever shards it lies in.

    Parameters
    ----------
    work
        The work directory.
    corpus, vocabulary
        What was encoded and which ids its words have.
    """

    def __init__(self, work: Store, corpus: Corpus, vocabulary: StoredVocabulary) -> None:
        self._corpus = corpus

        @lru_cache(OPEN_SHARDS)  # by their paths: of an excerpt many may be parts of one that is stored
        def open_stored(path: str) -> tuple[StoredArray, npt.NDArray[np.int64], npt.NDArray[np.int32]]:
            group = (work / path).open_group()
            ids = vocabulary.read_map(path)
            _check_numbers(ids, -1, vocabulary.size, f"{vocabulary.home.url}/maps")
            return open_array(group, "codes"), read_array(group, "starts"), ids

        def open_shard(number: int) -> _Shard:
            shard = corpus.shards[number]
            codes, starts, ids = open_stored(shard.path)
            return _Shard(f"{work.url}/{shard.path}", codes, shard.first, own_starts(shard, starts), ids)

        self._open_shard = lru_cache(OPEN_SHARDS)(open_shard)

    def read(
        self, start: int, stop: int, window: int, keep: npt.NDArray[np.uint64], key: np.uint64
    ) -> tuple[Segment, int]:
        """Read the positions start..stop-1, and so much around them that no window is cut.

        Parameters
        ----------
        start, stop
            Range of corpus positions.
        window
            Tokens kept on either side that windows may reach.
        keep, key
            Subsampling: `keep_thresholds` of the vocabulary, and the stream of the epoch's draws.

        Returns
        -------
        segment, words
            What is left after subsampling, and how many of start..stop-1 are words of the vocabulary.
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
            margin *= 8  # few words are kept here: look further

    def _read(
        self, low: int, start: int, stop: int, high: int, keep: npt.NDArray[np.uint64], key: np.uint64
    ) -> tuple[Segment, int, bool, bool]:
        """Read low..high-1; tell too whether a sentence starts in low..start, and in stop..high-1."""
        bounds = self._corpus.bounds
        builder = SegmentBuilder(high - low, keep, key)
        words, begun, ended = 0, False, False
        first = int(np.searchsorted(bounds, low, side="right")) - 1
        for number in range(first, len(self._corpus.shards)):
            origin = int(bounds[number])
            if origin >= high:
                break
            a, b = max(low - origin, 0), min(high, int(bounds[number + 1])) - origin
            url, array, begin, starts, ids = self._open_shard(number)
            codes = array[begin + a : begin + b]
            _check_numbers(codes, 0, len(ids), f"{url}/codes")
            at_low, after_start, at_stop, at_high = np.searchsorted(
                starts, [a, min(start - origin + 1, b), max(stop - origin, a), b]
            )
            begun, ended = begun or after_start > at_low, ended or at_high > at_stop
            builder.add(codes, starts[at_low:at_high] - a, ids, origin + a)
            inner = slice(max(start - origin - a, 0), max(stop - origin - a, 0))
            words += int(count_known(codes[inner], ids))
        return builder.finish(), words, bool(begun), bool(ended)


def _check_numbers(numbers: npt.NDArray[np.int32], low: int, high: int, url: str) -> None:
    """Refuse numbers that are not in low..high-1: whoever made them, kernels trust them."""
    if len(numbers) and not low <= numbers.min() <= numbers.max() < high:
        raise DamageError.of(url, f"has numbers that are not in {low}..{high - 1}")
