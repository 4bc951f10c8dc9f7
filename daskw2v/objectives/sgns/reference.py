"""SGNS in float64 NumPy."""

from daskw2v.config.params import Params
from daskw2v.objectives.cpu.targets import tile_of
from daskw2v.objectives.noise import PreparedNoise
from daskw2v.objectives.reference import Goals, Window, WindowRule, goals_of
from daskw2v.objectives.settings import SharedNegatives
from daskw2v.types import Int64Array


def goals(prepared: PreparedNoise, epoch: int, window: Window, number: int, positions: Int64Array) -> list[Goals]:
    """Return the targets of a window, or the targets of each of its contexts."""
    draws = 1 if SharedNegatives.of(prepared.params).negative_sharing == "shared" else len(window.contexts)
    return [goals_of(prepared, epoch, window, pair) for pair in range(draws)]


def _size(params: Params, _: int) -> int:
    return len(tile_of(params))


RULE = WindowRule(goals, as_one=False, size=_size)
train = RULE.train
