"""CBOW with negative sampling on an NVIDIA GPU."""

from functools import lru_cache

from daskw2v.kernels.cuda.gpus import WarpKernel
from daskw2v.objectives.cuda.cbow import cbow
from daskw2v.objectives.cuda.pieces import PieceTrainer
from daskw2v.objectives.cuda.shape import Shape
from daskw2v.objectives.cuda.targets import negative_targets
from daskw2v.objectives.noise import PreparedNoise, negatives_of
from daskw2v.objectives.settings import CBOW


@lru_cache(maxsize=64)
def compiled(shape: Shape, negative: int, batches: bool, mean: bool, market_negative: int = 0) -> WarpKernel:
    """Return the kernel; four windows share negatives in `batches`, as on the CPU."""
    return cbow(shape, negative_targets(shape, negative, market_negative, batches=batches), mean)


def _kernel_of(shape: Shape, prepared: PreparedNoise) -> WarpKernel:
    of = CBOW.of(prepared.params)
    return compiled(shape, of.negative, of.negative_sharing == "shared", of.cbow_mean, of.market_negative)


train = PieceTrainer(_kernel_of, negatives_of)
