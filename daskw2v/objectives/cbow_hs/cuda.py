"""CBOW with hierarchical softmax on an NVIDIA GPU."""

from functools import lru_cache

from daskw2v.kernels.cuda.gpus import WarpKernel
from daskw2v.objectives.cuda.cbow import cbow
from daskw2v.objectives.cuda.pieces import PieceTrainer
from daskw2v.objectives.cuda.shape import Shape
from daskw2v.objectives.cuda.targets import path_targets
from daskw2v.objectives.settings import CBOWHS
from daskw2v.objectives.tree import PreparedTree, tree_of


@lru_cache(maxsize=64)
def compiled(shape: Shape, depth: int, mean: bool) -> WarpKernel:
    """Return the kernel for paths of at most `depth` nodes."""
    return cbow(shape, path_targets(shape, depth), mean)


def _kernel_of(shape: Shape, prepared: PreparedTree) -> WarpKernel:
    return compiled(shape, prepared.depth, CBOWHS.of(prepared.params).cbow_mean)


train = PieceTrainer(_kernel_of, tree_of)
