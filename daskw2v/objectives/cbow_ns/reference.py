"""CBOW with negative sampling in float64 NumPy."""

import numpy as np

from daskw2v.objectives.base import Rate
from daskw2v.objectives.noise import BATCH, PreparedNoise
from daskw2v.objectives.reference import Goals, Rows, Window, WindowRule, draw_goals, list_windows, train_hidden
from daskw2v.objectives.settings import CBOW
from daskw2v.objectives.windows import make_windows
from daskw2v.sampling.segments import Segment
from daskw2v.types import Int64Array


def goals(prepared: PreparedNoise, epoch: int, window: Window, number: int, positions: Int64Array) -> list[Goals]:
    """Return the targets of a window, as `WindowRule.goals` says; BATCH windows may share negatives (`cbow_ns.cpu`).

    The windows of a batch are in different quarters of the range. Negatives of a market belong to one window.
    """
    shared = CBOW.of(prepared.params).negative_sharing == "shared"
    position = int(positions[number % -(-len(positions) // BATCH)]) if shared else None
    return [draw_goals(prepared, epoch, window, 0, position)]


RULE = WindowRule(goals, as_one=True)


def train(
    segment: Segment, first: int, last: int, source: Rows, output: Rows, rate: Rate, epoch: int, prepared: PreparedNoise
) -> tuple[int, float]:
    """Train the centers first..last-1 in place, in tables of (V, D) float64; return examples and loss."""
    params, settings = prepared.params, CBOW.of(prepared.params)
    if settings.negative_sharing == "pair":
        return RULE.train(segment, first, last, source, output, rate, epoch, prepared)
    n, trained, loss = settings.negative + 1, 0, 0.0
    windows = list(list_windows(segment, first, last, make_windows(params, rate, epoch)))
    apart = -(-len(windows) // BATCH)
    for i in range(apart):
        batch = [window for window in windows[i::apart] if window.contexts]
        if not batch:
            continue
        trained += len(batch)
        contexts, words = [window.contexts for window in batch], [window.word for window in batch]
        drawn = [draw_goals(prepared, epoch, window, 0, windows[i].position) for window in batch]
        # The negatives of all windows, then the negatives of each window's market, for this window alone
        targets = np.concatenate([drawn[0][0][1:n], *(rows[n:] for rows, _ in drawn)])
        market_signs = np.repeat(np.eye(len(batch)), settings.market_negative, axis=1)
        market_signs *= np.concatenate([row_signs[n:] for _, row_signs in drawn])
        signs = np.hstack([[row_signs[1:n] for _, row_signs in drawn], market_signs])
        x, y = (table[:, windows[i].columns] for table in (source, output))
        loss += train_hidden(x, contexts, y, (targets, signs), words, windows[i].alpha, settings.cbow_mean)
    return trained, loss
