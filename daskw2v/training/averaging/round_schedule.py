"""Which replica trains which stretch of text in which step, at which learning rate: pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, overload

from daskw2v.config.params import Params
from daskw2v.objectives.base import Rate
from daskw2v.training.averaging.settings import Averaging
from daskw2v.training.loop.strategy import alpha_at, share_of


@dataclass(frozen=True)
class ReplicaWork:
    """The work of one replica in one step.

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


_ALONE = 1 << 27  # positions of a round of one replica, at most: it may be saved after each
_REPORTS = 8  # steps of such a round, at most: each is reported
_MERGES = 64  # an epoch, of the rows of the most frequent words, at most
_OF_ONE_EPOCH = 128  # merges of these rows where there is one epoch: rows grow fastest at first
_OF_EACH = 16  # an epoch for each of few replicas
_STEPS = 16  # a round, at most; if a worker is lost, its replicas go back to the start of the round
_ROUND = 1 << 30  # positions of a replica's round, at most, for the same reason
_RARER = 4  # times as many rows are merged as many times less often


class RoundSizes(NamedTuple):
    """Rounds of an epoch, and steps of a round; of several replicas both on average."""

    rounds: int
    steps: int


def round_sizes(params: Params, length: int, n_words: int, step: int = 1) -> RoundSizes:
    """Return the rounds and steps that Params leave open, for epochs of `length` positions and `n_words` words.

    One replica's tables stay where they are from step to step of at least `step` positions, and nothing is merged.
    Several keep all merged rows of a round until it ends (`given_rows`): three times both tables at most.
    """
    settings, n = Averaging.of(params), Averaging.of(params).n_replicas
    rounds = settings.rounds_per_epoch
    if n == 1:
        rounds = rounds or max(1, -(-length // _ALONE))
        return RoundSizes(rounds, max(1, min(_REPORTS, length // (rounds * step))))
    merges = min(_OF_ONE_EPOCH if params.epochs == 1 else _MERGES, _OF_EACH * n)
    fitting = max(1, 2 * n_words // settings.frequent_rows)
    most = min(_STEPS, fitting, merges if rounds is None else -(-merges // rounds))
    steps = settings.merges_per_round or most
    return RoundSizes(rounds or max(-(-merges // steps), -(-length // (n * _ROUND))), steps)


def most_steps(params: Params, length: int, n_words: int) -> int:
    """Return the steps of the round that has most of them."""
    return max(len(this.steps) for this in AveragingRounds(params, length, n_words))


def levels(params: Params, n_words: int) -> list[int]:
    """Return the rows at which levels of frequency end: of level k, 4**k times as rare as `frequent_rows`."""
    ends = [Averaging.of(params).frequent_rows]
    while ends[-1] < n_words:
        ends.append(ends[-1] * _RARER)
    return ends


def given_rows(params: Params, n_words: int, steps: int) -> list[tuple[int, int]]:
    """Return the rows of each level, and how often replicas take them merged in a round of so many steps."""
    bounds = pairwise([0, *levels(params, n_words)])
    return [(min(end, n_words) - start, (steps - 1) // _RARER**k) for k, (start, end) in enumerate(bounds)]


@dataclass(frozen=True)
class AveragingStep:
    """One step of a round.

    Parameters
    ----------
    stop
        Its progress, as in `ReplicaWork`.
    works
        The work of each replica.
    level
        Rows of this level and of lower ones are merged after it (`levels`); None for all rows.
    """

    stop: int
    works: tuple[ReplicaWork, ...]
    level: int | None


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
    """The rounds of the averaging strategy, each made when it is asked for.

    Each round's stretch of text is cut into steps, and these evenly among n_replicas. Of N steps of several replicas,
    the i-th ends after (i / N)² of the run: rows change fastest at first, where they are small and the learning rate is
    high. The rate falls with the progress of the whole run, from alpha to min_alpha: all replicas of a step go through
    the same fall.

    Rows of the most frequent words are merged after each step, those of rarer ones after every fourth, and so on
    (`levels`); all rows after the last one. Replicas drift apart by the updates that a row has between two merges, and
    rows of rare words have few.

    Parameters
    ----------
    params
        The settings of the run.
    length
        Positions of the corpus.
    n_words
        Words of the vocabulary.
    step
        Positions of a step, where there is one replica, at least.
    task
        Positions of a task, where there is one replica, if it may train several rounds.
    """

    def __init__(self, params: Params, length: int, n_words: int, step: int = 1, task: int = 1) -> None:
        sizes = round_sizes(params, length, n_words, step)
        self._params, self._highest = params, len(levels(params, n_words)) - 1
        self._total = params.epochs * length
        if Averaging.of(params).n_replicas == 1:
            n = min(self._total, params.epochs * sizes.rounds)
            rounds = (share_of(0, self._total, i, n) for i in range(n))
            self._cuts = [_even_cuts(start, stop, sizes.steps) for start, stop in rounds]
            self._together = max(1, task * n // max(1, self._total))
        else:
            self._cuts, self._together = _cuts_of_several(params, length, sizes), 1

    def together(self, number: int) -> range:
        """Return the rounds that a task trains from this one on, at most: several where these have little text."""
        return range(number, max(number + 1, min(number + self._together, len(self))))

    def rate(self, start: int, stop: int) -> float:
        """Return the sum of the learning rates of the positions between two points of progress."""
        return alpha_at(self._params, (start + stop) / 2 / self._total) * (stop - start)

    def __len__(self) -> int:
        return len(self._cuts)

    @overload
    def __getitem__(self, number: int) -> AveragingRound: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[AveragingRound]: ...
    def __getitem__(self, number: int | slice) -> AveragingRound | Sequence[AveragingRound]:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        if not 0 <= number < len(self):
            raise IndexError(number)
        cuts = self._cuts[number]
        steps = (self._step(a, b, i, len(cuts) - 1) for i, (a, b) in enumerate(pairwise(cuts), 1))
        return AveragingRound(number, cuts[0], cuts[-1], tuple(steps))

    def _step(self, start: int, stop: int, number: int, n_steps: int) -> AveragingStep:
        replicas = Averaging.of(self._params).n_replicas
        rates = alpha_at(self._params, start / self._total), alpha_at(self._params, stop / self._total)
        works = (ReplicaWork(i, *share_of(start, stop, i, replicas), *rates) for i in range(replicas))
        return AveragingStep(stop, tuple(works), None if number == n_steps else min(self._highest, _level_of(number)))


def _even_cuts(start: int, stop: int, n: int) -> list[int]:
    """Return the ends of n steps, without empty ones, behind their start."""
    return sorted({start, *(share_of(start, stop, i, n)[1] for i in range(n))})


def _cuts_of_several(params: Params, length: int, sizes: RoundSizes) -> list[list[int]]:
    """Return the ends of each round's steps, behind its start.

    Without `rounds_per_epoch`, rounds have equally many steps.
    """
    settings, total = Averaging.of(params), params.epochs * length
    rounds_per_epoch = settings.rounds_per_epoch
    parts = params.epochs * (rounds_per_epoch or -(-length // (settings.n_replicas * _ROUND)))
    ends = {share_of(0, total, i, parts)[1] for i in range(parts)} - {0}  # a part of a short text may be empty
    together = rounds_per_epoch is not None and sizes.steps == 1  # all rows are merged, at the ends of rounds
    n = 0 if together else params.epochs * sizes.rounds * sizes.steps
    rounds, cuts = list[list[int]](), [0]
    for end in sorted({*ends, *(-(-total * i * i // (n * n)) for i in range(1, n + 1))}):
        cuts.append(end)
        if end in ends or (rounds_per_epoch is None and len(cuts) > sizes.steps):
            rounds.append(cuts)
            cuts = [end]
    return rounds


def _level_of(number: int) -> int:
    """Return the level of the rows that are merged after a step, counted from 1."""
    level = 0
    while number % _RARER == 0:
        level, number = level + 1, number // _RARER
    return level
