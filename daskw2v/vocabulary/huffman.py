"""Huffman's binary tree over the words of a vocabulary: the shortest ways, on the whole, from one root to each word.

Hierarchical softmax (Morin & Bengio 2005; Mikolov et al. 2013) predicts a word by the turns on its way. Inner nodes
are numbered by falling count, the root first, so that the K most used ones are 0 .. K - 1: threads can keep them apart.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.errors import ParameterError
from daskw2v.jit import kernel


class Tree(NamedTuple):
    """The way from the root to each of V words, over V - 1 inner nodes.

    Parameters
    ----------
    nodes
        Inner nodes on the way, root first, word after word, shape (n,) int32.
    turns
        Turn taken at each of them, 0 to the rarer side or 1 to the more frequent one, shape (n,) uint8.
    starts
        Where each word's way begins in both, and where the last one ends, shape (V + 1,) int64.
    """

    nodes: npt.NDArray[np.int32]
    turns: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]


def huffman_tree(counts: npt.NDArray[np.int64]) -> Tree:
    """Build the tree in which the occurrences of all words together take the fewest turns.

    Of equal counts, a word is joined before an inner node, an earlier word before a later one, and an inner node
    made earlier before one made later. So the tree depends on nothing but counts, and equal words are joined to a flat
    tree, also where they never occur: no way is longer than some 120 turns.

    In memory are up to 26 bytes a word while the tree grows; then the result, 8 bytes a word and 5 a turn, and 14
    more bytes a word. Five million words with Zipf's counts have 25 turns each on average.

    Parameters
    ----------
    counts
        Occurrences of each word in any order, zeros too, shape (V,) int64.

    Returns
    -------
    Tree
        The way to each word; empty where there are less than two words.

    Raises
    ------
    ParameterError
        If a count is negative, there are 2**31 words or more, or the counts' sum is 2**63 or more.
    """
    n_words = len(counts)
    if n_words >= 2**31:
        raise ParameterError(f"{n_words} words are too many for one tree.", "Keep fewer than 2**31 words.")
    if n_words and (least := counts.min()) < 0:
        raise ParameterError(f"Word {counts.argmin()} has count {least}, below zero.", "Give counts >= 0.")
    if (np.cumsum(counts) < 0).any():  # the first sum that does not fit wraps round to below zero
        raise ParameterError(
            f"The counts' sum, {counts.sum(dtype=np.float64):.4g}, is not below 2**63.",
            "Divide all counts by one number.",
        )
    if n_words < 2:
        return Tree(np.empty(0, np.int32), np.empty(0, np.uint8), np.zeros(n_words + 1, np.int64))
    parents, turns = _grow(counts, np.argsort(counts, kind="stable"))
    return Tree(*_ways(parents, turns))


@kernel
def _grow(counts: npt.NDArray[np.int64], order: npt.NDArray[np.int64]) -> Any:
    """Join the two rarest things until one is left; return each thing's parent and the turn to it.

    Things are the words, and after them the inner nodes. These come about with rising counts: words in `order` and
    nodes in order of their making are two queues, of which only the heads need be compared.
    """
    n_words = len(counts)
    parents = np.zeros(2 * n_words - 1, np.int32)
    turns = np.zeros(2 * n_words - 1, np.uint8)
    sums = np.empty(n_words - 1, np.int64)
    taken = 0  # of the words
    head = n_words - 2  # of the inner nodes not yet joined; there is none where it equals the node being made
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
def _ways(parents: npt.NDArray[np.int32], turns: npt.NDArray[np.uint8]) -> Any:
    """Write each word's way from its end, the word, to the root; return the members of a tree."""
    n_words = (len(parents) + 1) // 2
    depths = np.zeros(n_words - 1, np.int32)
    for node in range(1, n_words - 1):  # parents have lower numbers
        depths[node] = depths[parents[n_words + node]] + 1
    starts = np.zeros(n_words + 1, np.int64)
    for word in range(n_words):
        starts[word + 1] = starts[word] + depths[parents[word]] + 1
    way_nodes = np.empty(starts[-1], np.int32)
    way_turns = np.empty(starts[-1], np.uint8)
    for word in range(n_words):
        thing = word
        for place in range(starts[word + 1] - 1, starts[word] - 1, -1):
            way_nodes[place], way_turns[place] = parents[thing], turns[thing]
            thing = n_words + parents[thing]
    return way_nodes, way_turns, starts
