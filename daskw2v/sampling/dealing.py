"""Sorts pairs of context and center into buckets, one for each partition of the context and of the center.

Bucket (i, j) can be trained with the input rows of partition i and the output rows of partition j alone. Pairs are
sorted in two steps, as in a radix sort: each piece of text into p rows of buckets by the partition of the context; then
each row, from all pieces, into its p buckets by the partition of the center. Both are stable: a bucket has its pairs in
the order of the text.
"""

from typing import Any, NamedTuple

import numpy as np

from daskw2v.kernels.jit import inline, kernel
from daskw2v.kernels.rng import GOLDEN, below, draw
from daskw2v.sampling.hierarchy import BNS, SNS, partition_of
from daskw2v.sampling.segments import Segment
from daskw2v.types import Int32Array, Int64Array, UInt64Array


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


class Dealt(NamedTuple):
    """Pairs, or negatives of pairs, in groups.

    Parameters
    ----------
    entries
        Row of the context in its partition, and a target, group by group, shape (n, 2) int32.
    edges
        Bounds of the groups, shape (groups + 1,) int64.
    """

    entries: Int32Array
    edges: Int64Array


@inline
def place_of(word: Any, n: Any) -> Any:
    """Return a word's partition and its row there, as `vocabulary.partition.Partitions.place` does."""
    row = word // n
    dealt = word - row * n
    return (dealt if row % 2 == 0 else n - 1 - dealt), row


@inline
def reach_of(window: Any, shrink: Any, key: Any, position: Any) -> Any:
    """Return the size of the window at a corpus position, on both sides: `window`, or a draw from 1..window."""
    return window - np.int64(below(draw(key, position), window)) if shrink else window


def deal_pairs(
    segment: Segment, first: int, last: int, windows: WindowSize, n_partitions: int, noise: Noise | None = None
) -> Dealt:
    """Sort the pairs of the centers first..last-1 of a segment, or their negatives, by the partition of the context.

    Parameters
    ----------
    segment, first, last
        Text, and a range of indices into its tokens.
    windows
        Size of windows.
    n_partitions
        Number of partitions p (`vocabulary.partition.Partitions`).
    noise
        If given, negatives are sorted instead of pairs: with SNS an entry for each pair, with BNS one for each
        negative.

    Returns
    -------
    rows
        p rows of buckets. The target is the center of the pair, a word; or -1 - j for a negative from partition j if
        the center is in another partition.
    """
    items = 0 if noise is None else noise.negative if noise.rule == BNS else 1
    noise = noise or Noise(SNS, 0, np.zeros(1, np.uint64), np.uint64(0))
    ends = np.zeros(n_partitions + 1, np.int64)
    how = (segment, first, last, windows, n_partitions, noise, items)
    _deal(*how, ends[1:], np.empty((0, 2), np.int32), False)
    edges = np.cumsum(ends)
    entries = np.empty((edges[-1], 2), np.int32)
    _deal(*how, edges[:-1].copy(), entries, True)
    return Dealt(entries, edges)


@kernel
def _deal(
    segment: Any, first: Any, last: Any, windows: Any, n: Any, noise: Any, items: Any, places: Any, entries: Any,
    write: Any,
) -> None:  # fmt: skip
    """Advance the place of each row by its entries, and write the entries there if `write`.

    A pair has `items` entries, its negatives; with 0 it has one entry, the pair itself.
    """
    tokens, bounds = segment.tokens, segment.bounds
    sentence = np.searchsorted(bounds, first, side="right") - 1
    for center in range(first, last):
        while center >= bounds[sentence + 1]:
            sentence += 1
        reach = reach_of(windows.window, windows.shrink, windows.key, segment.positions[center])
        state = draw(noise.key, segment.positions[center])
        word = tokens[center]
        own, _ = place_of(np.int64(word), n)
        for i in range(max(bounds[sentence], center - reach), min(bounds[sentence + 1], center + reach + 1)):
            if i == center:
                continue
            part, row = place_of(np.int64(tokens[i]), n)
            if not write:
                places[part] += max(items, 1)
                continue
            state += np.uint64(noise.negative) * GOLDEN
            for k in range(max(items, 1)):
                partner = partition_of(noise.rule, state, k, own, noise.table) if items else own
                entries[places[part], 0] = row
                entries[places[part], 1] = word if partner == own else -1 - partner
                places[part] += 1


def deal_row(entries: Int32Array, n_partitions: int) -> Dealt:
    """Sort the entries of a row from `deal_pairs` into its p buckets.

    The target is then the row of the center in its partition, or -1 if the center is in another partition.
    """
    ends = np.zeros(n_partitions + 1, np.int64)
    _count(entries, n_partitions, ends[1:])
    edges = np.cumsum(ends)
    dealt = np.empty_like(entries)
    _place(entries, n_partitions, edges[:-1].copy(), dealt)
    return Dealt(dealt, edges)


@inline
def _target_of(target: Any, n: Any) -> Any:
    """Return the partition of a target, and its row there or -1."""
    if target < 0:
        return np.int64(-1 - target), np.int64(-1)
    return place_of(np.int64(target), n)


@kernel
def _count(entries: Any, n: Any, sizes: Any) -> None:
    for i in range(len(entries)):
        sizes[_target_of(entries[i, 1], n)[0]] += 1


@kernel
def _place(entries: Any, n: Any, places: Any, dealt: Any) -> None:
    for i in range(len(entries)):
        part, row = _target_of(entries[i, 1], n)
        dealt[places[part], 0] = entries[i, 0]
        dealt[places[part], 1] = row
        places[part] += 1
