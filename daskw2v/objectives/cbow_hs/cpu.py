"""CBOW with hierarchical softmax on the CPU: a window's contexts together predict their center's path."""

from functools import cache
from typing import Any

from daskw2v.objectives.cpu.hidden import cbow
from daskw2v.objectives.cpu.targets import PATHS


@cache
def compiled(mean: bool) -> Any:
    """Return the kernel; a hidden vector is the mean of a window's contexts, or their sum."""
    return cbow(PATHS, mean)
