"""Segments of text, cut on an NVIDIA GPU: the same tokens, positions and sentences as `segments`, by the same draws.

Codes, the map of codes to words, and the starts of sentences lie on the GPU, as a shard has them. Words are looked up,
and a word that is not kept is marked by -1. Then tiles of tokens count the words that they keep, and each writes its
words behind the words of all tiles before it. A sentence begins where as many words are kept before it: so sentences
without kept words stay, as two equal bounds.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import cuda, int32

from daskw2v.kernels.cuda.warp import LANES, at, ballot, kernel, sum_of_lanes
from daskw2v.kernels.rng import draw
from daskw2v.sampling.reader import DeviceSpan
from daskw2v.sampling.segments import Segment

TILE = 1024  # tokens of a warp
KNOWN, BAD = 0, 1  # indices in `counts`: known tokens before subsampling, and codes that no word has


class Cutter:
    """Cuts segments on the GPU; each call overwrites the arrays that the last call returned."""

    def __init__(self) -> None:
        self._arrays: dict[str, Any] = {}

    def cut(
        self, spans: Sequence[DeviceSpan], start: int, stop: int, keep: Any, key: np.uint64, counts: Any, stream: Any
    ) -> tuple[Segment, Any, Any]:
        """Enqueue the kernels that cut a segment on a stream of the GPU, without waiting for them.

        Parameters
        ----------
        spans
            Consecutive spans: the positions start..stop-1 with their margins.
        start, stop
            The positions whose tokens are centers.
        keep, key
            Subsampling: thresholds as `segments.append_threshold` returns them, on the GPU, and the key of the epoch's
            draws.
        counts
            The numbers of known tokens in start..stop-1 and of bad codes are added to it, shape (2,) int64.
        stream
            The stream of the GPU.

        Returns
        -------
        segment
            The segment. The kept words end at the last of `bounds`; further entries of `tokens` and `positions` are
            undefined. `bounds` may repeat.
        first, last
            `Segment.centers` of start..stop-1, on the GPU, shape (1,) int64 each.
        """
        low, length = spans[0].position, sum(len(span.codes) for span in spans)
        tiles, n_bounds, allocate = -(-length // TILE), 2 + sum(len(span.starts) for span in spans), self._allocate
        words, before = allocate("words", length, np.int32), allocate("before", length + 1, np.int32)
        kept, tokens = allocate("kept", tiles, np.int32), allocate("tokens", length, np.int32)
        segment = Segment(tokens, allocate("positions", length, np.int64), allocate("bounds", n_bounds, np.int64))
        centers, sentence = allocate("centers", 2, np.int64), 1
        for span in spans:
            offset, n = span.position - low, len(span.codes)
            inner = max(start - span.position, 0), min(stop - span.position, n)
            words_of_span = words[offset : offset + n]
            _look_up[-(-n // TILE), LANES, stream](
                span.codes, span.ids, keep, key, span.position, *inner, words_of_span, counts
            )
        _count_kept[tiles, LANES, stream](words, kept)
        _write_kept[tiles, LANES, stream](words, kept, low, segment.tokens, segment.positions, before)
        for span in spans:
            n = len(span.starts)
            if n:
                bounds = segment.bounds[sentence : sentence + n]
                _write_bounds[-(-n // TILE), LANES, stream](
                    span.starts, span.position - low - span.offset, before, bounds
                )
                sentence += n
        _write_ends[1, LANES, stream](before, start - low, stop - low, segment.bounds, centers)
        return segment, centers[:1], centers[1:]

    def _allocate(self, name: str, n: int, dtype: Any) -> Any:
        """Return an uninitialized array of `n` items on the GPU; the next call with this name overwrites it."""
        if name not in self._arrays or len(self._arrays[name]) < n:
            self._arrays[name] = cuda.device_array(n + n // 4 + 1, dtype)
        return self._arrays[name][:n]


@kernel
def _look_up(
    codes: Any, ids: Any, keep: Any, key: Any, position: Any, inner: Any, outer: Any, words: Any, counts: Any
) -> None:
    """Write the word id of each token of a span to `words`, -1 for a token that is not kept; add to `counts`.

    `codes` and `ids` are as in `DeviceSpan`, `keep`, `key` and `counts` as in `Cutter.cut`; `position` is that of the
    first token. Only tokens with indices in inner..outer-1 are counted as known.
    """
    lane, first = cuda.threadIdx.x, cuda.blockIdx.x * TILE
    last_known, known, bad = keep.size - 1, int32(0), int32(0)
    for i in range(first + lane, min(first + TILE, codes.size), LANES):
        code = at(codes, i)
        if 0 <= code < ids.size:
            word = at(ids, code)
            if word >= 0:
                threshold = at(keep, min(word, last_known))
                known += int32(inner <= i < outer)
                if np.uint64(draw(key, position + i)) >> np.uint64(32) >= threshold:
                    word = int32(-1)
            words[np.uint64(i)] = word
        else:
            words[np.uint64(i)] = int32(-1)
            bad += int32(1)
    known, bad = sum_of_lanes(known), sum_of_lanes(bad)
    if lane == 0:
        cuda.atomic.add(counts, KNOWN, known)
        if bad:
            cuda.atomic.add(counts, BAD, bad)


@kernel
def _count_kept(words: Any, kept: Any) -> None:
    """Write to `kept` how many words of each tile are kept, shape (tiles,)."""
    lane, first, n = cuda.threadIdx.x, cuda.blockIdx.x * TILE, int32(0)
    for i in range(first + lane, min(first + TILE, words.size), LANES):
        n += int32(at(words, i) >= 0)
    n = sum_of_lanes(n)
    if lane == 0:
        kept[cuda.blockIdx.x] = n


@kernel
def _write_kept(words: Any, kept: Any, low: Any, tokens: Any, positions: Any, before: Any) -> None:
    """Write the kept words to `tokens` and their positions to `positions`, without gaps.

    `kept` is the result of `_count_kept`; `low` is the position of the first token. `before` gets the number of kept
    words before each token, and of all, shape (tokens + 1,).
    """
    lane, tile = cuda.threadIdx.x, cuda.blockIdx.x
    n = int32(0)
    for i in range(lane, tile, LANES):
        n += at(kept, i)
    n = sum_of_lanes(n)
    first = tile * TILE
    last = min(first + TILE, words.size)
    for start in range(first, last, LANES):
        i = start + lane
        word = at(words, i) if i < last else int32(-1)
        kept_lanes = ballot(word >= 0)
        index = n + int32(cuda.popc(kept_lanes & ((np.uint32(1) << np.uint32(lane)) - np.uint32(1))))
        if i < last:
            before[np.uint64(i)] = index
        if word >= 0:
            tokens[np.uint64(index)], positions[np.uint64(index)] = word, low + i
        n += int32(cuda.popc(kept_lanes))
    if lane == 0 and last == words.size:
        before[np.uint64(words.size)] = n


@kernel
def _write_bounds(starts: Any, shift: Any, before: Any, bounds: Any) -> None:
    """Write the bounds of a span's sentences among the kept words, from their starts in the shard.

    `shift` is added to a start to get its index in `before`, the result of `_write_kept`.
    """
    first = cuda.blockIdx.x * TILE
    for i in range(first + cuda.threadIdx.x, min(first + TILE, starts.size), LANES):
        bounds[np.uint64(i)] = at(before, min(max(at(starts, i) + shift, 0), before.size - 1))


@kernel
def _write_ends(before: Any, start: Any, stop: Any, bounds: Any, centers: Any) -> None:
    """Write the first and the last of all bounds, and the range of the centers among the kept words.

    Centers are the kept tokens with indices start..stop-1 in the text; `before` is as in `_write_kept`.
    """
    if cuda.threadIdx.x == 0:
        bounds[0], bounds[bounds.size - 1] = 0, at(before, before.size - 1)
        centers[0], centers[1] = at(before, start), at(before, stop)
