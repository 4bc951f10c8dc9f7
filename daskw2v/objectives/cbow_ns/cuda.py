"""CBOW with negative sampling on an NVIDIA GPU."""

from functools import lru_cache

from daskw2v.kernels.cuda.gpus import WarpKernel
from daskw2v.objectives.cuda.cbow import cbow
from daskw2v.objectives.cuda.pieces import PieceTrainer
from daskw2v.objectives.cuda.shape import Shape
from daskw2v.objectives.cuda.targets import negative_targets
from daskw2v.objectives.noise import PreparedNoise, make_negatives
from daskw2v.objectives.settings import CBOW


@lru_cache(maxsize=64)
def compile_kernel(shape: Shape, negative: int, batches: bool, mean: bool, market_negative: int = 0) -> WarpKernel:
    """Return the kernel; with `batches` four windows share negatives, and `mean` is `cbow_mean` of Params."""
    return cbow(shape, negative_targets(shape, negative, market_negative, batches=batches), mean)


def _find_kernel(shape: Shape, prepared: PreparedNoise) -> WarpKernel:
    """Return the kernel of CBOW with negative sampling for the settings of a run."""
    settings = CBOW.of(prepared.params)
    return compile_kernel(
        shape, settings.negative, settings.negative_sharing == "shared", settings.cbow_mean, settings.market_negative
    )


train = PieceTrainer(_find_kernel, make_negatives)
