"""Which partitions meet when, and over which stretch of text: the schedule of rotation, as pure functions.

Input rows and output rows are cut into p partitions each. In a round every input partition meets one output partition,
and together they train the bucket of pairs that needs no other row: no row is ever in two hands. After p rounds, a
pass, all have met. The next pass has the next stretch of text; several passes an epoch keep what a pair of partitions
learns at once short.

The rounds of a pass come in an order of its own, at random: where output partitions go round the input partitions one
by one, each meets the same ones last, pass after pass, and with many partitions and few passes that costs quality. But
partitions that a worker has to load
should stay a while. So they meet in groups: rounds are turns of a group of inputs around a group of outputs, both at
random.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from daskw2v.params import Params
from daskw2v.sampling.rng import Purpose, draws, stream
from daskw2v.strategies.schedule import alpha_at, share_of

_GROUP = 4  # partitions of a group, at most, where the number of groups is not given


class Meeting(NamedTuple):
    """Input partition `contexts` and output partition `centers` train their bucket."""

    contexts: int
    centers: int


class Step(NamedTuple):
    """The meetings of a group of inputs with a group of outputs in a round; of each partition, one."""

    round: int
    alpha: float
    meetings: tuple[Meeting, ...]


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
        `epochs`, `alpha`, `min_alpha`, `seed`, `n_partitions` (p), `n_groups` and `passes_per_epoch` are read.
    length
        Positions of an epoch.
    """

    def __init__(self, params: Params, length: int) -> None:
        self._params, self._length = params, length
        sizes = range(1, _GROUP + 1) if params.n_groups is None else [params.n_partitions // params.n_groups]
        self._group = max(size for size in sizes if params.n_partitions % size == 0)

    @property
    def n_turns(self) -> int:
        """Turns of a pass."""
        return self._params.n_partitions // self._group

    def __len__(self) -> int:
        """Return the number of passes."""
        return self._params.epochs * self._params.passes_per_epoch

    def __getitem__(self, number: int) -> Pass:
        if not 0 <= number < len(self):
            raise IndexError(number)
        epoch, i = divmod(number, self._params.passes_per_epoch)
        return Pass(number, epoch, *share_of(0, self._length, i, self._params.passes_per_epoch))

    def turns(self, number: int) -> Iterator[list[list[Step]]]:
        """Yield the turns of a pass: of each group of inputs in turn, its steps with the group of outputs it meets.

        In a turn all of both groups meet all. Steps of one group come one after the other; those of different groups
        share no partition.
        """
        params, size, n_groups = self._params, self._group, self.n_turns
        key = stream(params.seed, Purpose.ORDER, number)
        outer, inner = _shuffled(key, 0, n_groups), _shuffled(key, n_groups, size)
        rounds = range(params.n_partitions)
        for turn, shift in enumerate(outer):
            now = [(r, inner[r % size]) for r in rounds[turn * size : (turn + 1) * size]]
            yield [
                [self._step(number, group, (group + shift) % n_groups, r, inner_shift) for r, inner_shift in now]
                for group in range(n_groups)
            ]

    def _step(self, number: int, group: int, partner: int, r: int, shift: int) -> Step:
        size = self._group
        meetings = tuple(Meeting(group * size + i, partner * size + (i + shift) % size) for i in range(size))
        return Step(r, self.alpha(number, (r + 0.5) / self._params.n_partitions), meetings)

    def alpha(self, number: int, share: float) -> float:
        """Return the learning rate where so much of a pass is done, 0 to 1."""
        return alpha_at(self._params, (number + share) / len(self))


def _shuffled(key: np.uint64, start: int, n: int) -> list[int]:
    """Return 0..n-1 in an order drawn from the counters start..start+n-1."""
    order: list[int] = np.argsort(draws(key, np.arange(start, start + n, dtype=np.uint64))).tolist()
    return order
