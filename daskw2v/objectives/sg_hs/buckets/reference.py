"""Skip-gram with hierarchical softmax over a bucket in float64 NumPy."""

from collections.abc import Callable

from daskw2v.objectives.cpu.targets import divide_path
from daskw2v.objectives.reference import Goals, Rows, train_targets
from daskw2v.objectives.sg_hs.buckets.cpu import cut_steps, find_stride
from daskw2v.objectives.tree import word_path
from daskw2v.sampling.pairs import Pairs, unpack
from daskw2v.types import Int64Array
from daskw2v.vocabulary.huffman import huffman_tree
from daskw2v.vocabulary.partition import Partitions


def word_paths(counts: Int64Array, n_trees: int) -> list[Goals]:
    """Return the path of each word of a partition, nodes and signs; nodes are numbered tree by tree.

    `counts` has the counts of the partition's words.
    """
    paths, first, trees = dict[int, Goals](), 0, Partitions(len(counts), min(n_trees, len(counts)))
    for k in range(trees.n):
        words = trees.words(k)
        tree = huffman_tree(counts[words])
        for number, word in enumerate(words.tolist()):
            nodes, signs = word_path(tree, number)
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
    """Train a bucket in place as `buckets.cpu.train_bucket` does, in tables of (rows, D) float64.

    `paths` are the `word_paths` of the centers' partition. `train_step` has the arguments of `train_targets`.
    """
    contexts, centers = (rows.tolist() for rows in unpack(pairs))
    bounds = cut_steps(pairs).tolist()
    n, loss = len(bounds) - 1, 0.0
    for i in range(n):
        step = i * find_stride(n) % n
        start, stop = bounds[step], bounds[step + 1]
        path = paths[centers[start]]
        loss += train_step(source, contexts[start:stop], output, path, alpha, divide_path(len(path[0]))[1])
    return len(pairs), loss
