"""Ways to split the Huffman tree over partitions: what a pair of a context and a center then takes."""

import heapq
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from daskw2v.objectives.tree import TREES
from daskw2v.vocabulary.huffman import Tree, huffman_tree
from daskw2v.vocabulary.partition import Partitions

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

BY_RANK, SUBTREES, OWN = "nodes by rank", "subtrees, top nodes apart", "trees of each partition's own words"
_CUT = 16  # subtrees for each partition


@dataclass(frozen=True)
class Split:
    """What a way to split the tree takes.

    Parameters
    ----------
    way, partitions
        The way, and the number of partitions.
    entries
        Buckets that a pair is in, on the whole.
    nodes
        Nodes that it is trained against, in all of them.
    largest
        Share of all steps of a context against a node that the fullest output partition takes. While it is trained with
        one input partition after the other, nobody else has its rows: no more than 1 / largest workers have work.
    """

    way: str
    partitions: int
    entries: float
    nodes: float
    largest: float


def splits(counts: Ints, kept: Floats, p: int) -> list[Split]:
    """Return what each way takes.

    Parameters
    ----------
    counts, kept
        Of each word the count, from which the tree is made, and the share of all trained tokens, shapes (V,).
    p
        Number of output partitions.
    """
    tree = huffman_tree(counts)
    return [_by_rank(tree, kept, p), _subtrees(tree, kept, p), _own(counts, kept, p)]


def _words(tree: Tree) -> Ints:
    """Return the word of each entry of the tree's paths."""
    return np.repeat(np.arange(len(tree.starts) - 1, dtype=np.int64), np.diff(tree.starts))


def _met(tree: Tree, kept: Floats) -> Floats:
    """Return how often a pair meets each node."""
    return np.bincount(tree.nodes, kept[_words(tree)], len(kept) - 1).astype(np.float64)


def _by_rank(tree: Tree, kept: Floats, p: int) -> Split:
    words, met = _words(tree), _met(tree, kept)
    of_nodes, _ = Partitions(len(met), p).place(np.arange(len(met)))
    places = np.unique(words * p + of_nodes[tree.nodes])
    loads = np.bincount(of_nodes, met, p)
    return Split(BY_RANK, p, float(kept[places // p].sum()), float(met.sum()), float(loads.max() / loads.sum()))


def _subtrees(tree: Tree, kept: Floats, p: int) -> Split:
    """Cut the heaviest subtree until there are enough; what was cut is the top, a partition of its own."""
    met = _met(tree, kept)
    children: list[list[int]] = [[] for _ in met]
    for first, last in zip(tree.starts[:-1].tolist(), tree.starts[1:].tolist(), strict=True):
        path = tree.nodes[first:last].tolist()
        for above, below in pairwise(path):
            if below not in children[above]:
                children[above].append(below)
    roots, top = [(-float(met[0]), 0)], list[int]()
    while len(roots) < _CUT * p and roots:
        _, node = heapq.heappop(roots)
        top.append(node)
        for child in children[node]:
            heapq.heappush(roots, (-float(met[child]), child))
    at_top = float(met[top].sum())
    below = 0.0
    in_top = np.zeros(len(met), bool)
    in_top[top] = True
    last = tree.nodes[tree.starts[1:] - 1]
    below = float(kept[~in_top[last]].sum())
    return Split(SUBTREES, p, 1.0 + below, float(met.sum()), at_top / float(met.sum()))


def _own(counts: Ints, kept: Floats, p: int) -> Split:
    partitions, met = Partitions(len(counts), p), np.zeros(p)
    for k in range(p):
        of = partitions.words(k)
        trees = Partitions(len(of), min(len(of), -(-TREES // p)))
        for words in (of[trees.words(t)] for t in range(trees.n)):
            met[k] += float((kept[words] * np.diff(huffman_tree(counts[words]).starts)).sum())
    return Split(OWN, p, 1.0, float(met.sum()), float(met.max() / met.sum()))
