"""Skip-gram with hierarchical softmax over a bucket in float64 NumPy."""

from collections.abc import Callable

from daskw2v.objectives.cpu.targets import spread
from daskw2v.objectives.reference import Goals, Rows, train_targets
from daskw2v.objectives.sg_hs.buckets.cpu import cut_steps, stride_of
from daskw2v.objectives.tree import path_of
from daskw2v.sampling.pairs import Pairs, unpack
from daskw2v.types import Int64Array
from daskw2v.vocabulary.huffman import huffman_tree
from daskw2v.vocabulary.partition import Partitions


def paths_of(counts: Int64Array, n_trees: int) -> list[Goals]:
    """Return the path of each word of a partition, over the nodes of its trees, which stand one after another."""
    paths, first, trees = dict[int, Goals](), 0, Partitions(len(counts), min(n_trees, len(counts)))
    for k in range(trees.n):
        words = trees.words(k)
        tree = huffman_tree(counts[words])
        for number, word in enumerate(words.tolist()):
            nodes, signs = path_of(tree, number)
            paths[word] = first + nodes, signs
        first += len(words) - 1
    return [paths[word] for word in range(len(counts))]


def train_bucket(
    pairs: Pairs,
    source: Rows,
    output: Rows,
    alpha: float,
    paths: list[Goals],
    train_step: Callable[..., float] = train_targets,
) -> tuple[int, float]:
    """Train a bucket as `buckets.cpu.train_bucket` does.

    `source` and `output` are (rows, D) float64, and `paths` are those of the centers' partition. `train_step` has the
    arguments of `train_targets`.
    """
    contexts, centers = (rows.tolist() for rows in unpack(pairs))
    bounds = cut_steps(pairs).tolist()
    n, loss = len(bounds) - 1, 0.0
    for i in range(n):
        step = i * stride_of(n) % n
        start, stop = bounds[step], bounds[step + 1]
        path = paths[centers[start]]
        loss += train_step(source, contexts[start:stop], output, path, alpha, spread(len(path[0]))[1])
    return len(pairs), loss
