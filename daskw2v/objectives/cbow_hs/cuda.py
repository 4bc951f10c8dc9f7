"""CBOW with hierarchical softmax on an NVIDIA GPU."""

from functools import lru_cache

from daskw2v.kernels.cuda.gpus import WarpKernel
from daskw2v.objectives.cuda.cbow import cbow
from daskw2v.objectives.cuda.pieces import PieceTrainer
from daskw2v.objectives.cuda.shape import Shape
from daskw2v.objectives.cuda.targets import path_targets
from daskw2v.objectives.settings import CBOWHS
from daskw2v.objectives.tree import PreparedTree, prepared_tree


@lru_cache(maxsize=64)
def compile_kernel(shape: Shape, depth: int, mean: bool) -> WarpKernel:
    """Return the kernel for paths of at most `depth` nodes; `mean` is `cbow_mean` of Params."""
    return cbow(shape, path_targets(shape, depth), mean)


def _find_kernel(shape: Shape, prepared: PreparedTree) -> WarpKernel:
    """Return the kernel of CBOW with hierarchical softmax for the settings of a run."""
    return compile_kernel(shape, prepared.depth, CBOWHS.of(prepared.params).cbow_mean)


train = PieceTrainer(_find_kernel, prepared_tree)
