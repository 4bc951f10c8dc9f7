"""Skip-gram with hierarchical softmax in float64 NumPy."""

from daskw2v.objectives.base import Rate
from daskw2v.objectives.cpu.targets import spread
from daskw2v.objectives.reference import Goals, Window, WindowRule, train_targets, windows_in
from daskw2v.objectives.tree import PreparedTree, path_of
from daskw2v.objectives.windows import windows_of
from daskw2v.sampling.segments import Segment
from daskw2v.types import Float64Array, Int64Array


def goals(prepared: PreparedTree, epoch: int, window: Window, number: int, positions: Int64Array) -> list[Goals]:
    """Return the path of a window's word."""
    return [path_of(prepared.tree, window.word)]


RULE = WindowRule(goals, as_one=False)


def train(
    segment: Segment,
    first: int,
    last: int,
    source: Float64Array,
    output: Float64Array,
    rate: Rate,
    epoch: int,
    prepared: PreparedTree,
) -> tuple[int, float]:
    """Train the centers first..last-1 like the kernel; `source` is (V, D) and `output` (V - 1, D) float64."""
    pairs, loss = 0, 0.0
    for window in windows_in(segment, first, last, windows_of(prepared.params, rate, epoch)):
        pairs += len(window.contexts)
        nodes, signs = path_of(prepared.tree, window.word)
        size = spread(len(nodes))[1]
        x, y = source[:, window.columns], output[:, window.columns]
        loss += train_targets(x, window.contexts, y, nodes, signs, window.alpha, size)
    return pairs, loss
