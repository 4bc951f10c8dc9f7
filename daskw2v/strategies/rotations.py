"""Which partitions meet when, and over which stretch of text: the schedule of rotation, as pure functions.

Input rows and output rows are cut into p partitions each. In a round every input partition meets one output partition,
and together they train the bucket of pairs that needs no other row: no row is ever in two hands. After p rounds, a
pass, all have met. The next pass has the next stretch of text; several passes an epoch keep what a pair of partitions
learns at once short.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from daskw2v.params import Params
from daskw2v.strategies.schedule import alpha_at, share_of


class Meeting(NamedTuple):
    """Input partition `contexts` and output partition `centers` train their bucket."""

    contexts: int
    centers: int


@dataclass(frozen=True)
class Pass:
    """One pass: its number, its epoch, and its positions start..stop-1 of the corpus."""

    number: int
    epoch: int
    start: int
    stop: int


class Rotations:
    """The schedule of a run over a corpus of `length` positions.

    Parameters
    ----------
    params
        `epochs`, `alpha` and `min_alpha` are read.
    length
        Positions of an epoch.
    n_partitions, passes_per_epoch
        p, and the passes that an epoch is cut into.
    """

    def __init__(self, params: Params, length: int, n_partitions: int, passes_per_epoch: int) -> None:
        self._params, self._length = params, length
        self._n, self._passes = n_partitions, passes_per_epoch

    def __len__(self) -> int:
        """Return the number of passes."""
        return self._params.epochs * self._passes

    def __getitem__(self, number: int) -> Pass:
        if not 0 <= number < len(self):
            raise IndexError(number)
        epoch, i = divmod(number, self._passes)
        return Pass(number, epoch, *share_of(0, self._length, i, self._passes))

    def rounds(self, number: int) -> Iterator[tuple[float, list[Meeting]]]:
        """Yield the learning rate and the meetings of each round of a pass."""
        total = len(self) * self._n
        for r in range(self._n):
            rate = alpha_at(self._params, (number * self._n + r + 0.5) / total)
            yield rate, [Meeting(i, (i + r) % self._n) for i in range(self._n)]
