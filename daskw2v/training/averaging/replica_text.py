"""The text of a replica's work, piece by piece."""

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from daskw2v.sampling.reader import open_text
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import cut
from daskw2v.training.averaging.round_schedule import ReplicaWork
from daskw2v.training.loop.background import in_background


class ReplicaText:
    """The text of a replica's work, to be read once.

    Parameters
    ----------
    run, work
        The run, and what the replica trains.
    length
        Positions of a piece, at most.
    load
        Returns a piece, given the run, an epoch, the positions and the learning rate.
    """

    def __init__(self, run: Run, work: ReplicaWork, length: int, load: Callable[..., Any]) -> None:
        self.work, self._run, self._load = work, run, load
        self._loads = deque(self._pieces(length))

    def loads(self) -> Iterator[Callable[[], Any]]:
        """Yield what loads each piece, in order; a piece that was read ahead is held no longer."""
        while self._loads:
            yield self._loads.popleft()

    def read_ahead(self, pieces: int) -> None:
        """Begin to load the first pieces."""
        for i in range(min(pieces, len(self._loads))):
            self._loads[i] = in_background(self._loads[i]).result

    def _pieces(self, length: int) -> Iterator[Callable[[], Any]]:
        for epoch, start, stop, rate in self.work.pieces(open_text(self._run).length):
            for a, b in cut(start, stop, length):
                yield partial(self._load, self._run, epoch, a, b, rate)
