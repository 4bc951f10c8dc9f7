"""What every device takes: pieces of text, and how wide it may work."""

from typing import NamedTuple

from daskw2v.objectives.base import Rate
from daskw2v.params import Resources
from daskw2v.sampling.segments import Segment

_HOT_ROWS = 254  # of all threads together


class Piece(NamedTuple):
    """The centers first..last-1 of a segment, in an epoch, at a learning rate."""

    segment: Segment
    first: int
    last: int
    rate: Rate
    epoch: int


class Threads(NamedTuple):
    """The threads of a training task.

    Parameters
    ----------
    n
        How many train a replica.
    hot_rows, flush_words
        As in Resources.
    """

    n: int
    hot_rows: int
    flush_words: int


def threads_of(n: int, resources: Resources) -> Threads:
    """Return the threads of a training task as Resources have them.

    Where they leave the hot rows open, the more threads there are, the fewer: what all of them know and the tables do
    not is a step that all take at once, and diverges where it is too long (16 threads with 255 rows each do).
    """
    rows = _HOT_ROWS // n if resources.hot_rows is None else resources.hot_rows
    return Threads(n, rows, resources.flush_words)
