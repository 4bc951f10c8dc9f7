"""Pairs of a context and a center: as single numbers, and dealt into buckets.

A number has the center's row in its upper half and the context's in its lower half. Rows are rows of partitions. If a
partition has fewer than 2**16 rows, a pair takes 4 bytes, else 8.

There is a bucket for each partition of the center and of the context. The bucket of two partitions can be trained with
the input rows of the one and the output rows of the other alone. Its pairs are ordered by spans of the text, and in a
span by center: a kernel that trains them in this order finds a center's row in the cache. Spans are short, since pairs
that are sorted over a whole pass train worse vectors.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from daskw2v.kernels import buffers
from daskw2v.kernels.jit import inline, kernel
from daskw2v.kernels.rng import GOLDEN, below, draw
from daskw2v.sampling.hierarchy import BNS, draw_partition
from daskw2v.sampling.segments import Segment
from daskw2v.types import Int32Array, Int64Array, UInt32Array, UInt64Array
from daskw2v.vocabulary.partition import Partitions

Pairs: TypeAlias = npt.NDArray[np.uint32] | npt.NDArray[np.uint64]
PAIR_TYPES = ("uint32", "uint64")
SPAN = 1 << 15  # corpus positions whose pairs are ordered by center
_DIGIT = 11  # most bits to sort by at once
_STEP = 5  # neighbours that are visited in a row: a loop of constant length unrolls


def pair_type(n_rows: int) -> np.dtype[Any]:
    """Return the type of pairs of partitions with so many rows, at most; one number stands for no row."""
    return np.dtype(PAIR_TYPES[n_rows >= 1 << 16])


def empty_pairs(n: int, dtype: npt.DTypeLike) -> Pairs:
    """Return an uninitialized array of n pairs."""
    pairs: Pairs = np.empty(n, dtype)
    return pairs


@inline
def row_bits(pairs: Any) -> Any:
    """Return the bits of a row in an array of pairs."""
    return np.uint64(4 * pairs.itemsize)


@inline
def missing_row(half: Any) -> Any:
    """Return the number that stands for a center in another partition."""
    return (np.uint64(1) << half) - np.uint64(1)


@inline
def unpack_center(pair: Any, half: Any) -> Any:
    """Return the center's row, or `missing_row`, int64."""
    return np.int64(np.uint64(pair) >> half)


@inline
def unpack_context(pair: Any, half: Any) -> Any:
    """Return the context's row, int64."""
    return np.int64(np.uint64(pair) & missing_row(half))


def pack(rows: Sequence[Int64Array] | Int64Array, dtype: npt.DTypeLike) -> Pairs:
    """Return the pairs of contexts and centers; -1 is a center in another partition."""
    half = np.uint64(4 * np.dtype(dtype).itemsize)
    contexts, centers = np.asarray(rows, np.int64).view(np.uint64)
    packed: Pairs = ((centers & missing_row.py_func(half)) << half | contexts).astype(dtype)
    return packed


def unpack(pairs: Pairs) -> tuple[Int64Array, Int64Array]:
    """Return contexts and centers, shapes of `pairs`; -1 for a center in another partition."""
    half = np.uint64(4 * pairs.itemsize)
    wide, none = pairs.astype(np.uint64), missing_row.py_func(half)
    centers = wide >> half
    return (wide & none).astype(np.int64), np.where(centers == none, -1, centers.astype(np.int64))


class WindowSize(NamedTuple):
    """Size of windows: `window`, or with `shrink` a draw from 1..window of the stream `key`."""

    window: int
    shrink: bool
    key: np.uint64


class Noise(NamedTuple):
    """The rule for negatives that are drawn outside of the partition of their pair's center.

    Parameters
    ----------
    rule
        `sampling.hierarchy.SNS` or `BNS`.
    negative
        Number of negatives of a pair.
    table
        Alias table of the partitions.
    key
        Stream of the draws.
    """

    rule: int
    negative: int
    table: UInt64Array
    key: np.uint64


class BucketedPairs(NamedTuple):
    """Pairs, or negatives of pairs, in buckets.

    Parameters
    ----------
    entries
        Pairs, bucket by bucket, shape (n,).
    edges
        Bounds of the buckets, in the order of `bucket_number`, shape (p * p + 1,) int64.
    """

    entries: Pairs
    edges: Int64Array


class _Text(NamedTuple):
    """Tokens of a segment as numbers that lie close together.

    Parameters
    ----------
    codes
        Partition of each token, and its row in the lower `bits`, shape (n + 2 * window,) uint32: token i is number
        i + window, so that each has neighbours to count.
    extents
        Contexts before each token in the upper half, and after it in the lower, shape (n,) uint32.
    positions
        As in `Segment`.
    bits
        Number of bits of a row.
    window
        Largest window, in steps of _STEP: more neighbours than count are no harm.
    """

    codes: UInt32Array
    extents: UInt32Array
    positions: Int64Array
    bits: np.uint32
    window: np.uint64


def bucket_number(output: int, input: int, p: int, n_groups: int) -> int:
    """Return the index of a bucket among p * p: groups of inputs, groups of outputs, outputs, inputs.

    Partition `output` has its centers, or its negatives, and `input` its contexts.
    """
    size = p // n_groups
    (to, j), (of, i) = divmod(output, size), divmod(input, size)
    return ((of * n_groups + to) * size + j) * size + i


@inline
def locate_word(word: Any, n: Any) -> Any:
    """Return a word's partition and its row in it, like `vocabulary.partition.Partitions.place`."""
    row = word // n
    dealt = word - row * n
    return (dealt if row % 2 == 0 else n - 1 - dealt), row


@inline
def draw_window_size(window: Any, shrink: Any, key: Any, position: Any) -> Any:
    """Return the size of the window at a corpus position, on both sides: `window`, or a draw from 1..window."""
    return window - np.int64(below(draw(key, position), window)) if shrink else window


def distribute_pairs(
    segment: Segment,
    start: int,
    stop: int,
    windows: WindowSize,
    partitions: Partitions,
    noise: Noise | None = None,
    n_groups: int = 1,
) -> BucketedPairs:
    """Deal the pairs whose centers are at the positions start..stop-1, or their negatives, into buckets.

    Parameters
    ----------
    segment, start, stop
        Text, and a range of corpus positions.
    windows
        Size of windows.
    partitions
        How words are spread.
    noise
        The rule to deal negatives instead of pairs by: with SNS an entry for each pair, with BNS one for each negative.
        An entry's center is the pair's if that is in the partition that the negative is drawn from.
    n_groups
        Groups of partitions whose buckets stand side by side.
    """
    n, n_tokens, bits = partitions.n, len(segment.tokens), (partitions.most - 1).bit_length()
    window = -(-windows.window // _STEP) * _STEP
    codes, extents = np.zeros(n_tokens + 2 * window, np.uint32), np.empty(n_tokens, np.uint32)
    text = _Text(codes, extents, segment.positions, np.uint32(bits), np.uint64(window))
    _read(segment, windows, n, text)
    edges = np.searchsorted(segment.positions, [*range(start, stop, SPAN), stop]).tolist()
    orders = [_by_center(text, first, last, partitions) for first, last in pairwise(edges)]
    sizes, dtype = np.zeros((len(orders), n, n), np.uint64), pair_type(partitions.most)

    def go_through(places: UInt64Array, entries: Pairs, *, write: bool) -> None:
        for span, order in enumerate(orders):
            if noise is not None:
                _deal_noise(text, order, noise, places[span], entries, write)
            elif write:
                _write(text, order, places[span], entries)
            else:
                _count(text, *edges[span : span + 2], places[span])

    go_through(sizes, empty_pairs(0, dtype), write=False)
    apart = (len(orders), n_groups, n // n_groups, n_groups, n // n_groups)
    by_bucket = sizes.reshape(apart).transpose(3, 1, 2, 4, 0)  # as `bucket_number` has them, in each span by span
    ends = np.cumsum(by_bucket, dtype=np.uint64).reshape(by_bucket.shape)
    entries = buffers.here.take(int(sizes.sum()) + 1, dtype)
    places = np.ascontiguousarray(ends.transpose(4, 1, 2, 0, 3)).reshape(sizes.shape) - sizes
    go_through(places, entries, write=True)
    return BucketedPairs(entries[:-1], np.cumsum([0, *by_bucket.sum(axis=4).ravel()], dtype=np.int64))


@kernel
def _read(segment: Any, windows: Any, n: Any, text: Any) -> None:
    """Write the partition, the row and the window of each token."""
    tokens, bounds = segment.tokens, segment.bounds
    for i in range(len(tokens)):
        part, row = locate_word(np.int64(np.uint32(tokens[i])), np.int64(np.uint32(n)))  # divisions of 32 bits
        text.codes[np.uint64(i) + text.window] = part << text.bits | row
    for sentence in range(len(bounds) - 1):
        first, last = bounds[sentence], bounds[sentence + 1]
        for i in range(first, last):
            reach = draw_window_size(windows.window, windows.shrink, windows.key, segment.positions[i])
            text.extents[i] = min(reach, i - first) << 16 | min(reach, last - 1 - i)


@inline
def _extents(text: Any, center: Any) -> Any:
    """Return the numbers of a center's contexts before and after it, uint64."""
    extent = text.extents[center]
    return np.uint64(extent >> np.uint32(16)), np.uint64(extent & np.uint32(0xFFFF))


@inline
def _row(code: Any, bits: Any) -> Any:
    """Return the row of a token in its partition."""
    return np.uint64(code & ((np.uint32(1) << bits) - np.uint32(1)))


def _by_center(text: _Text, first: int, last: int, partitions: Partitions) -> Int32Array:
    """Return the centers first..last-1 ordered by partition and row."""
    ordered, codes = np.arange(first, last, dtype=np.int32), text.codes[int(text.window) :]
    bits = int(text.bits) + (partitions.n - 1).bit_length()
    n_digits = -(-bits // _DIGIT)
    for digit in range(n_digits):
        low, high = (bits * k // n_digits for k in (digit, digit + 1))
        ordered = _sorted(codes, ordered, np.uint32(low), 1 << high - low)
    return ordered


@kernel
def _sorted(codes: Any, indices: Any, shift: Any, n: Any) -> Any:
    """Return indices ordered by the bits `shift` and above of their codes, modulo n, a power of two."""
    places, ordered, mask = np.zeros(n + 1, np.int64), np.empty_like(indices), np.uint32(n - 1)
    for i in indices:
        places[((codes[np.uint64(i)] >> shift) & mask) + 1] += 1
    for key in range(n):
        places[key + 1] += places[key]
    for i in indices:
        key = (codes[np.uint64(i)] >> shift) & mask
        ordered[np.uint64(places[key])] = i
        places[key] += 1
    return ordered


# Indices are unsigned in inner loops: Numba checks a signed index for negative values at each access.


@kernel
def _count(text: Any, first: Any, last: Any, sizes: Any) -> None:
    """Count the pairs of the centers first..last-1 by the partitions of center and context.

    All neighbours within the largest window are visited: the processor predicts a loop of constant length.
    """
    for center in range(np.uint64(first), np.uint64(last)):
        before, after = _extents(text, center)
        of_center = sizes[text.codes[center + text.window] >> text.bits]
        for start in range(0, np.int64(text.window), _STEP):
            for k in range(_STEP):
                far = np.uint64(start + k)
                of_center[_before(text, center, far) >> text.bits] += np.uint64(text.window - far <= before)
                of_center[_after(text, center, far) >> text.bits] += np.uint64(far < after)


@inline
def _before(text: Any, center: Any, far: Any) -> Any:
    """Return the code of a neighbour before a center, the farthest first."""
    return text.codes[center + far]


@inline
def _after(text: Any, center: Any, far: Any) -> Any:
    """Return the code of a neighbour after a center, the nearest first."""
    return text.codes[center + text.window + np.uint64(1) + far]


@kernel
def _write(text: Any, order: Any, places: Any, entries: Any) -> None:
    """Write the pairs of centers, each at the next index of its bucket.

    All neighbours are visited, as in `_count`: a neighbour that is no context is written behind all pairs.
    """
    half, window = row_bits(entries), text.window
    for number in order:
        center = np.uint64(number)
        code = text.codes[center + window]
        row, of_center = _row(code, text.bits) << half, places[code >> text.bits]
        before, after = _extents(text, center)
        for start in range(0, np.int64(window), _STEP):
            for k in range(_STEP):
                far = np.uint64(start + k)
                _put(_before(text, center, far), window - far <= before, text, row, of_center, entries)
        for start in range(0, np.int64(window), _STEP):
            for k in range(_STEP):
                far = np.uint64(start + k)
                _put(_after(text, center, far), far < after, text, row, of_center, entries)


@inline
def _put(context: Any, counts: Any, text: Any, row: Any, of_center: Any, entries: Any) -> None:
    """Write a pair to its bucket, or behind all pairs if it does not count."""
    part = np.uint64(context >> text.bits)
    at = of_center[part]
    entries[at if counts else np.uint64(len(entries) - 1)] = row | _row(context, text.bits)
    of_center[part] = at + np.uint64(counts)


@kernel
def _deal_noise(text: Any, order: Any, noise: Any, places: Any, entries: Any, write: Any) -> None:
    """Advance the index of each bucket by the negatives of centers' pairs, and write these negatives if `write`."""
    half = row_bits(entries)
    for center in order:
        at = np.int64(center) + np.int64(text.window)
        code = text.codes[at]
        own, row = np.int64(code >> text.bits), _row(code, text.bits) << half
        state = draw(noise.key, text.positions[center])
        before, after = _extents(text, center)
        for i in range(at - np.int64(before), at + np.int64(after) + 1):
            if i == at:
                continue
            context = text.codes[i]
            part = context >> text.bits
            state += np.uint64(noise.negative) * GOLDEN
            for k in range(noise.negative if noise.rule == BNS else 1):
                partner = draw_partition(noise.rule, state, k, own, noise.table)
                if write:
                    center_bits = row if partner == own else missing_row(half) << half
                    entries[places[partner, part]] = center_bits | _row(context, text.bits)
                places[partner, part] += np.uint64(1)
