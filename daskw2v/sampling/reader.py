"""Segments of the corpus, read from the shards that hold them."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import zarr

from daskw2v.sampling.segments import Segment, SegmentBuilder, count_known
from daskw2v.shards.layout import Corpus, open_codes, read_starts
from daskw2v.storage import Store
from daskw2v.vocabulary.count import StoredVocabulary

_OPEN_SHARDS = 8  # a reader goes through the shards in turn; each costs a few MB besides its codes


class _Shard(NamedTuple):
    codes: zarr.Array[Any]
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

        def open_shard(number: int) -> _Shard:
            shard = corpus.shards[number]
            return _Shard(open_codes(work, shard), read_starts(work, shard), vocabulary.read_map(number))

        self._open_shard = lru_cache(_OPEN_SHARDS)(open_shard)

    def read(
        self, start: int, stop: int, margin: int, keep: npt.NDArray[np.uint64], key: np.uint64
    ) -> tuple[Segment, int]:
        """Read the positions start..stop-1, and up to `margin` more on either side for their windows.

        Parameters
        ----------
        start, stop
            Range of corpus positions.
        margin
            Positions read around it.
        keep, key
            Subsampling: `keep_thresholds` of the vocabulary, and the stream of the epoch's draws.

        Returns
        -------
        segment, words
            What is left after subsampling, and how many of start..stop-1 are words of the vocabulary.
        """
        bounds = self._corpus.bounds
        low, high = max(0, start - margin), min(int(bounds[-1]), stop + margin)
        builder = SegmentBuilder(high - low, keep, key)
        words = 0
        first = int(np.searchsorted(bounds, low, side="right")) - 1
        for number in range(first, len(self._corpus.shards)):
            origin = int(bounds[number])
            if origin >= high:
                break
            a, b = max(low - origin, 0), min(high, int(bounds[number + 1])) - origin
            array, starts, ids = self._open_shard(number)
            codes = np.asarray(array[a:b])
            starts = starts[slice(*np.searchsorted(starts, [a, b]))] - a
            builder.add(codes, starts, ids, origin + a)
            inner = slice(max(start - origin - a, 0), max(stop - origin - a, 0))
            words += int(count_known(codes[inner], ids))
        return builder.finish(), words
