"""CBOW with negative sampling in float64 NumPy."""

import numpy as np

from daskw2v.objectives.base import Rate
from daskw2v.objectives.noise import BATCH, PreparedNoise
from daskw2v.objectives.reference import Goals, Rows, Window, WindowRule, goals_of, train_hidden, windows_in
from daskw2v.objectives.settings import CBOW
from daskw2v.objectives.windows import windows_of
from daskw2v.sampling.segments import Segment
from daskw2v.types import Int64Array


def goals(prepared: PreparedNoise, epoch: int, window: Window, number: int, positions: Int64Array) -> list[Goals]:
    """Return the targets of a window, which BATCH windows draw together, each in another part of the range.

    Negatives of a market belong to one window.
    """
    shared = CBOW.of(prepared.params).negative_sharing == "shared"
    position = int(positions[number % -(-len(positions) // BATCH)]) if shared else None
    return [goals_of(prepared, epoch, window, 0, position)]


RULE = WindowRule(goals, as_one=True)


def train(
    segment: Segment, first: int, last: int, source: Rows, output: Rows, rate: Rate, epoch: int, prepared: PreparedNoise
) -> tuple[int, float]:
    """Train the centers first..last-1 like the kernel; `source` and `output` are (V, D) float64."""
    params, settings = prepared.params, CBOW.of(prepared.params)
    if settings.negative_sharing == "pair":
        return RULE.train(segment, first, last, source, output, rate, epoch, prepared)
    n, trained, loss = settings.negative + 1, 0, 0.0
    windows = list(windows_in(segment, first, last, windows_of(params, rate, epoch)))
    apart = -(-len(windows) // BATCH)
    for i in range(apart):
        batch = [window for window in windows[i::apart] if window.contexts]
        if not batch:
            continue
        trained += len(batch)
        contexts, own = [window.contexts for window in batch], [window.word for window in batch]
        drawn = [goals_of(prepared, epoch, window, 0, windows[i].position) for window in batch]
        # The negatives of all windows, then the negatives of each window's market, for this window alone
        targets = np.concatenate([drawn[0][0][1:n], *(rows[n:] for rows, _ in drawn)])
        near = np.repeat(np.eye(len(batch)), settings.market_negative, axis=1)
        near *= np.concatenate([row_signs[n:] for _, row_signs in drawn])
        signs = np.hstack([[row_signs[1:n] for _, row_signs in drawn], near])
        x, y = (table[:, windows[i].columns] for table in (source, output))
        loss += train_hidden(x, contexts, y, (targets, signs), own, windows[i].alpha, settings.cbow_mean)
    return trained, loss
