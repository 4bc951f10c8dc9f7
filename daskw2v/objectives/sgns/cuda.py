"""SGNS on an NVIDIA GPU over the windows of text."""

from functools import lru_cache

from daskw2v.kernels.cuda.gpus import WarpKernel
from daskw2v.objectives.cuda.pieces import PieceTrainer
from daskw2v.objectives.cuda.shape import Shape
from daskw2v.objectives.cuda.skip_gram import skip_gram
from daskw2v.objectives.cuda.targets import negative_targets
from daskw2v.objectives.noise import PreparedNoise, make_negatives
from daskw2v.objectives.settings import SGNS


@lru_cache(maxsize=64)
def compile_kernel(shape: Shape, negative: int, per_context: bool, market_negative: int = 0) -> WarpKernel:
    """Return the kernel; each context draws its negatives if `per_context`, else all contexts share them."""
    return skip_gram(shape, negative_targets(shape, negative, market_negative, per_context=per_context))


def _find_kernel(shape: Shape, prepared: PreparedNoise) -> WarpKernel:
    """Return the kernel of skip-gram with negative sampling for the settings of a run."""
    settings = SGNS.of(prepared.params)
    return compile_kernel(shape, settings.negative, settings.negative_sharing == "pair", settings.market_negative)


train = PieceTrainer(_find_kernel, make_negatives)
