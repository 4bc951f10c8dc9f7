"""CBOW with hierarchical softmax in float64 NumPy."""

from daskw2v.objectives.base import Rate
from daskw2v.objectives.reference import Goals, Window, WindowRule, train_hidden, windows_in
from daskw2v.objectives.settings import ContextsTogether
from daskw2v.objectives.tree import PreparedTree, path_of
from daskw2v.objectives.windows import windows_of
from daskw2v.sampling.segments import Segment
from daskw2v.types import Float64Array, Int64Array


def goals(prepared: PreparedTree, epoch: int, window: Window, number: int, positions: Int64Array) -> list[Goals]:
    """Return the path of a window's word."""
    return [path_of(prepared.tree, window.word)]


RULE = WindowRule(goals, as_one=True)


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
    params, mean = prepared.params, ContextsTogether.of(prepared.params).cbow_mean
    trained, loss = 0, 0.0
    for window in windows_in(segment, first, last, windows_of(params, rate, epoch)):
        if not window.contexts:
            continue
        trained += 1
        nodes, signs = path_of(prepared.tree, window.word)
        x, y, contexts = source[:, window.columns], output[:, window.columns], [window.contexts]
        loss += train_hidden(x, contexts, y, nodes, signs[None], [], window.alpha, mean)
    return trained, loss
