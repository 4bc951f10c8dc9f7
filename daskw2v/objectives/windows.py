"""The windows of a range of work, as kernels on any device read them, and the columns that each trains.

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
from daskw2v.objectives.settings import MOST_PREFIXES, TrainsPrefixes


class Prefixes(NamedTuple):
    """The prefixes that windows may train.

    Parameters
    ----------
    sizes
        Columns of each prefix, then zeros: of one length, so that a kernel is compiled for any number of prefixes.
    n
        Number of prefixes; 0 if all windows train all columns.
    key
        Stream of this epoch's draws.
    """

    sizes: tuple[int, ...]
    n: int
    key: np.uint64


OF = 3  # windows, of which one trains a prefix
WHOLE = Prefixes((0,) * MOST_PREFIXES, 0, np.uint64(0))


def prefixes_of(params: Params, epoch: int) -> Prefixes:
    """Return the kernel's view of the prefixes in an epoch."""
    sizes = TrainsPrefixes.of(params).prefix_sizes
    if not sizes:
        return WHOLE
    return Prefixes((*sizes, *WHOLE.sizes[len(sizes) :]), len(sizes), stream(params.seed, Purpose.PREFIX, epoch))


@inline
def width_at(prefixes: Any, position: Any, width: Any) -> Any:
    """Return how many floats of a row the window at a corpus position trains: `width`, all of them, or a prefix."""
    if prefixes.n > 0:
        drawn = np.int64(below(draw(prefixes.key, position), OF * prefixes.n))
        if drawn < prefixes.n:
            width = prefixes.sizes[drawn]
    return width


class Windows(NamedTuple):
    """The windows of a range of work.

    Parameters
    ----------
    window, shrink_windows
        As in Params.
    alpha, slope, origin
        The fields of `Rate`.
    key
        Stream of this epoch's draws of window sizes.
    prefixes
        Prefixes of the columns that windows may train, on processors.
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
