"""Pairs of a context and a center: as single numbers, and distributed to buckets.

A number has the center's row in its upper half and the context's in its lower half. Rows are rows of partitions. If a
partition has fewer than 2**16 rows, a pair takes 4 bytes, else 8.

A word that has a copy in each partition is in one that is drawn for each of its occurrences.

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
_MAX_DIGIT_BITS = 11  # bits to sort by at once
_STEP = 5  # neighbours that are visited in a row: a loop of constant length unrolls


def pair_type(n_rows: int) -> np.dtype[Any]:
    """Return the dtype of pairs of partitions with at most `n_rows` rows; one number is reserved as `missing_row`."""
    return np.dtype(PAIR_TYPES[n_rows >= 1 << 16])


def empty_pairs(n: int, dtype: npt.DTypeLike) -> Pairs:
    """Return an uninitialized array of n pairs."""
    pairs: Pairs = np.empty(n, dtype)
    return pairs


@inline
def row_bits(pairs: Any) -> Any:
    """Return the number of bits of a row in an array of pairs, uint64: half the bits of a pair."""
    return np.uint64(4 * pairs.itemsize)


@inline
def missing_row(half: Any) -> Any:
    """Return the number that stands for a center in another partition, uint64; `half` is the result of `row_bits`."""
    return (np.uint64(1) << half) - np.uint64(1)


@inline
def unpack_center(pair: Any, half: Any) -> Any:
    """Return the row of a pair's center, or `missing_row`, int64; `half` is the result of `row_bits`."""
    return np.int64(np.uint64(pair) >> half)


@inline
def unpack_context(pair: Any, half: Any) -> Any:
    """Return the row of a pair's context, int64; `half` is the result of `row_bits`."""
    return np.int64(np.uint64(pair) & missing_row(half))


def pack(rows: Sequence[Int64Array] | Int64Array, dtype: npt.DTypeLike) -> Pairs:
    """Return pairs packed as single numbers, shape (n,).

    `rows` are the rows of the contexts and the rows of the centers, shape (2, n); -1 is a center in another partition.
    """
    half = np.uint64(4 * np.dtype(dtype).itemsize)
    contexts, centers = np.asarray(rows, np.int64).view(np.uint64)
    packed: Pairs = ((centers & missing_row.py_func(half)) << half | contexts).astype(dtype)
    return packed


def unpack(pairs: Pairs) -> tuple[Int64Array, Int64Array]:
    """Return the rows of contexts and of centers, shapes of `pairs`; -1 for a center in another partition."""
    half = np.uint64(4 * pairs.itemsize)
    wide, missing = pairs.astype(np.uint64), missing_row.py_func(half)
    centers = wide >> half
    return (wide & missing).astype(np.int64), np.where(centers == missing, -1, centers.astype(np.int64))


class WindowSize(NamedTuple):
    """The size of windows: `window`, or with `shrink` a random number in 1..window, drawn with the key `key`."""

    window: int
    shrink: bool
    key: np.uint64


class Noise(NamedTuple):
    """The rule for negatives of any partition, not only of the partition of their pair's center.

    Parameters
    ----------
    rule
        `sampling.hierarchy.SNS` or `BNS`.
    negative
        Number of negatives of a pair.
    table
        Alias table of the partitions.
    key
        Key of the random numbers.
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
    """Tokens of a segment as compact numbers.

    Parameters
    ----------
    codes
        Partition of each token in the upper bits, and its row in the lower `bits`, shape (n + 2 * window,) uint32. The
        code of token i is at index i + window, so that every token has neighbours on both sides.
    extents
        Number of contexts before each token in the upper half, and after it in the lower, shape (n,) uint32.
    positions
        As in `Segment`.
    bits
        Number of bits of a row.
    window
        Largest window, rounded up to a multiple of _STEP.
    """

    codes: UInt32Array
    extents: UInt32Array
    positions: Int64Array
    bits: np.uint32
    window: np.uint64


def bucket_number(output: int, input: int, p: int, n_groups: int) -> int:
    """Return the index of a bucket among p * p, in the order: groups of inputs, groups of outputs, outputs, inputs.

    The last varies fastest. The partition `output` has the bucket's centers, or its negatives, and the partition
    `input` its contexts; `n_groups`, a divisor of p, is the number of groups of consecutive partitions.
    """
    size = p // n_groups
    (output_group, j), (input_group, i) = divmod(output, size), divmod(input, size)
    return ((input_group * n_groups + output_group) * size + j) * size + i


@inline
def locate_word(word: Any, n: Any) -> Any:
    """Return the partition of a word among `n`, and the word's row in it, as `Partitions.locate` does."""
    row = word // n
    rest = word - row * n
    return (rest if row % 2 == 0 else n - 1 - rest), row


@inline
def draw_window_size(window: Any, shrink: Any, key: Any, position: Any) -> Any:
    """Return the size of the window at a corpus position, on each side: `window`, or with `shrink` a random size.

    The random size is in 1..window, drawn with the key `key`.
    """
    return window - np.int64(below(draw(key, position), window)) if shrink else window


def distribute_pairs(
    segment: Segment,
    start: int,
    stop: int,
    windows: WindowSize,
    partitions: Partitions,
    noise: Noise | None = None,
    n_groups: int = 1,
    copies: np.uint64 | None = None,
) -> BucketedPairs:
    """Distribute the pairs whose centers are at the positions start..stop-1, or their negatives, to buckets.

    Parameters
    ----------
    segment, start, stop
        Text, and a range of corpus positions.
    windows
        Size of windows.
    partitions
        The partitions of the words.
    noise
        None distributes pairs. Else negatives, by this rule: with SNS an entry for each pair, with BNS one for each
        negative. An entry's center is the pair's if it is in the partition of which the negative is drawn.
    n_groups
        Number of groups of partitions, as in `bucket_number`: the buckets of two groups are adjacent.
    copies
        Key by which the partition of each occurrence of a copied word is drawn; None without copied words.
    """
    n, n_tokens, bits = partitions.n, len(segment.tokens), (partitions.max_rows - 1).bit_length()
    window = -(-windows.window // _STEP) * _STEP
    codes, extents = np.zeros(n_tokens + 2 * window, np.uint32), np.empty(n_tokens, np.uint32)
    text = _Text(codes, extents, segment.positions, np.uint32(bits), np.uint64(window))
    _fill_text(segment, windows, n, partitions.n_copied, np.uint64(0) if copies is None else copies, text)
    edges = np.searchsorted(segment.positions, [*range(start, stop, SPAN), stop]).tolist()
    orders = [_sort_centers(text, first, last, partitions) for first, last in pairwise(edges)]
    sizes, dtype = np.zeros((len(orders), n, n), np.uint64), pair_type(partitions.max_rows)

    def visit_spans(next_indices: UInt64Array, entries: Pairs, *, write: bool) -> None:
        for span, order in enumerate(orders):
            if noise is not None:
                _distribute_noise(text, order, noise, next_indices[span], entries, write)
            elif write:
                _write_pairs(text, order, next_indices[span], entries)
            else:
                _count_pairs(text, *edges[span : span + 2], next_indices[span])

    visit_spans(sizes, empty_pairs(0, dtype), write=False)
    shape = (len(orders), n_groups, n // n_groups, n_groups, n // n_groups)
    by_bucket = sizes.reshape(shape).transpose(3, 1, 2, 4, 0)  # in the order of `bucket_number`, and in each by span
    ends = np.cumsum(by_bucket, dtype=np.uint64).reshape(by_bucket.shape)
    entries = buffers.pool.empty(int(sizes.sum()) + 1, dtype)
    next_indices = np.ascontiguousarray(ends.transpose(4, 1, 2, 0, 3)).reshape(sizes.shape) - sizes
    visit_spans(next_indices, entries, write=True)
    return BucketedPairs(entries[:-1], np.cumsum([0, *by_bucket.sum(axis=4).ravel()], dtype=np.int64))


@kernel
def _fill_text(segment: Any, windows: Any, n: Any, n_copied: Any, copies: Any, text: Any) -> None:
    """Fill `text.codes` and `text.extents` with the partition, the row and the window of each token of a segment.

    `copies` is the key of the draws of the partitions of the first `n_copied` words.
    """
    tokens, bounds = segment.tokens, segment.bounds
    for i in range(len(tokens)):
        word = np.int64(np.uint32(tokens[i]))
        part, row = locate_word(word, np.int64(np.uint32(n)))  # divisions of 32 bits
        row += n_copied
        if word < n_copied:
            part, row = np.int64(below(draw(copies, segment.positions[i]), n)), word
        text.codes[np.uint64(i) + text.window] = part << text.bits | row
    for sentence in range(len(bounds) - 1):
        first, last = bounds[sentence], bounds[sentence + 1]
        for i in range(first, last):
            reach = draw_window_size(windows.window, windows.shrink, windows.key, segment.positions[i])
            text.extents[i] = min(reach, i - first) << 16 | min(reach, last - 1 - i)


@inline
def _unpack_extents(text: Any, center: Any) -> Any:
    """Return the number of contexts before and after a center, uint64; `center` is an index in the segment."""
    extent = text.extents[center]
    return np.uint64(extent >> np.uint32(16)), np.uint64(extent & np.uint32(0xFFFF))


@inline
def _unpack_row(code: Any, bits: Any) -> Any:
    """Return the row in its partition of a token with a code of `_Text`, uint64."""
    return np.uint64(code & ((np.uint32(1) << bits) - np.uint32(1)))


def _sort_centers(text: _Text, first: int, last: int, partitions: Partitions) -> Int32Array:
    """Return the indices first..last-1 of centers, ordered by the centers' partition and row."""
    ordered, codes = np.arange(first, last, dtype=np.int32), text.codes[int(text.window) :]
    bits = int(text.bits) + (partitions.n - 1).bit_length()
    n_digits = -(-bits // _MAX_DIGIT_BITS)
    for digit in range(n_digits):
        low, high = (bits * k // n_digits for k in (digit, digit + 1))
        ordered = _sort_by_digit(codes, ordered, np.uint32(low), 1 << high - low)
    return ordered


@kernel
def _sort_by_digit(codes: Any, indices: Any, shift: Any, n: Any) -> Any:
    """Return indices, stably sorted by (code >> shift) % n of their codes; n is a power of two."""
    next_indices, ordered, mask = np.zeros(n + 1, np.int64), np.empty_like(indices), np.uint32(n - 1)
    for i in indices:
        next_indices[((codes[np.uint64(i)] >> shift) & mask) + 1] += 1
    for key in range(n):
        next_indices[key + 1] += next_indices[key]
    for i in indices:
        key = (codes[np.uint64(i)] >> shift) & mask
        ordered[np.uint64(next_indices[key])] = i
        next_indices[key] += 1
    return ordered


# Indices are unsigned in inner loops: Numba checks a signed index for negative values at each access.


@kernel
def _count_pairs(text: Any, first: Any, last: Any, sizes: Any) -> None:
    """Add the pairs of the centers first..last-1 to `sizes`, by the partitions of center and context, shape (p, p).

    All neighbours within the largest window are visited: the processor predicts a loop of constant length.
    """
    for center in range(np.uint64(first), np.uint64(last)):
        before, after = _unpack_extents(text, center)
        sizes_by_context = sizes[text.codes[center + text.window] >> text.bits]
        for start in range(0, np.int64(text.window), _STEP):
            for k in range(_STEP):
                i = np.uint64(start + k)
                sizes_by_context[_code_before(text, center, i) >> text.bits] += np.uint64(text.window - i <= before)
                sizes_by_context[_code_after(text, center, i) >> text.bits] += np.uint64(i < after)


@inline
def _code_before(text: Any, center: Any, i: Any) -> Any:
    """Return the code of neighbour `i` before a center, from 0, the farthest, on."""
    return text.codes[center + i]


@inline
def _code_after(text: Any, center: Any, i: Any) -> Any:
    """Return the code of neighbour `i` after a center, from 0, the nearest, on."""
    return text.codes[center + text.window + np.uint64(1) + i]


@kernel
def _write_pairs(text: Any, order: Any, next_indices: Any, entries: Any) -> None:
    """Write the pairs of centers to `entries`, each at the next index of its bucket.

    `order` are indices of centers; `next_indices` the next index of each bucket, by the partitions of center and
    context, shape (p, p), which is advanced.

    All neighbours are visited, as in `_count_pairs`: a neighbour that is no context is written behind all pairs.
    """
    half, window = row_bits(entries), text.window
    for number in order:
        center = np.uint64(number)
        code = text.codes[center + window]
        row, indices_of_center = _unpack_row(code, text.bits) << half, next_indices[code >> text.bits]
        before, after = _unpack_extents(text, center)
        for start in range(0, np.int64(window), _STEP):
            for k in range(_STEP):
                i = np.uint64(start + k)
                _write_pair(_code_before(text, center, i), window - i <= before, text, row, indices_of_center, entries)
        for start in range(0, np.int64(window), _STEP):
            for k in range(_STEP):
                i = np.uint64(start + k)
                _write_pair(_code_after(text, center, i), i < after, text, row, indices_of_center, entries)


@inline
def _write_pair(context: Any, counts: Any, text: Any, row: Any, indices_of_center: Any, entries: Any) -> None:
    """Write a pair to its bucket and advance the bucket's next index, or write it behind all pairs if not `counts`."""
    part = np.uint64(context >> text.bits)
    index = indices_of_center[part]
    entries[index if counts else np.uint64(len(entries) - 1)] = row | _unpack_row(context, text.bits)
    indices_of_center[part] = index + np.uint64(counts)


@kernel
def _distribute_noise(text: Any, order: Any, noise: Any, next_indices: Any, entries: Any, write: Any) -> None:
    """Advance the next index of each bucket by the negatives of the centers' pairs; write the negatives if `write`.

    `order` and `next_indices` are as in `_write_pairs`, with the partition of the negative instead of the center's.
    """
    half = row_bits(entries)
    for center in order:
        center_index = np.int64(center) + np.int64(text.window)
        code = text.codes[center_index]
        center_part, row = np.int64(code >> text.bits), _unpack_row(code, text.bits) << half
        state = draw(noise.key, text.positions[center])
        before, after = _unpack_extents(text, center)
        for i in range(center_index - np.int64(before), center_index + np.int64(after) + 1):
            if i == center_index:
                continue
            context = text.codes[i]
            part = context >> text.bits
            state += np.uint64(noise.negative) * GOLDEN
            for k in range(noise.negative if noise.rule == BNS else 1):
                partner = draw_partition(noise.rule, state, k, center_part, noise.table)
                if write:
                    center_bits = row if partner == center_part else missing_row(half) << half
                    entries[next_indices[partner, part]] = center_bits | _unpack_row(context, text.bits)
                next_indices[partner, part] += np.uint64(1)
