"""Which replica trains which stretch of text in which round, at which learning rate: pure functions."""

import itertools
from dataclasses import dataclass

from daskw2v.objectives.base import Rate
from daskw2v.params import Params


@dataclass(frozen=True)
class Work:
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


@dataclass(frozen=True)
class Round:
    """One round: all its works start from the same model. `start` and `stop` are its progress, as in Work."""

    number: int
    start: int
    stop: int
    works: tuple[Work, ...]


def averaging_rounds(params: Params, length: int) -> list[Round]:
    """Return the rounds of the averaging strategy over a corpus of `length` positions.

    One replica warms the model up (replicas that break symmetry apart cannot be averaged); then each round's
    stretch is cut evenly among n_replicas. The learning rate falls with the progress of the whole run, from alpha
    to min_alpha: all replicas of a round go through the same fall.
    """
    n = params.n_replicas
    total = params.epochs * length
    per_epoch = params.rounds_per_epoch or 8 * n
    warmup = params.warmup if params.warmup is not None else min(0.1, n / 80)
    warm = int(warmup * total) if n > 1 else 0
    n_rounds = max(1, min(params.epochs * per_epoch, total - warm))

    def bounds(start: int, stop: int, parts: int) -> list[int]:
        return [start + (stop - start) * i // parts for i in range(parts + 1)]

    def alpha(progress: int) -> float:
        return params.alpha + (params.min_alpha - params.alpha) * progress / total

    # Rounds of the warm-up are as long as a replica's share of a later round
    n_warm = -(-warm * n_rounds * n // max(1, total - warm)) if warm else 0
    warm_ends, ends = bounds(0, warm, max(1, n_warm)), bounds(warm, total, n_rounds)
    stretches = [(a, b, 1) for a, b in itertools.pairwise(warm_ends)]
    stretches += [(a, b, n) for a, b in itertools.pairwise(ends)]
    rounds: list[Round] = []
    for start, stop, replicas in stretches:
        if start == stop:
            continue
        cuts = bounds(start, stop, replicas)
        works = tuple(Work(i, a, b, alpha(start), alpha(stop)) for i, (a, b) in enumerate(itertools.pairwise(cuts)))
        rounds.append(Round(len(rounds), start, stop, works))
    return rounds
