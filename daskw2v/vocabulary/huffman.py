"""The Huffman tree of a vocabulary: the binary tree with the shortest mean path from the root to a word.

Hierarchical softmax (Morin & Bengio 2005; Mikolov et al. 2013) predicts a word by the turns on its path. Inner nodes
are numbered by falling count, the root first, so that the K most used ones are 0 .. K - 1, of which threads can keep
copies.
"""

from typing import Any, NamedTuple

import numpy as np

from daskw2v.errors import ParameterError
from daskw2v.kernels.jit import inline, kernel
from daskw2v.types import Int32Array, Int64Array, UInt8Array, UInt64Array
from daskw2v.vocabulary.partition import Partitions

ALONE = np.uint64(2**64 - 1)  # the link of a word without a parent


class Tree(NamedTuple):
    """The path from the root to each of V words, over V - 1 inner nodes.

    Parameters
    ----------
    steps
        Inner nodes on the paths, root first, word by word, shape (n,) int32: the node's number where the path turns to
        the rarer child (turn 0), and its complement where it turns to the more frequent one (turn 1).
    starts
        Bounds of the words' paths, shape (V + 1,) int64.
    """

    steps: Int32Array
    starts: Int64Array


def nodes_of(steps: Int32Array) -> Int32Array:
    """Return the node of each step of paths, shape (n,) int32."""
    return steps ^ (steps >> 31)


def turns_of(steps: Int32Array) -> UInt8Array:
    """Return the turn at each step of paths, shape (n,) uint8."""
    return (steps < 0).astype(np.uint8)


@inline
def taken(step: Any) -> Any:
    """Return the node of a step and the turn at it, in a kernel."""
    return (~step, 1) if step < 0 else (step, 0)


def huffman_tree(counts: Int64Array) -> Tree:
    """Build the tree in which all occurrences of words together take the fewest turns.

    Of equal counts, words are joined before inner nodes, earlier words before later ones, and older inner nodes before
    newer ones. So the tree depends only on counts. Words of equal count, also of count 0, form a balanced subtree: no
    path is longer than about 120 turns.

    Building takes up to 26 bytes for each word; then the result takes 8 bytes for each word and 4 for each turn, and 14
    more bytes for each word. Five million words with Zipf's counts have 25 turns on average.

    Parameters
    ----------
    counts
        Occurrences of each word in any order, possibly 0, shape (V,) int64.

    Returns
    -------
    Tree
        The path to each word; empty for less than two words.

    Raises
    ------
    ParameterError
        If a count is negative, there are 2**31 words or more, or the counts' sum is 2**63 or more.
    """
    n_words = len(counts)
    _check(counts)
    if n_words < 2:
        return Tree(np.empty(0, np.int32), np.zeros(n_words + 1, np.int64))
    return Tree(*_paths(*_grow(counts, np.argsort(counts, kind="stable"))))


def huffman_forest(counts: Int64Array, n_trees: int) -> UInt64Array:
    """Return trees, as `huffman_tree` makes them, of words that are dealt to trees as to partitions (`Partitions`).

    They are links from child to parent: two numbers a word, however long the paths are.

    Parameters
    ----------
    counts
        As for `huffman_tree`.
    n_trees
        Number of trees, at least 1; of fewer words, one for each.

    Returns
    -------
    links
        Shape (2 V,) uint64. Word w and inner node k are the things w and V + k. The link of a thing is four times the
        number of its parent node, and 2 if that is a root, and the turn at it. A word without a parent has `ALONE`.
        Links of roots mean nothing, but for the last link: it is the number of nodes of the longest path.

    Raises
    ------
    ParameterError
        As from `huffman_tree`.
    """
    _check(counts)
    n_words, n_nodes, depth = len(counts), 0, 0
    links = np.full(2 * n_words, ALONE, np.uint64)
    if not n_words:
        return links
    trees = Partitions(n_words, min(n_trees, n_words))
    for words in map(trees.words, range(trees.n)):
        if len(words) > 1:
            own = counts[words]
            parents, turns = _grow(own, np.argsort(own, kind="stable"))
            things = np.concatenate([words, n_words + n_nodes + np.arange(len(words) - 1)])
            links[things] = 4 * (n_nodes + parents.astype(np.int64)) + 2 * (parents == 0) + turns
            depth = max(depth, int(_depths(parents).max()) + 1)
            n_nodes += len(words) - 1
    links[-1] = depth
    return links


@inline
def followed(link: Any) -> Any:
    """Return the node that a link of `huffman_forest` leads to, the turn at it, and whether it is a root."""
    return np.int64(link >> np.uint64(2)), np.int64(link & np.uint64(1)), link & np.uint64(2) != np.uint64(0)


def _check(counts: Int64Array) -> None:
    """Refuse counts that no tree has."""
    n_words = len(counts)
    if n_words >= 2**31:
        raise ParameterError(f"{n_words} words are too many for one tree.", "Keep fewer than 2**31 words.")
    if n_words and (least := counts.min()) < 0:
        raise ParameterError(f"Word {counts.argmin()} has count {least}, below zero.", "Give counts >= 0.")
    if (np.cumsum(counts) < 0).any():  # a sum that overflows becomes negative
        raise ParameterError(
            f"The counts' sum, {counts.sum(dtype=np.float64):.4g}, is not below 2**63.",
            "Divide all counts by one number.",
        )


@kernel
def _grow(counts: Int64Array, order: Int64Array) -> Any:
    """Join the two nodes of least count until one is left; return the parent of each, and the turn to it.

    Leaves, the words, are numbered before inner nodes. Inner nodes are made with ascending counts, so words in `order`
    and inner nodes in order of creation are two queues, and only their heads have to be compared.
    """
    n_words = len(counts)
    parents, turns = np.zeros(2 * n_words - 1, np.int32), np.zeros(2 * n_words - 1, np.uint8)
    sums = np.empty(n_words - 1, np.int64)
    taken = 0  # words joined so far
    head = n_words - 2  # first inner node not yet joined; none if it equals the node being made
    for node in range(n_words - 2, -1, -1):
        total = 0
        for turn in range(2):
            if taken < n_words and (head == node or counts[order[taken]] <= sums[head]):
                thing = order[taken]
                total += counts[thing]
                taken += 1
            else:
                thing = n_words + head
                total += sums[head]
                head -= 1
            parents[thing], turns[thing] = node, turn
        sums[node] = total
    return parents, turns


@kernel
def _depths(parents: Int32Array) -> Any:
    """Return the depth of each inner node, of the root 0, shape (V - 1,) int32."""
    n_words = (len(parents) + 1) // 2
    depths = np.zeros(n_words - 1, np.int32)
    for node in range(1, n_words - 1):  # parents have lower numbers
        depths[node] = depths[parents[n_words + node]] + 1
    return depths


@kernel
def _paths(parents: Int32Array, turns: UInt8Array) -> Any:
    """Write the path of each word, from the word to the root; return the fields of a `Tree`."""
    n_words = (len(parents) + 1) // 2
    depths = _depths(parents)
    starts = np.zeros(n_words + 1, np.int64)
    for word in range(n_words):
        starts[word + 1] = starts[word] + depths[parents[word]] + 1
    steps = np.empty(starts[-1], np.int32)
    for word in range(n_words):
        thing = word
        for place in range(starts[word + 1] - 1, starts[word] - 1, -1):
            steps[place] = ~parents[thing] if turns[thing] else parents[thing]
            thing = n_words + parents[thing]
    return steps, starts
