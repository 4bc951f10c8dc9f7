"""Targets of hierarchical softmax: the inner nodes on a word's way through the tree (Morin and Bengio 2005).

A way is taken from the leaf up, since the rows near the leaf are the ones to prefetch; those near the root are always
close. It is spread over groups of one size, so that few targets only fill up.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.jit import inline, kernel
from daskw2v.objectives.base import Memory
from daskw2v.objectives.hidden import train_hidden
from daskw2v.objectives.scratch import Scratch, make_scratch
from daskw2v.objectives.steps import MAX_TARGETS
from daskw2v.objectives.windows import row_of, train_group
from daskw2v.params import Params
from daskw2v.vocabulary.huffman import Tree, huffman_tree

SMALLEST = 5  # targets of a group; a shorter way fills up with nodes that do not count


class Prepared(NamedTuple):
    """The Params, the tree, and the number of nodes of its longest way."""

    params: Params
    tree: Tree
    depth: int


def prepare_tree(params: Params, counts: npt.NDArray[np.int64]) -> Prepared:
    """Build the tree of a vocabulary."""
    tree = huffman_tree(counts)
    return Prepared(params, tree, int(np.diff(tree.starts).max(initial=0)))


def tree_tables(params: Params, n_words: int) -> dict[str, int]:
    """Return the numbers of rows: a vector for each word, and one for each inner node."""
    return {"input": n_words, "output": max(0, n_words - 1)}


def spread(n_nodes: int) -> tuple[int, int]:
    """Return how many groups n_nodes are spread over, and the targets of each (the last may hold fewer)."""
    groups = (n_nodes + MAX_TARGETS - 1) // MAX_TARGETS
    return groups, max(SMALLEST, -(-n_nodes // max(groups, 1)))


_spread = inline(spread)


def way_of(tree: Tree, word: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the nodes of a word's way, from the leaf up, and their signs: +1 for turn 0, -1 for turn 1."""
    way = slice(tree.starts[word], tree.starts[word + 1])
    return tree.nodes[way][::-1].astype(np.int64), 1.0 - 2.0 * tree.turns[way][::-1].astype(np.float64)


def way_scratch(prepared: Prepared, memory: Memory) -> Scratch:
    """Return the scratch of a kernel that holds the ways of two windows."""
    groups = -(-max(prepared.depth, 1) // MAX_TARGETS)
    return make_scratch(memory, prepared.params.window, 2, groups, groups * MAX_TARGETS, groups * MAX_TARGETS)


@kernel
def find_way(tree: Any, word: Any, output: Any, width: Any, hot: Any, rows: Any, signs: Any, turn: Any) -> Any:
    """Write a word's way to rows[turn] and signs[turn]; return the numbers of groups and of targets in each.

    Parameters
    ----------
    tree, word
        `vocabulary.huffman.Tree`, and the word's number.
    output, width, hot
        Address of the nodes' table, its row length, and `HotRows`.
    rows, signs
        Both of shape (2, MAX_TARGETS * groups of the longest way). What fills the last group does not count.
    """
    start, n = tree.starts[word], tree.starts[word + 1] - tree.starts[word]
    groups, size = _spread(n)
    for i in range(n):
        node = start + n - 1 - i
        rows[turn, i] = row_of(output, tree.nodes[node], width, hot.rows, hot.output)
        signs[turn, i] = np.float32(1 - 2 * np.int32(tree.turns[node]))
    for i in range(n, groups * size):
        rows[turn, i] = rows[turn, 0]
        signs[turn, i] = 0.0
    return groups, size


@inline
def train_way(
    place: Any, contexts: Any, n: Any, rows: Any, ahead: Any, groups: Any, size: Any, width: Any, signs: Any, alpha: Any
) -> None:
    """Train n contexts against the way whose rows and signs begin at two addresses, while another comes close."""
    for g in range(groups):
        here, there, sign = rows + g * size * 8, ahead + g * size * 8, signs + g * size * 4
        if size == 5:
            train_group(place, contexts, n, here, there, 1, width, sign, alpha, (0,) * 5)
        elif size == 6:
            train_group(place, contexts, n, here, there, 1, width, sign, alpha, (0,) * 6)
        elif size == 7:
            train_group(place, contexts, n, here, there, 1, width, sign, alpha, (0,) * 7)
        else:
            train_group(place, contexts, n, here, there, 1, width, sign, alpha, (0,) * 8)


@inline
def train_hidden_way(
    place: Any, hidden: Any, moves: Any, rows: Any, ahead: Any, groups: Any, size: Any, width: Any, signs: Any,
    alpha: Any,
) -> None:  # fmt: skip
    """Train a hidden vector against the way whose rows and signs begin at two addresses, as `train_hidden` does."""
    if size == 5:
        train_hidden(place, hidden, 1, moves, rows, rows, ahead, groups, 1, width, signs, alpha, (0,), (0,) * 5)
    elif size == 6:
        train_hidden(place, hidden, 1, moves, rows, rows, ahead, groups, 1, width, signs, alpha, (0,), (0,) * 6)
    elif size == 7:
        train_hidden(place, hidden, 1, moves, rows, rows, ahead, groups, 1, width, signs, alpha, (0,), (0,) * 7)
    else:
        train_hidden(place, hidden, 1, moves, rows, rows, ahead, groups, 1, width, signs, alpha, (0,), (0,) * 8)
