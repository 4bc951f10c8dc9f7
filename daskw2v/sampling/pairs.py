"""Pairs of context and center, dealt into buckets: one for each partition of the context and of the center.

Whoever holds the input rows of partition i and the output rows of partition j can train bucket (i, j), and needs no
other row. Within a bucket pairs keep the order of the text.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.jit import inline, kernel
from daskw2v.sampling.hierarchy import BNS, SNS, partition_of
from daskw2v.sampling.rng import GOLDEN, below, draw
from daskw2v.sampling.segments import Segment
from daskw2v.vocabulary.partition import place_of


class Pairs(NamedTuple):
    """Pairs in p * p buckets.

    Parameters
    ----------
    contexts, centers
        Row of each pair's words in their partitions, bucket after bucket, shapes (n,) int32; -1 as center of negatives
        where it is in another partition.
    edges
        Where each bucket begins and the last one ends, shape (p * p + 1,) int64; bucket i * p + j has the contexts of
        partition i and the centers of partition j.
    """

    contexts: npt.NDArray[np.int32]
    centers: npt.NDArray[np.int32]
    edges: npt.NDArray[np.int64]

    def bucket(self, number: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return a bucket's contexts and centers."""
        these = slice(self.edges[number], self.edges[number + 1])
        return self.contexts[these], self.centers[these]


@inline
def reach_of(window: Any, shrink: Any, key: Any, position: Any) -> Any:
    """Return how far the window around a corpus position reaches to either side: `window`, or a draw from 1..window."""
    return window - np.int64(below(draw(key, position), window)) if shrink else window


class Noise(NamedTuple):
    """Where the negatives of pairs are drawn, where that is not the partition of their centers.

    Parameters
    ----------
    rule
        `sampling.hierarchy.SNS` or `BNS`.
    negative
        Negatives of a pair.
    table
        Alias table of the partitions.
    key
        Stream of the draws.
    """

    rule: int
    negative: int
    table: npt.NDArray[np.uint64]
    key: np.uint64


def deal_pairs(
    segment: Segment,
    first: int,
    last: int,
    window: int,
    shrink_windows: bool,
    key: np.uint64,
    n_partitions: int,
    noise: Noise | None = None,
) -> Pairs:
    """Deal the pairs of the centers first..last-1 of a segment, or their negatives, into buckets.

    Parameters
    ----------
    segment, first, last
        Text, and a range of indices into its tokens.
    window, shrink_windows, key
        As in Params, and the stream of the draws of window sizes.
    n_partitions
        p, the number of `vocabulary.partition.Partitions`.
    noise
        With it, negatives are dealt to the partitions they are drawn from: an entry for each pair with SNS, one for
        each negative with BNS. Its center is -1 where that is in another partition.
    """
    items = 0 if noise is None else noise.negative if noise.rule == BNS else 1
    noise = noise or Noise(SNS, 0, np.zeros(1, np.uint64), np.uint64(0))
    edges, none = np.zeros(n_partitions**2 + 1, np.int64), np.empty(0, np.int32)
    how = (segment, first, last, window, shrink_windows, key, n_partitions, noise, items)
    _deal(*how, edges[1:], none, none, False)
    edges = np.cumsum(edges)
    contexts, centers = (np.empty(edges[-1], np.int32) for _ in range(2))
    _deal(*how, edges[:-1].copy(), contexts, centers, True)
    return Pairs(contexts, centers, edges)


@kernel
def _deal(
    segment: Any, first: Any, last: Any, window: Any, shrink: Any, key: Any, n: Any, noise: Any, items: Any,
    places: Any, contexts: Any, centers: Any, write: Any,
) -> None:  # fmt: skip
    """Move the place of each bucket on by its entries; write them there, or only count them.

    `items` entries are negatives of a pair; 0 deals the pair itself.
    """
    tokens, bounds = segment.tokens, segment.bounds
    sentence = np.searchsorted(bounds, first, side="right") - 1
    for center in range(first, last):
        while center >= bounds[sentence + 1]:
            sentence += 1
        reach = reach_of(window, shrink, key, segment.positions[center])
        state = draw(noise.key, segment.positions[center])
        own, row = place_of(np.int64(tokens[center]), n)
        for i in range(max(bounds[sentence], center - reach), min(bounds[sentence + 1], center + reach + 1)):
            if i == center:
                continue
            part, at = place_of(np.int64(tokens[i]), n)
            state += np.uint64(noise.negative) * GOLDEN
            for k in range(max(items, 1)):
                partner = partition_of(noise.rule, state, k, own, noise.table) if items else own
                bucket = part * n + partner
                if write:
                    contexts[places[bucket]] = at
                    centers[places[bucket]] = row if partner == own else -1
                places[bucket] += 1
