"""What kernels on any device need to know about the windows of a range of work."""

from typing import NamedTuple

import numpy as np

from daskw2v.config.params import Params
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.objectives.base import Rate


class Windows(NamedTuple):
    """The windows of a range of work.

    Parameters
    ----------
    window, shrink_windows
        As in Params.
    alpha, slope, origin
        As in `Rate`.
    key
        Stream of this epoch's draws of window sizes.
    """

    window: int
    shrink_windows: bool
    alpha: float
    slope: float
    origin: int
    key: np.uint64


def windows_of(params: Params, rate: Rate, epoch: int) -> Windows:
    """Return the kernel's view of a range of work in an epoch."""
    return Windows(params.window, params.shrink_windows, *rate, stream(params.seed, Purpose.WINDOW, epoch))
