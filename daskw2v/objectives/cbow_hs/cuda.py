"""CBOW with hierarchical softmax on an NVIDIA GPU."""

from functools import lru_cache
from typing import Any

from daskw2v.objectives.base import DeviceTables
from daskw2v.objectives.cuda.cbow import cbow
from daskw2v.objectives.cuda.paths import path_targets
from daskw2v.objectives.cuda.pieces import launch
from daskw2v.objectives.cuda.shape import Shape
from daskw2v.objectives.windows import Windows
from daskw2v.vocabulary.huffman import Tree


def train(
    segment: Any, first: int, last: int, tables: DeviceTables, windows: Windows, tree: Tree, depth: int, *, mean: bool
) -> None:
    """Train the centers first..last-1 of a segment; no path has more than `depth` nodes."""

    def compiled_for(shape: Shape) -> Any:
        return compiled(shape, depth, mean)

    launch(compiled_for, segment, first, last, tables, windows, tree)


@lru_cache(maxsize=64)
def compiled(shape: Shape, depth: int, mean: bool) -> Any:
    """Return the kernel."""
    return cbow(shape, path_targets(shape, depth), mean)
