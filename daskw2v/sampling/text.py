"""The text of a run for stages that write pairs: subsampled, with the windows of an epoch."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from daskw2v.config.params import Params
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.sampling.dealing import WindowSize
from daskw2v.sampling.reader import SegmentReader
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import Segment, keep_thresholds, most_dropped
from daskw2v.shards.layout import Corpus
from daskw2v.types import UInt64Array
from daskw2v.vocabulary.count import StoredVocabulary


class RunText(NamedTuple):
    """The text of a run.

    Parameters
    ----------
    reader
        Reader of segments.
    length
        Number of positions in an epoch.
    keep
        Thresholds of subsampling, for the words that may be dropped.
    """

    reader: SegmentReader
    length: int
    keep: UInt64Array


@lru_cache(maxsize=2)
def open_text(run: Run) -> RunText:
    """Return the cached text of a run."""
    vocabulary, corpus = run.vocabulary, Corpus.load(run.work, run.corpus)
    reader = SegmentReader(run.work, corpus, vocabulary)
    return RunText(reader, corpus.n_tokens, thresholds_of(vocabulary, run.params.sample))


@lru_cache(maxsize=2)
def thresholds_of(vocabulary: StoredVocabulary, sample: float) -> UInt64Array:
    """Return the thresholds of a subsampling of a vocabulary, for the words that it may drop."""
    frequent = vocabulary.read_counts(0, min(vocabulary.size, most_dropped(sample)))
    return keep_thresholds(frequent, sample, vocabulary.total)


def subsampling(params: Params, epoch: int) -> np.uint64:
    """Return the stream of an epoch's draws of which tokens are kept."""
    return stream(params.seed, Purpose.SUBSAMPLE, epoch)


def read_text(run: Run, epoch: int, start: int, stop: int) -> tuple[Segment, int, WindowSize]:
    """Read the positions start..stop-1 of a run's corpus, with a margin on both sides that completes all windows.

    Returns
    -------
    segment, words, windows
        The segment after subsampling, the number of known tokens in start..stop-1, and the size of windows.

    Raises
    ------
    StoreError
        If a shard is missing.
    """
    params, text = run.params, open_text(run)
    segment, words = text.reader.read(start, stop, params.window, text.keep, subsampling(params, epoch))
    return segment, words, WindowSize(params.window, params.shrink_windows, stream(params.seed, Purpose.WINDOW, epoch))
