"""The rows that training a segment may read: known before it is trained, since draws are functions of positions."""

from collections.abc import Mapping
from typing import Any

from daskw2v.kernels.alias import pick
from daskw2v.kernels.distinct import distinct
from daskw2v.kernels.jit import kernel
from daskw2v.kernels.rng import GOLDEN, draw, mix
from daskw2v.objectives.noise import PreparedNoise, negatives_of, pick_in_market
from daskw2v.objectives.settings import SharedNegatives
from daskw2v.objectives.tree import PreparedTree
from daskw2v.sampling.segments import Segment
from daskw2v.types import BoolArray
from daskw2v.vocabulary.huffman import taken

Marks = Mapping[str, BoolArray]


def reached_words(prepared: PreparedNoise, segment: Segment, first: int, last: int, epoch: int, marks: Marks) -> None:
    """Mark the rows of all words, and of all negatives that the centers first..last-1 may draw.

    Windows that share negatives use those of one of them. With a set for each pair, the sets of a window's pairs are
    consecutive draws from the state of its center.
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
            marks[taken(tree.steps[k])[0]] = True
