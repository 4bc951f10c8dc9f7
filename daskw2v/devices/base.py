"""What every device takes: pieces of text, and how wide it may work."""

from typing import NamedTuple

from daskw2v.objectives.base import Rate
from daskw2v.params import Resources
from daskw2v.sampling.segments import Segment


class Piece(NamedTuple):
    """The centers first..last-1 of a segment, in an epoch, at a learning rate."""

    segment: Segment
    first: int
    last: int
    rate: Rate
    epoch: int


class Threads(NamedTuple):
    """How wide a training task works.

    Parameters
    ----------
    n
        How many threads train a replica, or feed the GPU that does.
    hot_rows, flush_words, max_in_flight
        As in Resources.
    """

    n: int
    hot_rows: int | None = None
    flush_words: int = 512
    max_in_flight: int | None = None


def threads_of(n: int, resources: Resources) -> Threads:
    """Return the threads of a training task as Resources have them."""
    return Threads(n, resources.hot_rows, resources.flush_words, resources.max_in_flight)
