"""Which replica trains which stretch of text in which round, at which learning rate: pure functions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from daskw2v.config.params import Params
from daskw2v.objectives.base import Rate
from daskw2v.training.schedule import alpha_at, share_of


@dataclass(frozen=True)
class ReplicaWork:
    """What one replica does in one round.

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


ROUNDS = 8  # an epoch, for each replica


@dataclass(frozen=True)
class AveragingRound:
    """One round: all its works start from the same model. `start` and `stop` are its progress, as in Work."""

    number: int
    start: int
    stop: int
    works: tuple[ReplicaWork, ...]


class AveragingRounds(Sequence[AveragingRound]):
    """The rounds of the averaging strategy over a corpus of `length` positions, each made when it is asked for.

    One replica warms the model up (replicas that break symmetry apart cannot be averaged); then each round's
    stretch is cut evenly among n_replicas. The learning rate falls with the progress of the whole run, from alpha
    to min_alpha: all replicas of a round go through the same fall. Merges have to be many against n_replicas, since
    outer momentum remembers that many rounds: hence 8 an epoch for each.
    """

    def __init__(self, params: Params, length: int) -> None:
        n = params.n_replicas
        wanted = params.epochs * (params.rounds_per_epoch or ROUNDS * n)
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
        rates = alpha_at(self._params, start / self._total), alpha_at(self._params, stop / self._total)
        works = (ReplicaWork(i, *share_of(start, stop, i, replicas), *rates) for i in range(replicas))
        return AveragingRound(number, start, stop, tuple(works))
