"""Which rows training a segment may reach: known before it is trained, since draws are functions of positions."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from daskw2v.kernels.alias import pick
from daskw2v.kernels.jit import kernel
from daskw2v.kernels.rng import GOLDEN, draw, mix
from daskw2v.objectives.noise import PreparedNoise, negatives_of
from daskw2v.objectives.tree import PreparedTree
from daskw2v.sampling.segments import Segment
from daskw2v.types import BoolArray
from daskw2v.vocabulary.huffman import taken

Marks = Mapping[str, BoolArray]


def reached_words(prepared: PreparedNoise, segment: Segment, first: int, last: int, epoch: int, marks: Marks) -> None:
    """Mark the rows of all words, and of all negatives that the centers first..last-1 may draw.

    Windows that share negatives draw those of one of them; each pair's own negatives follow on its center's.
    """
    params, negatives = prepared.params, negatives_of(prepared, epoch)
    pairs = 1 if params.negative_sharing == "shared" else 2 * params.window
    marks["input"][segment.tokens] = True
    marks["output"][segment.tokens[first:last]] = True
    _mark_negatives(
        segment.positions[first:last], negatives.key, negatives.table, params.negative * pairs, marks["output"]
    )


def reached_nodes(prepared: PreparedTree, segment: Segment, first: int, last: int, epoch: int, marks: Marks) -> None:
    """Mark the rows of all words, and of the nodes on the paths of the centers first..last-1."""
    marks["input"][segment.tokens] = True
    _mark_paths(prepared.tree, np.unique(segment.tokens[first:last]), marks["output"])


@kernel
def _mark_negatives(positions: Any, key: Any, table: Any, n: Any, marks: Any) -> None:
    for i in range(len(positions)):
        state = draw(key, positions[i])
        for k in range(1, n + 1):
            marks[pick(table, mix(state + np.uint64(k) * GOLDEN))] = True


@kernel
def _mark_paths(tree: Any, words: Any, marks: Any) -> None:
    for word in words:
        for k in range(tree.starts[word], tree.starts[word + 1]):
            marks[taken(tree.steps[k])[0]] = True
