"""The tree of hierarchical softmax (Morin and Bengio 2005) and the paths through it, on any device.

The targets of a word are the inner nodes on its path, from the leaf up: rows near the leaf are prefetched, and rows
near the root are always in the cache.
"""

from typing import NamedTuple

import numpy as np

from daskw2v.config.params import Params
from daskw2v.sampling.settings import Partitioned
from daskw2v.types import Float64Array, Int64Array, UInt64Array
from daskw2v.vocabulary.huffman import Tree, huffman_forest, huffman_tree, nodes_of, turns_of

MIN_TREES = 64  # of all output partitions together
_MIN_WORDS = 16  # of a tree: a word alone in its tree has no nodes to train


class PreparedTree(NamedTuple):
    """The Params, the tree of all words, and the number of nodes of its longest path."""

    params: Params
    tree: Tree
    depth: int


def prepare_tree(params: Params, counts: Int64Array) -> PreparedTree:
    """Return the Params and the Huffman tree of a vocabulary, from its counts, shape (V,)."""
    tree = huffman_tree(counts)
    return PreparedTree(params, tree, int(np.diff(tree.starts).max(initial=0)))


def prepared_tree(prepared: PreparedTree, _: int) -> Tree:
    """Return the tree, from which kernels list the targets of windows; it is the same for each epoch."""
    return prepared.tree


def tree_bytes(params: Params, n_words: int) -> dict[str, int]:
    """Return the approximate bytes of the tree of `prepare_tree`, starts and steps of all paths, by its name."""
    return {"Huffman tree": n_words * (8 + 4 * (n_words.bit_length() + 3))}


def tree_table_rows(params: Params, n_words: int) -> dict[str, int]:
    """Return the number of rows of the input table, one for each word, and of the output table, one for each node."""
    return {"input": n_words, "output": max(0, n_words - 1)}


def make_linked_trees(params: Params, counts: Int64Array) -> UInt64Array:
    """Return the trees of a partition's words, as links of `huffman_forest`, shape (2 * words,) uint64.

    With one tree a context would meet the same nodes for long, which makes vectors worse.
    """
    return huffman_forest(counts, count_trees(params, len(counts)))


def count_trees(params: Params, n_words: int) -> int:
    """Return the number of Huffman trees that the n_words words of a partition are split into."""
    return max(1, min(-(-MIN_TREES // Partitioned.of(params).partitions), n_words // _MIN_WORDS))


def word_path(tree: Tree, word: int) -> tuple[Int64Array, Float64Array]:
    """Return the inner nodes on a word's path, from its parent up, and a sign of each: +1 for the turn 0, -1 for 1."""
    steps = tree.steps[tree.starts[word] : tree.starts[word + 1]][::-1]
    return nodes_of(steps).astype(np.int64), 1.0 - 2.0 * turns_of(steps).astype(np.float64)
