"""What the schedules of all strategies share: the learning rate, and even shares of a range."""

from daskw2v.config.params import Params
from daskw2v.objectives.registry import start_alpha


def alpha_at(params: Params, share: float) -> float:
    """Return the learning rate where so much of a run is done, 0 to 1: it falls evenly from alpha to min_alpha."""
    alpha = start_alpha(params)
    return alpha + (params.min_alpha - alpha) * share


def share_of(start: int, stop: int, i: int, n: int) -> tuple[int, int]:
    """Return the i-th of n even parts of start..stop."""
    return start + (stop - start) * i // n, start + (stop - start) * (i + 1) // n
