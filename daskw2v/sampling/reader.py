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
from daskw2v.shards.layout import Corpus, select_starts
from daskw2v.store.arrays import StoredArray, open_array, read_array
from daskw2v.store.storage import Store
from daskw2v.types import Int32Array, Int64Array, UInt64Array
from daskw2v.vocabulary.count import StoredVocabulary

_MARGIN = 64  # positions that are read first on both sides of a range, for each word of the window
OPEN_SHARDS = 32  # shards kept open, as opening one is slow; each takes several MB
CHUNKS = 4  # decoded chunks that are kept: the next range begins in the last one
CHUNK = 1 << 20  # codes that are read at once, at least


class Chunk(NamedTuple):
    """Codes start..stop-1 of a stored shard, read at once; `path` is the shard's path below the work directory."""

    path: str
    start: int
    stop: int


class Span(NamedTuple):
    """Consecutive tokens that lie in one chunk.

    Parameters
    ----------
    shard
        Number of the tokens' shard.
    chunk
        The chunk.
    first
        Index of the first token in the chunk.
    n
        Number of tokens.
    offset
        Index of the first token in the shard.
    position
        Corpus position of the first token.
    """

    shard: int
    chunk: Chunk
    first: int
    n: int
    offset: int
    position: int


class DeviceSpan(NamedTuple):
    """A `Span` whose arrays lie on a device.

    Parameters
    ----------
    codes
        Codes of the tokens, shape (n,) int32.
    ids
        Word id of each code of the shard, -1 for a word outside the vocabulary, shape (types,) int32.
    starts
        Indices in the shard of the tokens of the span at which sentences start, ascending, int64.
    offset, position
        Index of the span's first token in its shard, and its corpus position.
    """

    codes: Any
    ids: Any
    starts: Any
    offset: int
    position: int


class _Shard(NamedTuple):
    """An opened shard: path and codes of the stored shard, index of its first code there, and starts of sentences."""

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
            _check_numbers(ids, -1, vocabulary.size, f"{vocabulary.folder.url}/maps")
            return open_array(group, "codes"), read_array(group, "starts"), ids

        @lru_cache(OPEN_SHARDS)
        def open_shard(number: int) -> _Shard:
            shard = corpus.shards[number]
            codes, starts, _ = open_stored(shard.path)
            return _Shard(shard.path, codes, shard.first, select_starts(shard, starts))

        @lru_cache(CHUNKS)
        def read_codes(chunk: Chunk) -> Int32Array:
            array, _, ids = open_stored(chunk.path)
            codes: Int32Array = array[chunk.start : chunk.stop]
            _check_numbers(codes, 0, len(ids), array.url)
            return codes

        self._open_stored, self._open_shard, self._read_codes = open_stored, open_shard, read_codes

    def read(self, start: int, stop: int, window: int, keep: UInt64Array, key: np.uint64) -> tuple[Segment, int]:
        """Return the segment of the positions start..stop-1, with a margin on both sides that completes all windows.

        Parameters
        ----------
        start, stop
            Range of corpus positions.
        window
            Smallest number of tokens of a margin after subsampling, unless the sentence ends before.
        keep, key
            Subsampling: `keep_thresholds` of the vocabulary, and the key of the epoch's random numbers.

        Returns
        -------
        segment, words
            The segment after subsampling, and the number of known tokens in start..stop-1.
        """
        low, high = self.margins(start, stop, window, keep, key)
        return self._read_range(low, high, keep, key), self._count_known(start, stop)

    def margins(self, start: int, stop: int, window: int, keep: UInt64Array, key: np.uint64) -> tuple[int, int]:
        """Return the range of positions that `read` reads with these arguments: the first, and one past the last."""
        end = int(self._corpus.bounds[-1])

        def lacks(low: int, high: int, sentence: tuple[int, int]) -> bool:
            return not self._has_start(*sentence) and len(self._read_range(low, high, keep, key).tokens) < window

        margin = _MARGIN * window
        low, high = max(0, start - margin), min(end, stop + margin)
        while low > 0 and lacks(low, start, (low, start + 1)):
            margin *= 8  # subsampling keeps too few tokens of the margin
            low = max(0, start - margin)
        margin = _MARGIN * window
        while high < end and lacks(stop, high, (stop, high)):
            margin *= 8
            high = min(end, stop + margin)
        return low, high

    def spans(self, low: int, high: int) -> Iterator[Span]:
        """Yield the spans of the positions low..high-1, chunk by chunk."""
        for number, a, b in self._corpus.shards_in(low, high):
            shard, origin = self._open_shard(number), int(self._corpus.bounds[number])
            codes_at_once = shard.codes.chunks[0]
            codes_at_once *= -(-CHUNK // codes_at_once)
            index, end = shard.first + a, shard.first + b
            while index < end:
                first = index // codes_at_once * codes_at_once
                chunk = Chunk(shard.path, first, min(first + codes_at_once, len(shard.codes)))
                if index >= chunk.stop:
                    raise DamageError.of(shard.codes.url, f"has {chunk.stop} codes and not {end}")
                last, offset = min(end, chunk.stop), index - shard.first
                yield Span(number, chunk, index - first, last - index, offset, origin + offset)
                index = last

    def codes(self, span: Span) -> Int32Array:
        """Return the codes of a span's chunk, checked and cached, shape (codes of the chunk,) int32."""
        return self._read_codes(span.chunk)

    def unchecked_codes(self, span: Span) -> Int32Array:
        """Return the codes of a span's chunk as they are stored; the caller checks that each code has a word."""
        path, start, stop = span.chunk
        codes: Int32Array = self._open_stored(path)[0][start:stop]
        return codes

    def ids(self, span: Span) -> Int32Array:
        """Return the word id of each code of a span's shard, -1 for words outside the vocabulary, shape (types,)."""
        return self._open_stored(span.chunk.path)[2]

    def starts(self, span: Span) -> Int64Array:
        """Return the indices at which sentences start in a span's shard, ascending, int64.

        Starts outside the span are included.
        """
        return self._open_shard(span.shard).starts

    def _read_range(self, low: int, high: int, keep: UInt64Array, key: np.uint64) -> Segment:
        """Return the segment of the positions low..high-1, without further margins."""
        builder = SegmentBuilder(high - low, keep, key)
        for span in self.spans(low, high):
            starts = self.starts(span)
            inside = slice(*np.searchsorted(starts, [span.offset, span.offset + span.n]))
            codes = self.codes(span)[span.first : span.first + span.n]
            builder.add(codes, starts[inside] - span.offset, self.ids(span), span.position)
        return builder.finish()

    def _count_known(self, start: int, stop: int) -> int:
        """Return the number of known tokens at the positions start..stop-1."""
        spans = self.spans(start, stop)
        return sum(int(count_known(self.codes(s)[s.first : s.first + s.n], self.ids(s))) for s in spans)

    def _has_start(self, low: int, high: int) -> bool:
        """Return whether a sentence starts at one of the positions low..high-1."""
        shards = self._corpus.shards_in(low, high)
        return any(int(np.diff(np.searchsorted(self._open_shard(n).starts, [a, b]))[0]) for n, a, b in shards)


class OpenText(NamedTuple):
    """The text of a run.

    Parameters
    ----------
    reader
        Reader of segments.
    length
        Number of positions in an epoch.
    keep
        `keep_thresholds` of the words that subsampling may drop.
    """

    reader: SegmentReader
    length: int
    keep: UInt64Array


@lru_cache(maxsize=2)
def open_text(run: Run) -> OpenText:
    """Return the text of a run, opened; it is cached in a process."""
    vocabulary, corpus = run.vocabulary, Corpus.load(run.work, run.corpus)
    reader = SegmentReader(run.work, corpus, vocabulary)
    return OpenText(reader, corpus.n_tokens, read_thresholds(vocabulary, run.params.sample))


@lru_cache(maxsize=2)
def read_thresholds(vocabulary: StoredVocabulary, sample: float) -> UInt64Array:
    """Return the `keep_thresholds` of the words of a vocabulary that subsampling with `sample` may drop."""
    frequent = vocabulary.read_counts(0, min(vocabulary.size, max_dropped_words(sample)))
    return keep_thresholds(frequent, sample, vocabulary.total)


def subsampling_key(params: Params, epoch: int) -> np.uint64:
    """Return the key of the random numbers by which an epoch keeps or drops tokens."""
    return stream(params.seed, Purpose.SUBSAMPLE, epoch)


def read_text(run: Run, epoch: int, start: int, stop: int) -> tuple[Segment, int, WindowSize]:
    """Return the segment of positions start..stop-1 of a run's corpus, as `SegmentReader.read` does, and its windows.

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
    """Check that all numbers are in low..high-1, as kernels check no bounds; raises DamageError."""
    if len(numbers) and not low <= numbers.min() <= numbers.max() < high:
        raise DamageError.of(url, f"has numbers that are not in {low}..{high - 1}")
