"""The Huffman tree of a vocabulary: the binary tree with the shortest mean path from the root to a word.

Hierarchical softmax (Morin & Bengio 2005; Mikolov et al. 2013) predicts a word by the turns on its path. Inner nodes
are numbered by falling count, the root first. Hence the K most used nodes are 0 .. K - 1, and threads can keep copies
of these.
"""

from typing import Any, NamedTuple

import numpy as np

from daskw2v.errors import ParameterError
from daskw2v.kernels.jit import inline, kernel
from daskw2v.types import Int32Array, Int64Array, UInt8Array, UInt64Array
from daskw2v.vocabulary.partition import Partitions

ALONE = np.uint64(2**64 - 1)  # the link of a word without a parent


class Tree(NamedTuple):
    """The paths from the root to each of V words, over V - 1 inner nodes.

    Parameters
    ----------
    steps
        Inner nodes on the paths, root first, word by word, shape (n,) int32: the node's number where the path turns to
        the rarer child (turn 0), and the number's complement where it turns to the more frequent child (turn 1).
    starts
        Bounds of the words' paths in `steps`, shape (V + 1,) int64.
    """

    steps: Int32Array
    starts: Int64Array


def nodes_of(steps: Int32Array) -> Int32Array:
    """Return the number of the inner node of each step in `Tree.steps`, shape (n,) int32."""
    return steps ^ (steps >> 31)


def turns_of(steps: Int32Array) -> UInt8Array:
    """Return the turn, 0 or 1, of each step in `Tree.steps`, shape (n,) uint8."""
    return (steps < 0).astype(np.uint8)


@inline
def read_step(step: Any) -> Any:
    """Return the number of the inner node and the turn, 0 or 1, of one step of `Tree.steps`, in a kernel."""
    return (~step, 1) if step < 0 else (step, 0)


def huffman_tree(counts: Int64Array) -> Tree:
    """Build the tree in which all occurrences of words together take the fewest turns.

    Of equal counts, words are joined before inner nodes, earlier words before later words, and older inner nodes before
    newer nodes. Hence the tree depends on nothing but the counts. Words of equal count, also of count 0, form a
    balanced subtree: no path is longer than about 120 turns.

    Building takes up to 26 bytes for each word; then the result takes 8 bytes for each word and 4 for each turn, and 14
    more bytes for each word.

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
    return Tree(*_build_paths(*_join_nodes(counts, np.argsort(counts, kind="stable"))))


def huffman_forest(counts: Int64Array, n_trees: int) -> UInt64Array:
    """Build several Huffman trees, over words assigned to trees as to partitions (`Partitions`); return their links.

    A link leads from a child to its parent. Links take two numbers a word, however long the paths are.

    Parameters
    ----------
    counts
        As for `huffman_tree`.
    n_trees
        Number of trees, at least 1; if there are fewer words, each word is a tree.

    Returns
    -------
    links
        Shape (2 V,) uint64: the link of word w at index w, and the link of inner node k at index V + k. A link is four
        times the number of the parent node, plus 2 if the parent is a root, plus the turn at the parent. A word without
        a parent has the link `ALONE`. Links of roots mean nothing, but for the last link: it is the number of nodes of
        the longest path.

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
            tree_counts = counts[words]
            parents, turns = _join_nodes(tree_counts, np.argsort(tree_counts, kind="stable"))
            children = np.concatenate([words, n_words + n_nodes + np.arange(len(words) - 1)])
            links[children] = 4 * (n_nodes + parents.astype(np.int64)) + 2 * (parents == 0) + turns
            depth = max(depth, int(_find_depths(parents).max()) + 1)
            n_nodes += len(words) - 1
    links[-1] = depth
    return links


@inline
def read_link(link: Any) -> Any:
    """Return the parent node of a link of `huffman_forest`, the turn at the parent, and whether the parent is a root.

    It is called in kernels.
    """
    return np.int64(link >> np.uint64(2)), np.int64(link & np.uint64(1)), link & np.uint64(2) != np.uint64(0)


def _check(counts: Int64Array) -> None:
    """Raise a ParameterError for counts of words that no tree can have, as `huffman_tree` says."""
    n_words = len(counts)
    if n_words >= 2**31:
        raise ParameterError(f"{n_words} words are too many for one tree.", "Keep fewer than 2**31 words.")
    if n_words and (lowest := counts.min()) < 0:
        raise ParameterError(f"Word {counts.argmin()} has count {lowest}, below zero.", "Give counts >= 0.")
    if (np.cumsum(counts) < 0).any():  # a sum that overflows becomes negative
        problem = f"The counts' sum, {counts.sum(dtype=np.float64):.4g}, is not below 2**63."
        raise ParameterError(problem, "Divide all counts by one number.")


@kernel
def _join_nodes(counts: Int64Array, order: Int64Array) -> Any:
    """Join the two nodes of least count until one remains; return the parent of each node, and the turn to the node.

    Leaves, which are the V words, come before inner nodes. Inner nodes are made with ascending counts. Hence words in
    `order` and inner nodes in order of creation are two queues, and only the heads of the queues are compared.

    Parameters
    ----------
    counts, order
        Count of each word, and the indices that sort the counts, shape (V,) int64.

    Returns
    -------
    parents, turns
        Number of the parent, and 0 or 1, of each word and inner node, shape (2 V - 1,) int32 and uint8.
    """
    n_words = len(counts)
    parents, turns = np.zeros(2 * n_words - 1, np.int32), np.zeros(2 * n_words - 1, np.uint8)
    sums = np.empty(n_words - 1, np.int64)
    n_joined = 0  # words that have a parent
    head = n_words - 2  # first inner node without a parent; none if it equals the node being made
    for node in range(n_words - 2, -1, -1):
        total = 0
        for turn in range(2):
            if n_joined < n_words and (head == node or counts[order[n_joined]] <= sums[head]):
                child = order[n_joined]
                total += counts[child]
                n_joined += 1
            else:
                child = n_words + head
                total += sums[head]
                head -= 1
            parents[child], turns[child] = node, turn
        sums[node] = total
    return parents, turns


@kernel
def _find_depths(parents: Int32Array) -> Any:
    """Return the depth of each inner node, 0 for the root, shape (V - 1,) int32; `parents` is as of `_join_nodes`."""
    n_words = (len(parents) + 1) // 2
    depths = np.zeros(n_words - 1, np.int32)
    for node in range(1, n_words - 1):  # parents have lower numbers
        depths[node] = depths[parents[n_words + node]] + 1
    return depths


@kernel
def _build_paths(parents: Int32Array, turns: UInt8Array) -> Any:
    """Return the fields of a `Tree`: steps and starts of the words' paths; arguments are as of `_join_nodes`."""
    n_words = (len(parents) + 1) // 2
    depths = _find_depths(parents)
    starts = np.zeros(n_words + 1, np.int64)
    for word in range(n_words):
        starts[word + 1] = starts[word] + depths[parents[word]] + 1
    steps = np.empty(starts[-1], np.int32)
    for word in range(n_words):
        child = word
        for i in range(starts[word + 1] - 1, starts[word] - 1, -1):
            steps[i] = ~parents[child] if turns[child] else parents[child]
            child = n_words + parents[child]
    return steps, starts
