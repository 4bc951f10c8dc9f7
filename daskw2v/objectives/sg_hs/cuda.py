"""Skip-gram with hierarchical softmax on an NVIDIA GPU."""

from functools import lru_cache

from daskw2v.kernels.cuda.gpus import WarpKernel
from daskw2v.objectives.cuda.pieces import PieceTrainer
from daskw2v.objectives.cuda.shape import Shape
from daskw2v.objectives.cuda.skip_gram import skip_gram
from daskw2v.objectives.cuda.targets import path_targets
from daskw2v.objectives.tree import PreparedTree, prepared_tree


@lru_cache(maxsize=64)
def compile_kernel(shape: Shape, depth: int) -> WarpKernel:
    """Return the kernel for paths of at most `depth` nodes."""
    return skip_gram(shape, path_targets(shape, depth))


def _find_kernel(shape: Shape, prepared: PreparedTree) -> WarpKernel:
    """Return the kernel of skip-gram with hierarchical softmax for the settings of a run."""
    return compile_kernel(shape, prepared.depth)


train = PieceTrainer(_find_kernel, prepared_tree)
