"""The text of a replica's work, piece by piece."""

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

from daskw2v.objectives.base import Rate
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import cut
from daskw2v.sampling.text import open_text, read_text
from daskw2v.training.averaging.round_schedule import ReplicaWork
from daskw2v.training.background import in_background
from daskw2v.training.devices import TextPiece


class ReplicaText:
    """The text of a replica's work, to be read once.

    Parameters
    ----------
    run, work
        The run, and what the replica trains.
    length
        Positions of a piece, at most.
    """

    def __init__(self, run: Run, work: ReplicaWork, length: int) -> None:
        self.work, self._run, self._known = work, run, list[int]()
        self._loads = deque(self._pieces(length))

    def loads(self) -> Iterator[Callable[[], TextPiece]]:
        """Yield what loads each piece, in order; a piece that was read ahead is held no longer."""
        while self._loads:
            yield self._loads.popleft()

    @property
    def words(self) -> int:
        """Number of known tokens in the pieces that were loaded, before subsampling."""
        return sum(self._known)

    def read_ahead(self, pieces: int) -> None:
        """Begin to load the first pieces."""
        for i in range(min(pieces, len(self._loads))):
            self._loads[i] = in_background(self._loads[i]).result

    def _pieces(self, length: int) -> Iterator[Callable[[], TextPiece]]:
        for epoch, start, stop, rate in self.work.pieces(open_text(self._run).length):
            for a, b in cut(start, stop, length):
                yield partial(self._load, epoch, a, b, rate)

    def _load(self, epoch: int, start: int, stop: int, rate: Rate) -> TextPiece:
        segment, known, _ = read_text(self._run, epoch, start, stop)
        self._known.append(known)
        return TextPiece(segment, *segment.centers(start, stop), rate, epoch)
