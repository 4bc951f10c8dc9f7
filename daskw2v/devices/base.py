"""What every device takes: pieces of text, and how wide it may work."""

from typing import NamedTuple

from daskw2v.objectives.base import Rate
from daskw2v.sampling.segments import Segment


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
