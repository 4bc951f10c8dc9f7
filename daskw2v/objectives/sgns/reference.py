"""SGNS in float64 NumPy."""

from daskw2v.config.params import Params
from daskw2v.objectives.cpu.targets import make_tile
from daskw2v.objectives.noise import PreparedNoise
from daskw2v.objectives.reference import Goals, Window, WindowRule, draw_goals
from daskw2v.objectives.settings import SharedNegatives
from daskw2v.types import Int64Array


def goals(prepared: PreparedNoise, epoch: int, window: Window, number: int, positions: Int64Array) -> list[Goals]:
    """Return the targets that all contexts of a window share, or of each context, as `WindowRule.goals` does."""
    draws = 1 if SharedNegatives.of(prepared.params).negative_sharing == "shared" else len(window.contexts)
    return [draw_goals(prepared, epoch, window, pair) for pair in range(draws)]


def _size(params: Params, _: int) -> int:
    """Return the number of targets of a group."""
    return len(make_tile(params))


RULE = WindowRule(goals, as_one=False, size=_size)
train = RULE.train
