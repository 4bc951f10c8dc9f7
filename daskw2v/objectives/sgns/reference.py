"""SGNS in float64 NumPy."""

from daskw2v.objectives.base import Rate
from daskw2v.objectives.cpu.targets import tile_of
from daskw2v.objectives.noise import PreparedNoise
from daskw2v.objectives.reference import Goals, Window, WindowRule, goals_of, train_targets, windows_in
from daskw2v.objectives.settings import SharedNegatives
from daskw2v.objectives.windows import windows_of
from daskw2v.sampling.segments import Segment
from daskw2v.types import Float64Array, Int64Array


def goals(
    prepared: PreparedNoise, epoch: int, window: Window, number: int = 0, positions: Int64Array | None = None
) -> list[Goals]:
    """Return the targets of a window, or the targets of each of its contexts."""
    draws = 1 if SharedNegatives.of(prepared.params).negative_sharing == "shared" else len(window.contexts)
    return [goals_of(prepared, epoch, window, pair) for pair in range(draws)]


RULE = WindowRule(goals, as_one=False)


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
    """Train the centers first..last-1 like the kernel; `source` and `output` are (V, D) float64."""
    params = prepared.params
    size, pairs, loss = len(tile_of(params)), 0, 0.0
    for window in windows_in(segment, first, last, windows_of(params, rate, epoch)):
        pairs += len(window.contexts)
        x, y = source[:, window.columns], output[:, window.columns]
        drawn = goals(prepared, epoch, window)
        together = [window.contexts] if len(drawn) == 1 else [[context] for context in window.contexts]
        for contexts, (targets, signs) in zip(together, drawn, strict=True):
            loss += train_targets(x, contexts, y, targets, signs, window.alpha, size)
    return pairs, loss
