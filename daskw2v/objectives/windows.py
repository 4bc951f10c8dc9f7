"""The windows of a range of centers, as kernels on any device read them, and the columns that each trains.

Windows may train a prefix of the columns, so that the first columns are models by themselves. The source is Kusupati et
al. 2022, "Matryoshka Representation Learning", section 3, where an example trains all sizes at once. Here a window
trains one, drawn by its position: two of three windows train all columns, the third a prefix, each as likely. More
prefixes would make these better, and all columns together worse. To a kernel, a prefix is a smaller width; its windows
take as much less time.
"""

from typing import Any, NamedTuple

import numpy as np

from daskw2v.config.params import Params
from daskw2v.kernels.jit import inline
from daskw2v.kernels.rng import Purpose, below, draw, stream
from daskw2v.objectives.base import Rate
from daskw2v.objectives.settings import MAX_PREFIXES, TrainsPrefixes


class Prefixes(NamedTuple):
    """The prefixes that windows may train.

    Parameters
    ----------
    sizes
        Number of columns of each prefix, then zeros: of one length, so that a kernel is compiled for any number of
        prefixes.
    n
        Number of prefixes; 0 if all windows train all columns.
    key
        Key of the stream of this epoch's draws of columns.
    """

    sizes: tuple[int, ...]
    n: int
    key: np.uint64


PREFIX_PERIOD = 3  # of so many windows, one trains a prefix
NO_PREFIXES = Prefixes((0,) * MAX_PREFIXES, 0, np.uint64(0))


def make_prefixes(params: Params, epoch: int) -> Prefixes:
    """Return the prefixes that windows may train in an epoch, in the form that kernels read."""
    sizes = TrainsPrefixes.of(params).prefix_sizes
    if not sizes:
        return NO_PREFIXES
    return Prefixes((*sizes, *NO_PREFIXES.sizes[len(sizes) :]), len(sizes), stream(params.seed, Purpose.PREFIX, epoch))


@inline
def window_width(prefixes: Any, position: Any, width: Any) -> Any:
    """Return the number of floats of a row that the window at a corpus position trains: `width`, or of a prefix."""
    if prefixes.n > 0:
        drawn = np.int64(below(draw(prefixes.key, position), PREFIX_PERIOD * prefixes.n))
        if drawn < prefixes.n:
            width = prefixes.sizes[drawn]
    return width


class Windows(NamedTuple):
    """The data from which kernels derive sizes, learning rates and columns of the windows of a range of centers.

    Parameters
    ----------
    window, shrink_windows
        As in Params.
    alpha, slope, origin
        The fields of `Rate`.
    key
        Key of the stream of this epoch's draws of window sizes.
    prefixes
        Prefixes of the columns that windows may train, on processors.
    """

    window: int
    shrink_windows: bool
    alpha: float
    slope: float
    origin: int
    key: np.uint64
    prefixes: Prefixes = NO_PREFIXES


def make_windows(params: Params, rate: Rate, epoch: int) -> Windows:
    """Return the `Windows` of a range of centers in an epoch, the form in which kernels read Params and rate."""
    key = stream(params.seed, Purpose.WINDOW, epoch)
    return Windows(params.window, params.shrink_windows, *rate, key, make_prefixes(params, epoch))
