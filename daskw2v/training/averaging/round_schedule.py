"""Which replica trains which stretch of text in which step, at which learning rate: pure functions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from daskw2v.config.params import Params
from daskw2v.objectives.base import Rate
from daskw2v.training.schedule import alpha_at, share_of


@dataclass(frozen=True)
class ReplicaWork:
    """What one replica does in one step.

    Parameters
    ----------
    replica
        Its number; never a worker's address.
    start, stop
        Progress at its ends, in corpus positions over all epochs: epoch * corpus length + position.
    alpha_start, alpha_stop
        Learning rate at its ends.
    """

    replica: int
    start: int
    stop: int
    alpha_start: float
    alpha_stop: float

    def pieces(self, length: int) -> list[tuple[int, int, int, Rate]]:
        """Return (epoch, start, stop, rate) for each epoch the work touches, in positions of a corpus of `length`."""
        slope = (self.alpha_stop - self.alpha_start) / max(1, self.stop - self.start)
        pieces = []
        at = self.start
        while at < self.stop:
            epoch, position = divmod(at, length)
            end = min(self.stop, (epoch + 1) * length)
            rate = Rate(self.alpha_start + slope * (at - self.start), slope, position)
            pieces.append((epoch, position, position + end - at, rate))
            at = end
        return pieces


ROUNDS = 8  # an epoch, of one replica: it is heard of as often, and may be saved
_MERGES = 2  # an epoch, for each of several replicas


def rounds_per_epoch(params: Params) -> int:
    """Return the number of rounds an epoch."""
    n = params.n_replicas
    return params.rounds_per_epoch or (ROUNDS if n == 1 else _MERGES * n)


@dataclass(frozen=True)
class AveragingStep:
    """One step of a round: its works begin with the same frequent rows. `stop` is its progress, as in `ReplicaWork`."""

    stop: int
    works: tuple[ReplicaWork, ...]


@dataclass(frozen=True)
class AveragingRound:
    """One round: its replicas start from the same model. `start` and `stop` are its progress, as in `ReplicaWork`."""

    number: int
    start: int
    stop: int
    steps: tuple[AveragingStep, ...]

    @property
    def n_replicas(self) -> int:
        """Number of replicas that train."""
        return len(self.steps[0].works)


class AveragingRounds(Sequence[AveragingRound]):
    """The rounds of the averaging strategy over a corpus of `length` positions, each made when it is asked for.

    One replica warms the model up (replicas that break symmetry apart cannot be averaged); then each round's
    stretch is cut into steps, and these evenly among n_replicas. The learning rate falls with the progress of the whole
    run, from alpha to min_alpha: all replicas of a step go through the same fall. All rows are merged after a round,
    those of frequent words after each step: replicas that update a row more often drift apart sooner.
    """

    def __init__(self, params: Params, length: int) -> None:
        n = params.n_replicas
        wanted = params.epochs * rounds_per_epoch(params)
        warmup = (params.warmup if params.warmup is not None else min(0.1, n / 80)) if n > 1 else 0.0
        self._params = params
        self._total = params.epochs * length
        self._warm = int(warmup * self._total)
        self._n_warm = min(self._warm, math.ceil(warmup * wanted))
        self._n_merged = min(self._total - self._warm, wanted)

    def __len__(self) -> int:
        return self._n_warm + self._n_merged

    @overload
    def __getitem__(self, number: int) -> AveragingRound: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[AveragingRound]: ...
    def __getitem__(self, number: int | slice) -> AveragingRound | Sequence[AveragingRound]:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        if not 0 <= number < len(self):
            raise IndexError(number)
        if number < self._n_warm:
            start, stop = share_of(0, self._warm, number, self._n_warm)
            replicas = 1
        else:
            start, stop = share_of(self._warm, self._total, number - self._n_warm, self._n_merged)
            replicas = self._params.n_replicas
        n_steps = min(self._params.merges_per_round, stop - start) if replicas > 1 else 1
        steps = (self._step(*share_of(start, stop, i, n_steps), replicas) for i in range(n_steps))
        return AveragingRound(number, start, stop, tuple(steps))

    def _step(self, start: int, stop: int, replicas: int) -> AveragingStep:
        rates = alpha_at(self._params, start / self._total), alpha_at(self._params, stop / self._total)
        works = (ReplicaWork(i, *share_of(start, stop, i, replicas), *rates) for i in range(replicas))
        return AveragingStep(stop, tuple(works))
