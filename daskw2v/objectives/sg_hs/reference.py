"""Skip-gram with hierarchical softmax in float64 NumPy."""

from daskw2v.config.params import Params
from daskw2v.objectives.cpu.targets import divide_path
from daskw2v.objectives.reference import Goals, Window, WindowRule
from daskw2v.objectives.tree import PreparedTree, word_path
from daskw2v.types import Int64Array


def goals(prepared: PreparedTree, epoch: int, window: Window, number: int, positions: Int64Array) -> list[Goals]:
    """Return the path of a window's word as the targets of all of its contexts, as `WindowRule.goals` says."""
    return [word_path(prepared.tree, window.word)]


def _size(_: Params, n_nodes: int) -> int:
    """Return the number of targets of a group of a path of n_nodes."""
    return divide_path(n_nodes)[1]


RULE = WindowRule(goals, as_one=False, size=_size)
train = RULE.train
