"""Skip-gram with hierarchical softmax on an NVIDIA GPU."""

from functools import lru_cache

from daskw2v.kernels.cuda.gpus import WarpKernel
from daskw2v.objectives.cuda.pieces import PieceTrainer
from daskw2v.objectives.cuda.shape import Shape
from daskw2v.objectives.cuda.skip_gram import skip_gram
from daskw2v.objectives.cuda.targets import path_targets
from daskw2v.objectives.tree import PreparedTree, tree_of


@lru_cache(maxsize=64)
def compiled(shape: Shape, depth: int) -> WarpKernel:
    """Return the kernel for paths of at most `depth` nodes."""
    return skip_gram(shape, path_targets(shape, depth))


def _kernel_of(shape: Shape, prepared: PreparedTree) -> WarpKernel:
    return compiled(shape, prepared.depth)


train = PieceTrainer(_kernel_of, tree_of)
