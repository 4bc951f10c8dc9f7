"""SGNS on an NVIDIA GPU over the windows of text."""

from functools import lru_cache
from typing import Any

from daskw2v.kernels.cuda.gpus import WarpKernel
from daskw2v.objectives.base import DeviceTables
from daskw2v.objectives.cuda.pieces import launch
from daskw2v.objectives.cuda.shape import Shape
from daskw2v.objectives.cuda.skip_gram import skip_gram
from daskw2v.objectives.cuda.targets import negative_targets
from daskw2v.objectives.noise import Negatives
from daskw2v.objectives.windows import Windows


def train(
    segment: Any, first: Any, last: Any, tables: DeviceTables, windows: Windows, negatives: Negatives, *, each: bool
) -> int:
    """Train the centers first..last-1 of a segment; `each` context draws its negatives, or all of a window do."""

    def compiled_for(shape: Shape) -> WarpKernel:
        return compiled(shape, negatives.negative, each, negatives.market_negative)

    return launch(compiled_for, segment, first, last, tables, windows, negatives)


@lru_cache(maxsize=64)
def compiled(shape: Shape, negative: int, each: bool, market_negative: int = 0) -> WarpKernel:
    """Return the kernel."""
    return skip_gram(shape, negative_targets(shape, negative, market_negative, each=each))
