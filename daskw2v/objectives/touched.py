"""The rows that windows touch: the chance of each, and all that training a segment may read.

If many windows are trained at once, likely rows take shorter steps. The chance is the mean number of times that a
window touches a row, and may exceed 1. The rows of a segment are known before it is trained, since draws are functions
of positions.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from daskw2v.config.params import Params
from daskw2v.kernels.alias import pick
from daskw2v.kernels.distinct import distinct
from daskw2v.kernels.jit import kernel
from daskw2v.kernels.rng import GOLDEN, draw, mix
from daskw2v.objectives.noise import BATCH, Markets, PreparedNoise, make_negatives, pick_in_market
from daskw2v.objectives.settings import SharedNegatives
from daskw2v.objectives.tree import PreparedTree
from daskw2v.sampling.hierarchy import RULES, split_negatives
from daskw2v.sampling.segments import Segment, keep_thresholds
from daskw2v.sampling.settings import Partitioned
from daskw2v.sampling.weights import word_weights
from daskw2v.types import BoolArray, Float64Array, Int64Array, UInt64Array
from daskw2v.vocabulary.huffman import ALONE, read_link, read_step

_MIN_MARKET_SPAN = np.uint64(1 << 32)  # smaller spans are of the table of all words
Marks = Mapping[str, BoolArray]


def touched_words(prepared: PreparedNoise, counts: Int64Array) -> dict[str, Float64Array]:
    """Return the chance that a row is a context ("input") or a target ("output") of a window, by table, (rows,).

    `counts` has the counts of all words, shape (V,).
    """
    params, settings = prepared.params, SharedNegatives.of(prepared.params)
    noise = word_weights(counts, settings.ns_exponent)
    share = _kept_shares(params, counts)
    drawn = settings.negative * noise / noise.sum()
    if settings.market_negative:
        drawn += settings.market_negative * _market_draws(prepared.markets, share, noise)
    return {"input": contexts_of_window(params) * share, "output": share + drawn}


def touched_nodes(prepared: PreparedTree, counts: Int64Array) -> dict[str, Float64Array]:
    """Return the chance that a row is a context ("input") or a node of the path ("output") of a window, by table.

    Arguments and shapes are as in `touched_words`.
    """
    share = _kept_shares(prepared.params, counts)
    nodes = np.zeros(max(0, len(counts) - 1))
    _add_paths(prepared.tree, share, nodes)
    return {"input": contexts_of_window(prepared.params) * share, "output": nodes}


def contexts_in_partition(params: Params, counts: Int64Array, total: int) -> Float64Array:
    """Return the mean number of updates of each row of an input partition by a batch of BATCH pairs, shape (rows,).

    Parameters
    ----------
    counts, total
        Number of occurrences of each word of the partition, shape (rows,), and of all words together.
    """
    return BATCH * _kept_shares(params, counts, total)


def words_in_partition(params: Params, counts: Int64Array, total: int, _: UInt64Array) -> Float64Array:
    """Return the mean number of updates of each row of an output partition by a batch of BATCH pairs, shape (rows,).

    Arguments are as in `contexts_in_partition`; the last, the result of `Objective.partition_table`, is not read.
    """
    # Each item has a center, and a batch has negatives
    settings = SharedNegatives.of(params)
    share, noise = BATCH * _kept_shares(params, counts, total), word_weights(counts, settings.ns_exponent)
    noise_negatives = count_negatives(params)[1]
    negative = max(settings.negative, noise_negatives + BATCH)  # largest number of a batch, drawn in the partition
    return np.asarray(share + negative * noise / noise.sum())


def count_negatives(params: Params) -> tuple[int, int]:
    """Return the number of negatives of a bucket's pair beside its center, and of an item of noise, a bare context."""
    return split_negatives(RULES[Partitioned.of(params).negative_rule], SharedNegatives.of(params).negative)


def nodes_in_partition(params: Params, counts: Int64Array, total: int, links: UInt64Array) -> Float64Array:
    """Return the mean number of updates of each node by a batch, whose pairs have one center, shape (words,).

    `counts` and `total` are as in `contexts_in_partition`. `links` are the trees of the partition, as
    `tree.make_linked_trees` returns them.
    """
    nodes = np.zeros(len(counts))
    _add_linked(links, _kept_shares(params, counts, total), nodes)
    return nodes


def mark_reached_words(
    prepared: PreparedNoise, segment: Segment, first: int, last: int, epoch: int, marks: Marks
) -> None:
    """Mark the input rows of a segment's tokens, the output rows of its centers first..last-1 and of their negatives.

    All negatives that the centers may draw are marked. `marks` has a bool for each row, by table. Windows that share
    negatives use the negatives of one of them. With a set for each pair, the sets of a window's pairs are consecutive
    draws from the state of its center.
    """
    params, negatives = prepared.params, make_negatives(prepared, epoch)
    pairs = 1 if SharedNegatives.of(params).negative_sharing == "shared" else 2 * params.window
    centers = segment.tokens[first:last]
    marks["input"][segment.tokens] = True
    marks["output"][centers] = True
    _mark_negatives(centers, segment.positions[first:last], negatives, pairs, marks["output"])


def mark_reached_nodes(
    prepared: PreparedTree, segment: Segment, first: int, last: int, epoch: int, marks: Marks
) -> None:
    """Mark the input rows of a segment's tokens, and the nodes on the paths of its centers first..last-1."""
    marks["input"][segment.tokens] = True
    _mark_paths(prepared.tree, distinct(segment.tokens[first:last]), marks["output"])


def _market_draws(markets: Markets, share: Float64Array, noise: Float64Array) -> Float64Array:
    """Return how often, on average, each word is drawn by one draw from the market of a center, shape (V,).

    Parameters
    ----------
    markets
        The tables of markets.
    share, noise
        Share of each word among the centers, and its weight among the negatives, shape (V,).
    """
    _, market_of_word = np.unique(markets.spans, return_inverse=True)
    market_share, market_noise = (np.bincount(market_of_word, w)[market_of_word] for w in (share, noise))
    drawn = market_share * noise / np.maximum(market_noise, 1e-300)
    without_market = markets.spans < _MIN_MARKET_SPAN  # words without market, for which all words are drawn
    return np.where(without_market, 0.0, drawn) + share[without_market].sum() * noise / noise.sum()


def _kept_shares(params: Params, counts: Int64Array, total: int | None = None) -> Float64Array:
    """Return each word's share of the tokens of these words that subsampling keeps, shape (words,).

    `total` is the sum of the counts of all words; None if `counts` has all words.
    """
    kept = counts * (keep_thresholds(counts, params.sample, total) / 2.0**32)
    return np.asarray(kept / max(kept.sum(), 1e-300))


def contexts_of_window(params: Params) -> int:
    """Return the mean number of contexts of a window that lies inside a sentence."""
    return params.window + 1 if params.shrink_windows else 2 * params.window


@kernel
def _add_paths(tree: Any, share: Any, nodes: Any) -> None:
    """Add the share of each word to the nodes of its path."""
    for word in range(len(share)):
        for k in range(tree.starts[word], tree.starts[word + 1]):
            nodes[read_step(tree.steps[k])[0]] += share[word]


@kernel
def _add_linked(links: Any, share: Any, nodes: Any) -> None:
    """Add the share of each word to the nodes of its path in linked trees."""
    for word in range(len(share)):
        link = links[word]
        is_inside = link != ALONE
        while is_inside:
            node, _, is_root = read_link(link)
            nodes[node] += share[word]
            is_inside = not is_root
            link = links[len(share) + node]


@kernel
def _mark_negatives(words: Any, positions: Any, negatives: Any, n_pairs: Any, marks: Any) -> None:
    """Mark the negatives of the windows of words at corpus positions, both of shape (n,), for `n_pairs` pairs each."""
    for i in range(len(positions)):
        state = draw(negatives.key, positions[i])
        for _ in range(n_pairs):
            for _ in range(negatives.negative):
                state += GOLDEN
                marks[pick(negatives.table, mix(state))] = True
            for _ in range(negatives.market_negative):
                state += GOLDEN
                marks[pick_in_market(negatives.markets, words[i], mix(state))] = True


@kernel
def _mark_paths(tree: Any, words: Any, marks: Any) -> None:
    """Mark the nodes on the paths of words."""
    for word in words:
        for k in range(tree.starts[word], tree.starts[word + 1]):
            marks[read_step(tree.steps[k])[0]] = True
