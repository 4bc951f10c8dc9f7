"""The text of a run, read from its shards: subsampled segments of any range of the corpus, and an epoch's windows."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from daskw2v.config.params import Params
from daskw2v.errors import DamageError
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.sampling.pairs import WindowSize
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import Segment, SegmentBuilder, count_known, keep_thresholds, max_dropped_words
from daskw2v.shards.layout import Corpus, own_starts
from daskw2v.store.arrays import StoredArray, open_array, read_array
from daskw2v.store.storage import Store
from daskw2v.types import Int32Array, Int64Array, UInt64Array
from daskw2v.vocabulary.count import StoredVocabulary

_MARGIN = 64  # positions to read at first on both sides of a range, for each word of the window
OPEN_SHARDS = 32  # shards kept open, as opening one is slow; each takes several MB
CHUNKS = 8  # kept as they were read: a chunk is decoded whole, and the next range begins in the last one
CHUNK = 1 << 20  # codes that are read at once, at least


class Chunk(NamedTuple):
    """Codes start..stop-1 of a stored shard, which are read at once."""

    path: str
    start: int
    stop: int


class Span(NamedTuple):
    """Consecutive tokens that lie in one chunk.

    Parameters
    ----------
    shard
        Number of their shard.
    chunk
        The chunk.
    first
        Index of the first token in the chunk.
    n
        Number of tokens.
    at
        Index of the first token in the shard.
    position
        Corpus position of the first token.
    """

    shard: int
    chunk: Chunk
    first: int
    n: int
    at: int
    position: int


class DeviceSpan(NamedTuple):
    """A `Span` whose arrays lie on a device.

    Parameters
    ----------
    codes
        Of the tokens, shape (n,) int32.
    ids
        Word of each code, -1 for a word outside the vocabulary, shape (types,) int32.
    starts
        Starts of the sentences that start in the span, ascending, counted from the first token of its shard, int64.
    at, position
        Index of the first token in its shard, and its corpus position.
    """

    codes: Any
    ids: Any
    starts: Any
    at: int
    position: int


class _Shard(NamedTuple):
    path: str
    codes: StoredArray
    first: int
    starts: Int64Array


class SegmentReader:
    """A reader of any range of corpus positions as word ids, across shards.

    Parameters
    ----------
    work
        The work directory.
    corpus, vocabulary
        The corpus, and the vocabulary of the ids.
    """

    def __init__(self, work: Store, corpus: Corpus, vocabulary: StoredVocabulary) -> None:
        self._corpus, maps = corpus, vocabulary.open_maps()

        @lru_cache(OPEN_SHARDS)  # by path: many shards of an excerpt may be parts of one stored shard
        def open_stored(path: str) -> tuple[StoredArray, Int64Array, Int32Array]:
            group = (work / path).open_group()
            ids = maps.read(path, group)
            _check_numbers(ids, -1, vocabulary.size, f"{vocabulary.home.url}/maps")
            return open_array(group, "codes"), read_array(group, "starts"), ids

        @lru_cache(OPEN_SHARDS)
        def open_shard(number: int) -> _Shard:
            shard = corpus.shards[number]
            codes, starts, _ = open_stored(shard.path)
            return _Shard(shard.path, codes, shard.first, own_starts(shard, starts))

        @lru_cache(CHUNKS)
        def read_codes(chunk: Chunk) -> Int32Array:
            array, _, ids = open_stored(chunk.path)
            codes: Int32Array = array[chunk.start : chunk.stop]
            _check_numbers(codes, 0, len(ids), array.url)
            return codes

        self._open_stored, self._open_shard, self._read_codes = open_stored, open_shard, read_codes

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
        low, high = self.margins(start, stop, window, keep, key)
        return self._read(low, high, keep, key), self._count(start, stop)

    def margins(self, start: int, stop: int, window: int, keep: UInt64Array, key: np.uint64) -> tuple[int, int]:
        """Return the range of positions that `read` reads, so that all windows are complete."""
        end = int(self._corpus.bounds[-1])

        def lacks(low: int, high: int, sentence: tuple[int, int]) -> bool:
            return not self._has_start(*sentence) and len(self._read(low, high, keep, key).tokens) < window

        margin = _MARGIN * window
        low, high = max(0, start - margin), min(end, stop + margin)
        while low > 0 and lacks(low, start, (low, start + 1)):
            margin *= 8  # too few tokens are kept here
            low = max(0, start - margin)
        margin = _MARGIN * window
        while high < end and lacks(stop, high, (stop, high)):
            margin *= 8
            high = min(end, stop + margin)
        return low, high

    def spans(self, low: int, high: int) -> Iterator[Span]:
        """Yield the tokens at the positions low..high-1, chunk by chunk."""
        for number, a, b in self._corpus.shards_in(low, high):
            shard, origin = self._open_shard(number), int(self._corpus.bounds[number])
            step = shard.codes.chunks[0]
            step *= -(-CHUNK // step)
            at, end = shard.first + a, shard.first + b
            while at < end:
                first = at // step * step
                chunk = Chunk(shard.path, first, min(first + step, len(shard.codes)))
                if at >= chunk.stop:
                    raise DamageError.of(shard.codes.url, f"has {chunk.stop} codes and not {end}")
                last, own = min(end, chunk.stop), at - shard.first
                yield Span(number, chunk, at - first, last - at, own, origin + own)
                at = last

    def codes(self, span: Span) -> Int32Array:
        """Return the codes of a span's chunk."""
        return self._read_codes(span.chunk)

    def unchecked_codes(self, span: Span) -> Int32Array:
        """Return the codes of a span's chunk as they are stored; the caller checks that each code has a word."""
        path, start, stop = span.chunk
        codes: Int32Array = self._open_stored(path)[0][start:stop]
        return codes

    def ids(self, span: Span) -> Int32Array:
        """Return the word of each code of a span's shard, -1 for words outside the vocabulary."""
        return self._open_stored(span.chunk.path)[2]

    def starts(self, span: Span) -> Int64Array:
        """Return the indices at which sentences of a span's shard start, ascending."""
        return self._open_shard(span.shard).starts

    def _read(self, low: int, high: int, keep: UInt64Array, key: np.uint64) -> Segment:
        builder = SegmentBuilder(high - low, keep, key)
        for span in self.spans(low, high):
            starts = self.starts(span)
            inside = slice(*np.searchsorted(starts, [span.at, span.at + span.n]))
            codes = self.codes(span)[span.first : span.first + span.n]
            builder.add(codes, starts[inside] - span.at, self.ids(span), span.position)
        return builder.finish()

    def _count(self, start: int, stop: int) -> int:
        """Return the number of known tokens."""
        spans = self.spans(start, stop)
        return sum(int(count_known(self.codes(s)[s.first : s.first + s.n], self.ids(s))) for s in spans)

    def _has_start(self, low: int, high: int) -> bool:
        """Return whether a sentence starts at one of the positions low..high-1."""
        shards = self._corpus.shards_in(low, high)
        return any(int(np.diff(np.searchsorted(self._open_shard(n).starts, [a, b]))[0]) for n, a, b in shards)


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
    return RunText(reader, corpus.n_tokens, read_thresholds(vocabulary, run.params.sample))


@lru_cache(maxsize=2)
def read_thresholds(vocabulary: StoredVocabulary, sample: float) -> UInt64Array:
    """Return the thresholds of a subsampling of a vocabulary, for the words that it may drop."""
    frequent = vocabulary.read_counts(0, min(vocabulary.size, max_dropped_words(sample)))
    return keep_thresholds(frequent, sample, vocabulary.total)


def subsampling_key(params: Params, epoch: int) -> np.uint64:
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
    segment, words = text.reader.read(start, stop, params.window, text.keep, subsampling_key(params, epoch))
    return segment, words, WindowSize(params.window, params.shrink_windows, stream(params.seed, Purpose.WINDOW, epoch))


def _check_numbers(numbers: Int32Array, low: int, high: int, url: str) -> None:
    """Refuse numbers outside low..high-1, because kernels do not check bounds."""
    if len(numbers) and not low <= numbers.min() <= numbers.max() < high:
        raise DamageError.of(url, f"has numbers that are not in {low}..{high - 1}")
