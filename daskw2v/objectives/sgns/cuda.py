"""SGNS on an NVIDIA GPU over the windows of text."""

from functools import lru_cache

from daskw2v.kernels.cuda.gpus import WarpKernel
from daskw2v.objectives.cuda.pieces import PieceTrainer
from daskw2v.objectives.cuda.shape import Shape
from daskw2v.objectives.cuda.skip_gram import skip_gram
from daskw2v.objectives.cuda.targets import negative_targets
from daskw2v.objectives.noise import PreparedNoise, negatives_of
from daskw2v.objectives.settings import SGNS


@lru_cache(maxsize=64)
def compiled(shape: Shape, negative: int, each: bool, market_negative: int = 0) -> WarpKernel:
    """Return the kernel: `each` context draws its negatives, or all of a window do."""
    return skip_gram(shape, negative_targets(shape, negative, market_negative, each=each))


def _kernel_of(shape: Shape, prepared: PreparedNoise) -> WarpKernel:
    of = SGNS.of(prepared.params)
    return compiled(shape, of.negative, of.negative_sharing == "pair", of.market_negative)


train = PieceTrainer(_kernel_of, negatives_of)
