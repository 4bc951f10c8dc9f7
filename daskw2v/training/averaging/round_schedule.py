"""The schedule of averaging: the text and the learning rate of each replica in each step; pure functions.

Replicas are equal when a round begins, and all rows are merged when it ends. After each of its steps, rows of the most
frequent words are merged. Where there is one replica, nothing is merged, and a step is what is reported.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from daskw2v.config.params import Params
from daskw2v.objectives.base import Rate
from daskw2v.objectives.registry import find_objective
from daskw2v.training.averaging.settings import Averaging
from daskw2v.training.loop.strategy import alpha_at, even_part


@dataclass(frozen=True)
class ReplicaWork:
    """The range of text that one replica trains in one step.

    Parameters
    ----------
    replica
        Number of the replica; never a worker's address.
    start, stop
        Progress at both ends, `stop` excluded, in corpus positions over all epochs: epoch * corpus length + position.
    alpha_start, alpha_stop
        Learning rate at both ends.
    """

    replica: int
    start: int
    stop: int
    alpha_start: float
    alpha_stop: float

    def split_by_epoch(self, length: int) -> list[tuple[int, int, int, Rate]]:
        """Return (epoch, start, stop, rate) for each epoch of the range: positions start..stop-1, and their `Rate`.

        The corpus has `length` positions.
        """
        slope = (self.alpha_stop - self.alpha_start) / max(1, self.stop - self.start)
        ranges = []
        progress = self.start
        while progress < self.stop:
            epoch, position = divmod(progress, length)
            end = min(self.stop, (epoch + 1) * length)
            rate = Rate(self.alpha_start + slope * (progress - self.start), slope, position)
            ranges.append((epoch, position, position + end - progress, rate))
            progress = end
        return ranges


_MAX_ROUND_OF_ONE = 1 << 27  # positions of a round of one replica: a checkpoint may be written after each
_MAX_REPORTS = 8  # steps of a round of one replica: each is reported
_MAX_MERGES = 64  # of the most frequent words' rows an epoch
_MAX_MERGES_OF_LONG_TEXT = 256  # where the objective asks for more the longer the text is
_MAX_MERGES_OF_ONE_EPOCH = 128  # where there is one epoch: rows grow fastest at first
_MERGES_PER_REPLICA = 16  # an epoch, where replicas are few
_MAX_STEPS = 16  # of a round: if a worker is lost, its replicas go back to the start of the round
_MAX_ROUND = 1 << 30  # positions of a replica in a round of several replicas, for the same reason
_LEVEL_RATIO = 4  # a level has so many times the rows of the level before, merged so many times less often


class RoundSizes(NamedTuple):
    """The number of rounds of an epoch and of steps of a round; averages where there are several replicas."""

    rounds: int
    steps: int


def round_sizes(params: Params, length: int, n_words: int, step: int = 1) -> RoundSizes:
    """Return the number of rounds of an epoch and of steps of a round, chosen where Params leave them open.

    Several replicas keep all merged rows of a round until it ends (`count_level_merges`): three times both tables at
    most, if the number of steps is left open.

    Parameters
    ----------
    params
        The settings of the run.
    length
        Number of corpus positions of an epoch.
    n_words
        Number of words of the vocabulary.
    step
        Minimum positions of a step, where there is one replica, unless a round has fewer.
    """
    settings, n = Averaging.of(params), Averaging.of(params).replicas
    rounds = settings.rounds_per_epoch
    if n == 1:
        rounds = rounds or max(1, -(-length // _MAX_ROUND_OF_ONE))
        return RoundSizes(rounds, max(1, min(_MAX_REPORTS, length // (rounds * step))))
    merges = min(_max_merges(params, length), _MERGES_PER_REPLICA * n)
    fitting = max(1, 2 * n_words // settings.frequent_rows)
    steps = settings.merges_per_round or min(_MAX_STEPS, fitting, merges if rounds is None else -(-merges // rounds))
    return RoundSizes(rounds or max(-(-merges // steps), -(-length // (n * _MAX_ROUND))), steps)


def _max_merges(params: Params, length: int) -> int:
    """Return the maximum number of merges an epoch of the most frequent rows, whatever the number of replicas."""
    if params.epochs == 1:
        return _MAX_MERGES_OF_ONE_EPOCH
    positions = find_objective(params.objective.name).positions_per_merge
    return _MAX_MERGES if positions is None else min(_MAX_MERGES_OF_LONG_TEXT, max(_MAX_MERGES, length // positions))


def max_steps(params: Params, length: int, n_words: int) -> int:
    """Return the number of steps of the round with most steps; arguments as in `round_sizes`."""
    return max(len(each.steps) for each in AveragingRounds(params, length, n_words))


def level_ends(params: Params, n_words: int) -> list[int]:
    """Return the end, exclusive, of the rows of each level of frequency: frequent_rows * 4**k for level k.

    The last end is `n_words` or more.
    """
    ends = [Averaging.of(params).frequent_rows]
    while ends[-1] < n_words:
        ends.append(ends[-1] * _LEVEL_RATIO)
    return ends


def count_level_merges(params: Params, n_words: int, n_steps: int) -> list[tuple[int, int]]:
    """Return, for each level, its number of rows among `n_words`, and how often they are merged before a round ends."""
    bounds = pairwise([0, *level_ends(params, n_words)])
    return [(min(end, n_words) - start, (n_steps - 1) // _LEVEL_RATIO**k) for k, (start, end) in enumerate(bounds)]


@dataclass(frozen=True)
class AveragingStep:
    """One step of a round.

    Parameters
    ----------
    stop
        Progress at its end, as in `ReplicaWork`.
    works
        The work of each replica.
    level
        Rows of the levels up to this one are merged after the step (`level_ends`); None for all rows.
    """

    stop: int
    works: tuple[ReplicaWork, ...]
    level: int | None


@dataclass(frozen=True)
class AveragingRound:
    """One round, whose replicas start from the same model; `start` and `stop` are progress, as in `ReplicaWork`."""

    number: int
    start: int
    stop: int
    steps: tuple[AveragingStep, ...]

    @property
    def n_replicas(self) -> int:
        """Number of replicas that train in the round."""
        return len(self.steps[0].works)


class AveragingRounds:
    """The rounds of the averaging strategy, each made when it is indexed.

    Each round's range of text is cut into steps, and each step evenly among n_replicas. Of N steps of several replicas,
    the i-th ends after (i / N)² of the run: rows change fastest at first, where they are small and the learning rate is
    high. The rate falls with the progress of the run, from alpha to min_alpha, in the same way for all replicas of a
    step.

    Rows of the most frequent words are merged after each step, rows of rarer words after each fourth, and so on
    (`level_ends`); all rows after the last step. Replicas drift apart by the updates that a row has between two merges,
    and rows of rare words have few.

    Parameters
    ----------
    params, length, n_words, step
        As in `round_sizes`.
    task
        Positions of a task of several rounds, at most, where there is one replica.
    """

    def __init__(self, params: Params, length: int, n_words: int, step: int = 1, task: int = 1) -> None:
        sizes = round_sizes(params, length, n_words, step)
        self._params, self._max_level = params, len(level_ends(params, n_words)) - 1
        self._total = params.epochs * length
        if Averaging.of(params).replicas == 1:
            n = min(self._total, params.epochs * sizes.rounds)
            rounds = (even_part(0, self._total, i, n) for i in range(n))
            self._cuts = [_even_cuts(start, stop, sizes.steps) for start, stop in rounds]
            self._rounds_per_task = max(1, task * n // max(1, self._total))
        else:
            self._cuts, self._rounds_per_task = _cuts_of_several(params, length, sizes), 1

    def rounds_of_task(self, number: int) -> range:
        """Return the numbers of the rounds that one task may train, from `number` on: several where they are short."""
        return range(number, max(number + 1, min(number + self._rounds_per_task, len(self))))

    def sum_rates(self, start: int, stop: int) -> float:
        """Return the sum of the learning rates at the positions start..stop-1 of the run, over all epochs."""
        return alpha_at(self._params, (start + stop) / 2 / self._total) * (stop - start)

    def __len__(self) -> int:
        return len(self._cuts)

    def __iter__(self) -> Iterator[AveragingRound]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, number: int) -> AveragingRound:
        if not 0 <= number < len(self):
            raise IndexError(number)
        cuts = self._cuts[number]
        steps = (self._step(a, b, i, len(cuts) - 1) for i, (a, b) in enumerate(pairwise(cuts), 1))
        return AveragingRound(number, cuts[0], cuts[-1], tuple(steps))

    def _step(self, start: int, stop: int, number: int, n_steps: int) -> AveragingStep:
        """Return the step of this number, counted from 1, of a round of `n_steps`, which trains start..stop-1."""
        replicas = Averaging.of(self._params).replicas
        rates = alpha_at(self._params, start / self._total), alpha_at(self._params, stop / self._total)
        works = (ReplicaWork(i, *even_part(start, stop, i, replicas), *rates) for i in range(replicas))
        level = None if number == n_steps else min(self._max_level, _level_after(number))
        return AveragingStep(stop, tuple(works), level)


def _even_cuts(start: int, stop: int, n: int) -> list[int]:
    """Return `start` and the ends of n even steps of start..stop-1, without empty steps."""
    return sorted({start, *(even_part(start, stop, i, n)[1] for i in range(n))})


def _cuts_of_several(params: Params, length: int, sizes: RoundSizes) -> list[list[int]]:
    """Return the start of each round and the ends of its steps, where there are several replicas.

    Without `rounds_per_epoch`, a round has `sizes.steps` steps, or fewer where an epoch ends.
    """
    settings, total = Averaging.of(params), params.epochs * length
    rounds_per_epoch = settings.rounds_per_epoch
    parts = params.epochs * (rounds_per_epoch or -(-length // (settings.replicas * _MAX_ROUND)))
    ends = {even_part(0, total, i, parts)[1] for i in range(parts)} - {0}  # a part of a short text may be empty
    at_ends_alone = rounds_per_epoch is not None and sizes.steps == 1  # rows are merged at the ends of rounds alone
    n = 0 if at_ends_alone else params.epochs * sizes.rounds * sizes.steps
    rounds, cuts = list[list[int]](), [0]
    for end in sorted({*ends, *(-(-total * i * i // (n * n)) for i in range(1, n + 1))}):
        cuts.append(end)
        if end in ends or (rounds_per_epoch is None and len(cuts) > sizes.steps):
            rounds.append(cuts)
            cuts = [end]
    return rounds


def _level_after(number: int) -> int:
    """Return the highest level of rows that are merged after the step of this number in its round, counted from 1."""
    level = 0
    while number % _LEVEL_RATIO == 0:
        level, number = level + 1, number // _LEVEL_RATIO
    return level
