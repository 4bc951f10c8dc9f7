"""Skip-gram with hierarchical softmax over a bucket in float64 NumPy."""

from daskw2v.objectives.cpu.paths import spread
from daskw2v.objectives.reference import train_targets
from daskw2v.objectives.sg_hs.buckets.cpu import cut_steps, stride_of
from daskw2v.objectives.tree import path_of
from daskw2v.sampling.pairs import Pairs, unpack
from daskw2v.types import Float64Array
from daskw2v.vocabulary.huffman import Tree


def train_bucket(
    pairs: Pairs, source: Float64Array, output: Float64Array, alpha: float, tree: Tree
) -> tuple[int, float]:
    """Train a bucket as `buckets.cpu.train_bucket` does.

    `source` and `output` are (rows, D) float64, and `tree` is that of the centers' partition.
    """
    contexts, centers = (rows.tolist() for rows in unpack(pairs))
    bounds = cut_steps(pairs).tolist()
    n, loss = len(bounds) - 1, 0.0
    for i in range(n):
        step = i * stride_of(n) % n
        start, stop = bounds[step], bounds[step + 1]
        nodes, signs = path_of(tree, centers[start])
        loss += train_targets(source, contexts[start:stop], output, nodes, signs, alpha, spread(len(nodes))[1])
    return len(pairs), loss
