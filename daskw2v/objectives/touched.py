"""The rows that windows touch: the chance of each, and all that training a segment may read.

If many windows are trained at once, likely rows take shorter steps. The rows of a segment are known before it is
trained, since draws are functions of positions.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from daskw2v.config.params import Params
from daskw2v.kernels.alias import pick
from daskw2v.kernels.distinct import distinct
from daskw2v.kernels.jit import kernel
from daskw2v.kernels.rng import GOLDEN, draw, mix
from daskw2v.objectives.noise import BATCH, Markets, PreparedNoise, negatives_of, pick_in_market
from daskw2v.objectives.settings import SharedNegatives
from daskw2v.objectives.tree import PreparedTree
from daskw2v.sampling.hierarchy import RULES, split_negatives
from daskw2v.sampling.segments import Segment, keep_thresholds
from daskw2v.sampling.settings import Partitioned
from daskw2v.sampling.weights import word_weights
from daskw2v.types import BoolArray, Float64Array, Int64Array, UInt64Array
from daskw2v.vocabulary.huffman import ALONE, read_link, read_step

_FROM_MARKETS = np.uint64(1 << 32)  # spans from here on begin behind the table of all words
Marks = Mapping[str, BoolArray]


def touched_words(prepared: PreparedNoise, counts: Int64Array) -> dict[str, Float64Array]:
    """Return each row's chance to be among a window's contexts (input), or its targets (output), by table, (rows,)."""
    params, settings = prepared.params, SharedNegatives.of(prepared.params)
    noise = word_weights(counts, settings.ns_exponent)
    share = _shares(params, counts)
    drawn = settings.negative * noise / noise.sum()
    if settings.market_negative:
        drawn += settings.market_negative * _drawn_near(prepared.markets, share, noise)
    return {"input": _contexts(params) * share, "output": share + drawn}


def touched_nodes(prepared: PreparedTree, counts: Int64Array) -> dict[str, Float64Array]:
    """Return each row's chance to be among a window's contexts (input), or the nodes of its path (output), by table."""
    share = _shares(prepared.params, counts)
    nodes = np.zeros(max(0, len(counts) - 1))
    _add_paths(prepared.tree, share, nodes)
    return {"input": _contexts(prepared.params) * share, "output": nodes}


def contexts_in_partition(params: Params, counts: Int64Array, total: int) -> Float64Array:
    """Return how many items of a batch of pairs touch each row of an input partition, shape (rows,).

    Parameters
    ----------
    counts, total
        Occurrences of the partition's words, and of all words.
    """
    return BATCH * _shares(params, counts, total)


def words_in_partition(params: Params, counts: Int64Array, total: int, _: UInt64Array) -> Float64Array:
    """Return how many items touch each row of an output partition: each has a center, and a batch has negatives."""
    settings = SharedNegatives.of(params)
    share, noise = BATCH * _shares(params, counts, total), word_weights(counts, settings.ns_exponent)
    each = negatives_of_pair(params)[1]
    negative = max(settings.negative, each + BATCH)  # of a batch, at most, drawn in the partition
    return np.asarray(share + negative * noise / noise.sum())


def negatives_of_pair(params: Params) -> tuple[int, int]:
    """Return the negatives that a pair of a bucket meets with its center, and those of each item of noise."""
    return split_negatives(RULES[Partitioned.of(params).negative_rule], SharedNegatives.of(params).negative)


def nodes_in_partition(params: Params, counts: Int64Array, total: int, links: UInt64Array) -> Float64Array:
    """Return how many items touch each node of the paths in `tree.linked_trees`, where a batch has one center."""
    nodes = np.zeros(len(counts))
    _add_linked(links, _shares(params, counts, total), nodes)
    return nodes


def reached_words(prepared: PreparedNoise, segment: Segment, first: int, last: int, epoch: int, marks: Marks) -> None:
    """Mark the rows of all words, and of all negatives that the centers first..last-1 may draw.

    Windows that share negatives use the negatives of one of them. With a set for each pair, the sets of a window's
    pairs are consecutive draws from the state of its center.
    """
    params, negatives = prepared.params, negatives_of(prepared, epoch)
    pairs = 1 if SharedNegatives.of(params).negative_sharing == "shared" else 2 * params.window
    centers = segment.tokens[first:last]
    marks["input"][segment.tokens] = True
    marks["output"][centers] = True
    _mark_negatives(centers, segment.positions[first:last], negatives, pairs, marks["output"])


def reached_nodes(prepared: PreparedTree, segment: Segment, first: int, last: int, epoch: int, marks: Marks) -> None:
    """Mark the rows of all words, and of the nodes on the paths of the centers first..last-1."""
    marks["input"][segment.tokens] = True
    _mark_paths(prepared.tree, distinct(segment.tokens[first:last]), marks["output"])


def _drawn_near(markets: Markets, share: Float64Array, noise: Float64Array) -> Float64Array:
    """Return how often each word is drawn from the market of a center, by the words' shares of centers and weights."""
    _, market = np.unique(markets.spans, return_inverse=True)
    drawn = np.bincount(market, share)[market] * noise / np.maximum(np.bincount(market, noise)[market], 1e-300)
    free = markets.spans < _FROM_MARKETS  # words without market, for which all words are drawn
    return np.where(free, 0.0, drawn) + share[free].sum() * noise / noise.sum()


def _shares(params: Params, counts: Int64Array, total: int | None = None) -> Float64Array:
    """Return each word's share of the words that subsampling keeps."""
    kept = counts * (keep_thresholds(counts, params.sample, total) / 2.0**32)
    return np.asarray(kept / max(kept.sum(), 1e-300))


def _contexts(params: Params) -> int:
    """Return the mean number of contexts of a window."""
    return params.window + 1 if params.shrink_windows else 2 * params.window


@kernel
def _add_paths(tree: Any, share: Any, nodes: Any) -> None:
    for word in range(len(share)):
        for k in range(tree.starts[word], tree.starts[word + 1]):
            nodes[read_step(tree.steps[k])[0]] += share[word]


@kernel
def _add_linked(links: Any, share: Any, nodes: Any) -> None:
    for word in range(len(share)):
        link = links[word]
        below = link != ALONE
        while below:
            node, _, is_root = read_link(link)
            nodes[node] += share[word]
            below = not is_root
            link = links[len(share) + node]


@kernel
def _mark_negatives(words: Any, positions: Any, negatives: Any, pairs: Any, marks: Any) -> None:
    for i in range(len(positions)):
        state = draw(negatives.key, positions[i])
        for _ in range(pairs):
            for _ in range(negatives.negative):
                state += GOLDEN
                marks[pick(negatives.table, mix(state))] = True
            for _ in range(negatives.market_negative):
                state += GOLDEN
                marks[pick_in_market(negatives.markets, words[i], mix(state))] = True


@kernel
def _mark_paths(tree: Any, words: Any, marks: Any) -> None:
    for word in words:
        for k in range(tree.starts[word], tree.starts[word + 1]):
            marks[read_step(tree.steps[k])[0]] = True
