"""Skip-gram with hierarchical softmax on an NVIDIA GPU."""

from functools import lru_cache
from typing import Any

from daskw2v.kernels.cuda.gpus import WarpKernel
from daskw2v.objectives.base import DeviceTables
from daskw2v.objectives.cuda.pieces import launch
from daskw2v.objectives.cuda.shape import Shape
from daskw2v.objectives.cuda.skip_gram import skip_gram
from daskw2v.objectives.cuda.targets import path_targets
from daskw2v.objectives.windows import Windows
from daskw2v.vocabulary.huffman import Tree


def train(segment: Any, first: Any, last: Any, tables: DeviceTables, windows: Windows, tree: Tree, depth: int) -> int:
    """Train the centers first..last-1 of a segment; no path has more than `depth` nodes."""

    def compiled_for(shape: Shape) -> WarpKernel:
        return compiled(shape, depth)

    return launch(compiled_for, segment, first, last, tables, windows, tree)


@lru_cache(maxsize=64)
def compiled(shape: Shape, depth: int) -> WarpKernel:
    """Return the kernel."""
    return skip_gram(shape, path_targets(shape, depth))
