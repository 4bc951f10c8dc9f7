"""The text of a run, as the stages read it that write its pairs: subsampled, with the windows of an epoch."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.sampling.dealing import Windows
from daskw2v.sampling.reader import SegmentReader
from daskw2v.sampling.rng import Purpose, stream
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import Segment, keep_thresholds, most_dropped
from daskw2v.shards.layout import Corpus


class _Text(NamedTuple):
    reader: SegmentReader
    keep: npt.NDArray[np.uint64]


@lru_cache(maxsize=2)
def _open(run: Run) -> _Text:
    """Open what is read. Only a cache: a worker that lacks it makes it again."""
    vocabulary, sample = run.vocabulary, run.params.sample
    frequent = vocabulary.read_counts(0, min(vocabulary.size, most_dropped(sample)))
    return _Text(
        SegmentReader(run.work, Corpus.load(run.work, run.corpus), vocabulary),
        keep_thresholds(frequent, sample, vocabulary.total),
    )


def read_text(run: Run, epoch: int, start: int, stop: int) -> tuple[Segment, int, Windows]:
    """Read the positions start..stop-1 of a run's corpus, and so much around them that no window is cut.

    Returns
    -------
    segment, words, windows
        What is left after subsampling, how many of start..stop-1 are words of the vocabulary, and how far windows
        reach.

    Raises
    ------
    StoreError
        If a shard is gone.
    """
    params, text = run.params, _open(run)
    key = stream(params.seed, Purpose.SUBSAMPLE, epoch)
    segment, words = text.reader.read(start, stop, params.window, text.keep, key)
    return segment, words, Windows(params.window, params.shrink_windows, stream(params.seed, Purpose.WINDOW, epoch))
