"""CBOW with negative sampling on an NVIDIA GPU."""

from functools import lru_cache
from typing import Any

from daskw2v.objectives.base import DeviceTables
from daskw2v.objectives.cuda.cbow import cbow
from daskw2v.objectives.cuda.negatives import negative_targets
from daskw2v.objectives.cuda.pieces import launch
from daskw2v.objectives.cuda.shape import Shape
from daskw2v.objectives.noise import Negatives
from daskw2v.objectives.windows import Windows


def train(
    segment: Any, first: int, last: int, tables: DeviceTables, windows: Windows, negatives: Negatives, *, batches: bool,
    mean: bool,
) -> None:  # fmt: skip
    """Train the centers first..last-1 of a segment; four windows share negatives in `batches`, as on the CPU."""

    def compiled_for(shape: Shape) -> Any:
        return compiled(shape, negatives.negative, batches, mean)

    launch(compiled_for, segment, first, last, tables, windows, negatives)


@lru_cache(maxsize=64)
def compiled(shape: Shape, negative: int, batches: bool, mean: bool) -> Any:
    """Return the kernel."""
    return cbow(shape, negative_targets(shape, negative, batches=batches), mean)
