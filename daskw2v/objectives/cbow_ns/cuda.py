"""CBOW with negative sampling on an NVIDIA GPU."""

from functools import lru_cache
from typing import Any

from daskw2v.kernels.cuda.gpus import WarpKernel
from daskw2v.objectives.base import DeviceTables
from daskw2v.objectives.cuda.cbow import cbow
from daskw2v.objectives.cuda.pieces import launch
from daskw2v.objectives.cuda.shape import Shape
from daskw2v.objectives.cuda.targets import negative_targets
from daskw2v.objectives.noise import Negatives
from daskw2v.objectives.windows import Windows


def train(
    segment: Any, first: Any, last: Any, tables: DeviceTables, windows: Windows, negatives: Negatives, *, batches: bool,
    mean: bool,
) -> int:  # fmt: skip
    """Train the centers first..last-1 of a segment; four windows share negatives in `batches`, as on the CPU."""

    def compiled_for(shape: Shape) -> WarpKernel:
        return compiled(shape, negatives.negative, batches, mean, negatives.market_negative)

    return launch(compiled_for, segment, first, last, tables, windows, negatives)


@lru_cache(maxsize=64)
def compiled(shape: Shape, negative: int, batches: bool, mean: bool, market_negative: int = 0) -> WarpKernel:
    """Return the kernel."""
    return cbow(shape, negative_targets(shape, negative, market_negative, batches=batches), mean)
