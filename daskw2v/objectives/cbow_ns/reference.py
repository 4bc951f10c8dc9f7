"""CBOW with negative sampling in float64 NumPy."""

import numpy as np

from daskw2v.objectives.base import Rate
from daskw2v.objectives.noise import BATCH, PreparedNoise, negatives_of
from daskw2v.objectives.reference import Goals, Window, WindowRule, targets_of, train_hidden, windows_in
from daskw2v.objectives.windows import windows_of
from daskw2v.sampling.segments import Segment
from daskw2v.types import Float64Array, Int64Array


def goals(prepared: PreparedNoise, epoch: int, window: Window, number: int, positions: Int64Array) -> list[Goals]:
    """Return the targets of a window, which BATCH windows draw together: each a part of the range from the next."""
    params, key = prepared.params, negatives_of(prepared, epoch).key
    if params.negative_sharing == "shared":
        window = window._replace(position=int(positions[number % -(-len(positions) // BATCH)]))
    return [targets_of(prepared.noise, key, window, params.negative)]


RULE = WindowRule(goals, as_one=True)


def train(
    segment: Segment,
    first: int,
    last: int,
    source: Float64Array,
    output: Float64Array,
    rate: Rate,
    epoch: int,
    prepared: PreparedNoise,
) -> tuple[int, float]:
    """Train as the kernel does; `source` and `output` are (V, D) float64."""
    params = prepared.params
    key, trained, loss = negatives_of(prepared, epoch).key, 0, 0.0
    windows = list(windows_in(segment, first, last, windows_of(params, rate, epoch)))
    shared = params.negative_sharing == "shared"
    apart = -(-len(windows) // BATCH) if shared else len(windows)
    for i in range(apart):
        batch = [window for window in windows[i::apart] if window.contexts]
        if not batch:
            continue
        trained += len(batch)
        targets, signs = targets_of(prepared.noise, key, windows[i], params.negative)
        contexts, own = [window.contexts for window in batch], [window.word for window in batch]
        if shared:
            targets = targets[1:]
            signs = np.where(targets == np.array(own)[:, None], 0.0, -1.0)
        loss += train_hidden(
            source, contexts, output, targets, np.atleast_2d(signs), own if shared else [], windows[i].alpha,
            params.cbow_mean,
        )  # fmt: skip
    return trained, loss
