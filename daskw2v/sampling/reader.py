"""Segments of the corpus, read from the shards that hold them."""

import numpy as np
import numpy.typing as npt

from daskw2v.sampling.segments import Segment, SegmentBuilder, count_known
from daskw2v.shards.layout import Corpus, read_codes, read_starts
from daskw2v.storage import Store
from daskw2v.vocabulary.count import StoredVocabulary


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
        self._work = work
        self._corpus = corpus
        self._vocabulary = vocabulary

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
            shard = self._corpus.shards[number]
            a, b = max(low - origin, 0), min(high - origin, shard.n_tokens)
            codes = read_codes(self._work, shard, a, b)
            starts = read_starts(self._work, shard)
            starts = starts[slice(*np.searchsorted(starts, [a, b]))] - a
            ids = self._vocabulary.read_map(number)
            builder.add(codes, starts, ids, origin + a)
            inner = slice(max(start - origin - a, 0), max(stop - origin - a, 0))
            words += int(count_known(codes[inner], ids))
        return builder.finish(), words
