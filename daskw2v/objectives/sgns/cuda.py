"""SGNS on an NVIDIA GPU over the windows of text."""

from functools import lru_cache
from typing import Any

from daskw2v.objectives.base import DeviceTables
from daskw2v.objectives.cuda.negatives import negative_targets
from daskw2v.objectives.cuda.pieces import launch
from daskw2v.objectives.cuda.shape import Shape
from daskw2v.objectives.cuda.skip_gram import skip_gram
from daskw2v.objectives.noise import Negatives
from daskw2v.objectives.windows import Windows


def train(
    segment: Any, first: int, last: int, tables: DeviceTables, windows: Windows, negatives: Negatives, *, each: bool
) -> None:
    """Train the centers first..last-1 of a segment; `each` context draws its negatives, or all of a window do."""

    def compiled_for(shape: Shape) -> Any:
        return compiled(shape, negatives.negative, each)

    launch(compiled_for, segment, first, last, tables, windows, negatives)


@lru_cache(maxsize=64)
def compiled(shape: Shape, negative: int, each: bool) -> Any:
    """Return the kernel."""
    return skip_gram(shape, negative_targets(shape, negative, each=each))
