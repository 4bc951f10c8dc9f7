"""SGNS in float64 NumPy."""

from daskw2v.objectives.base import Rate
from daskw2v.objectives.negatives import Prepared, negatives_of, tile_of
from daskw2v.objectives.reference import Matrix, targets_of, train_targets, windows_in
from daskw2v.objectives.windows import windows_of
from daskw2v.sampling.segments import Segment


def train(
    segment: Segment, first: int, last: int, source: Matrix, output: Matrix, rate: Rate, epoch: int, prepared: Prepared
) -> tuple[int, float]:
    """Train as the kernel does; `source` and `output` are (V, D) float64."""
    params = prepared.params
    key, size = negatives_of(prepared, epoch).key, len(tile_of(params))
    pairs, loss = 0, 0.0
    for window in windows_in(segment, first, last, windows_of(params, rate, epoch)):
        pairs += len(window.contexts)
        if params.negative_sharing == "shared":
            targets, signs = targets_of(prepared.noise, key, window, params.negative)
            loss += train_targets(source, window.contexts, output, targets, signs, window.alpha, size)
            continue
        for pair, context in enumerate(window.contexts):
            targets, signs = targets_of(prepared.noise, key, window, params.negative, pair)
            loss += train_targets(source, [context], output, targets, signs, window.alpha, size)
    return pairs, loss
