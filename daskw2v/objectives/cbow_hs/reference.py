"""CBOW with hierarchical softmax in float64 NumPy."""

from daskw2v.objectives.base import Rate
from daskw2v.objectives.paths import Prepared, way_of
from daskw2v.objectives.reference import Matrix, train_hidden, windows_in
from daskw2v.objectives.windows import windows_of
from daskw2v.sampling.segments import Segment


def train(
    segment: Segment, first: int, last: int, source: Matrix, output: Matrix, rate: Rate, epoch: int, prepared: Prepared
) -> tuple[int, float]:
    """Train as the kernel does; `source` is (V, D) and `output` (V - 1, D) float64."""
    params = prepared.params
    trained, loss = 0, 0.0
    for window in windows_in(segment, first, last, windows_of(params, rate, epoch)):
        if not window.contexts:
            continue
        trained += 1
        nodes, signs = way_of(prepared.tree, window.word)
        contexts, alpha = [window.contexts], window.alpha
        loss += train_hidden(source, contexts, output, nodes, signs[None], [], alpha, params.cbow_mean)
    return trained, loss
