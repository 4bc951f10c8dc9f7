"""The schedule of columns: the order in which they are trained, and their learning rates, from the Params alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from daskw2v.config.params import Params
from daskw2v.sampling.segments import cut_range
from daskw2v.sampling.settings import SampledContexts
from daskw2v.training.columns.settings import Columns
from daskw2v.training.loop.strategy import alpha_at

_MAX_ROUNDS = 64  # of a run: between two, progress is reported, and a checkpoint may be written


class ColumnStep(NamedTuple):
    """A step: the columns first..last-1 of an epoch, which the input rows are trained on, then the output rows.

    `number` counts the steps of the run; `alpha` is the learning rate.
    """

    number: int
    epoch: int
    first: int
    last: int
    alpha: float


@dataclass(frozen=True)
class ColumnRound:
    """A round: consecutive steps; `end` is the number of columns trained by their end, over all epochs."""

    number: int
    steps: tuple[ColumnStep, ...]
    end: int

    def __len__(self) -> int:
        """Return the number of columns of the round."""
        return sum(step.last - step.first for step in self.steps)


class ColumnRounds:
    """The rounds of a run, each made when it is indexed.

    Parameters
    ----------
    params
        `epochs`, `context_size`, `gather_every`, `alpha` and `min_alpha` are read.
    """

    def __init__(self, params: Params) -> None:
        self._params, self._size = params, SampledContexts.of(params).context_size
        self.total = params.epochs * self._size  # columns over all epochs
        self._steps = tuple(self._make_steps())
        self._bounds = [*range(0, len(self._steps), -(-len(self._steps) // _MAX_ROUNDS)), len(self._steps)]

    def __len__(self) -> int:
        return len(self._bounds) - 1

    @property
    def ends(self) -> list[int]:
        """Columns trained by the end of each step, over all epochs."""
        return [step.epoch * self._size + step.last for step in self._steps]

    @property
    def steps_per_round(self) -> int:
        """Number of steps of a round; the last round may have fewer."""
        return len(self[0].steps)

    def __getitem__(self, number: int) -> ColumnRound:
        first, last = self._bounds[number : number + 2]
        steps = self._steps[first:last]
        return ColumnRound(number, steps, steps[-1].epoch * self._size + steps[-1].last)

    def _make_steps(self) -> Iterator[ColumnStep]:
        """Yield all steps of a run."""
        params, number = self._params, 0
        for epoch in range(params.epochs):
            for first, last in cut_range(0, self._size, Columns.of(params).columns_per_step):
                share = (epoch * self._size + first) / self.total
                yield ColumnStep(number, epoch, first, last, alpha_at(params, share))
                number += 1
