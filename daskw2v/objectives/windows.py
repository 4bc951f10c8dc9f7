"""The windows of a range of work, as kernels on any device read them."""

from typing import NamedTuple

import numpy as np

from daskw2v.config.params import Params
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.objectives.base import Rate
from daskw2v.objectives.prefixes import WHOLE, Prefixes, prefixes_of


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
    prefixes
        Prefixes of the columns that they may train, on processors.
    """

    window: int
    shrink_windows: bool
    alpha: float
    slope: float
    origin: int
    key: np.uint64
    prefixes: Prefixes = WHOLE


def windows_of(params: Params, rate: Rate, epoch: int) -> Windows:
    """Return the kernel's view of a range of work in an epoch."""
    key = stream(params.seed, Purpose.WINDOW, epoch)
    return Windows(params.window, params.shrink_windows, *rate, key, prefixes_of(params, epoch))
