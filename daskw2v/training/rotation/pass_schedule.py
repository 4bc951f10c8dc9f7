"""The schedule of rotation: the order in which pairs of partitions are trained, and on which stretch of text.

The input rows and the output rows are cut into p partitions each. The bucket of two partitions holds the pairs that
need rows of these two only. Buckets without a common partition are trained at the same time, so no row is updated by
two workers. A pass trains all p * p buckets of a stretch of text. The next pass has the next stretch: several passes an
epoch keep the updates between two visits of a bucket few.

A pass is cut into steps, and its text into slices. In each step, each group of input partitions is trained with one
group of output partitions, all with all, so that a worker keeps loaded partitions for a while. A step of a group trains
slice after slice, each in rounds that have each partition of both groups once.

The order of steps and rounds is drawn for each pass. If output partitions went round the input partitions one by one,
each would always be trained last with the same input partition; with many partitions and few passes, that costs
quality.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from daskw2v.config.params import Params
from daskw2v.kernels.rng import Purpose, draws, stream
from daskw2v.sampling.skipgrams import Stretch
from daskw2v.training.loop.strategy import alpha_at, even_part
from daskw2v.training.rotation.settings import Rotation

MAX_GROUP = 4  # partitions of a group, where Params leave the number of groups open
# Passes of all epochs where Params leave them open: at least _MIN_PASSES, and more with few partitions, whose buckets
# take long. One epoch has at most a third of them
_MIN_PASSES, _PASSES_BY_PARTITIONS = 24, 768
TASK_LENGTH = 1 << 20  # positions for each thread of a task of several passes; the task takes .01 s besides its buckets


def passes_of_epoch(params: Params) -> int:
    """Return the number of passes in an epoch."""
    settings = Rotation.of(params)
    passes = max(_MIN_PASSES, _PASSES_BY_PARTITIONS // settings.partitions)
    return settings.passes_per_epoch or min(passes // 3, -(-passes // params.epochs))


def enough_passes(params: Params) -> int:
    """Return the number of passes in an epoch that keep one replica's quality, also if there are few epochs.

    A single epoch of 300 MB loses a twentieth of the analogies with 8 passes over 64 partitions, and none with 24.
    """
    passes = passes_of_epoch(params)
    return passes if Rotation.of(params).passes_per_epoch else max(passes, -(-_MIN_PASSES // params.epochs))


def group_size(params: Params) -> int:
    """Return the number of partitions in a group."""
    p, groups = Rotation.of(params).partitions, Rotation.of(params).n_groups
    sizes = range(1, MAX_GROUP + 1) if groups is None else [p // groups]
    return max(size for size in sizes if p % size == 0)


def fits_one_task(n_workers: int, tasks: int, n_groups: int, sent_dtype: str) -> bool:
    """Return whether a pass is one task: one worker trains all groups side by side and rounds no partition.

    `tasks` are the groups that a worker trains side by side.
    """
    return n_workers == 1 and tasks >= n_groups and sent_dtype == Rotation.sent_dtype


def max_passes_of_threads(length: float, threads: int) -> int:
    """Return the maximum number of passes over `length` positions each that a task of `threads` threads trains."""
    return max(1, int(threads * TASK_LENGTH / max(1.0, length)))


class PartitionPair(NamedTuple):
    """The numbers of an input partition and of an output partition, whose bucket is trained."""

    input: int
    output: int


class BucketRound(NamedTuple):
    """Buckets of a group of input and a group of output partitions, of which no two share a partition.

    Parameters
    ----------
    number
        The round's number in the pass, 0 to p - 1; each group has a round of each number.
    alphas
        Learning rate of each slice.
    pairs
        The buckets' partitions.
    """

    number: int
    alphas: tuple[float, ...]
    pairs: tuple[PartitionPair, ...]


@dataclass(frozen=True)
class RotationPass:
    """A pass over the positions start..stop-1 of the corpus in an epoch; `number` counts the passes of the run."""

    number: int
    epoch: int
    start: int
    stop: int

    @property
    def stretch(self) -> Stretch:
        """The stretch of text whose pairs the pass trains."""
        return Stretch(self.epoch, self.start, self.stop)


class RotationPasses:
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
        self._passes, self._group = passes_of_epoch(params), group_size(params)

    @property
    def n_steps(self) -> int:
        """Number of steps of a pass, and of groups of partitions."""
        return Rotation.of(self._params).partitions // self._group

    def __len__(self) -> int:
        """Return the number of passes."""
        return self._params.epochs * self._passes

    def __getitem__(self, number: int) -> RotationPass:
        if not 0 <= number < len(self):
            raise IndexError(number)
        epoch, i = divmod(number, self._passes)
        return RotationPass(number, epoch, *even_part(0, self._length, i, self._passes))

    def passes_of_task(self, number: int, max_passes: int) -> range:
        """Return the numbers of the passes of a task from pass `number` on, where one worker trains all groups.

        A task has as many passes as were trained before it, from 1 to `max_passes`: so training begins when the pairs
        of one pass are ready.
        """
        return range(number, min(len(self), number + max(1, min(number, max_passes))))

    def steps(self, number: int, n_slices: int = 1) -> Iterator[list[list[BucketRound]]]:
        """Yield, for each step of a pass, the list of rounds of each group of input partitions in the step.

        The rounds of one group come one after the other. Rounds of different groups have no partition in common. Each
        round has a learning rate for each of the pass's `n_slices` slices.
        """
        params, size, n_groups = self._params, self._group, self.n_steps
        key = stream(params.seed, Purpose.ORDER, number)
        outer, inner = _shuffled(key, 0, n_groups), _shuffled(key, n_groups, size)
        rounds = range(Rotation.of(params).partitions)
        for step, shift in enumerate(outer):
            step_rounds = [(r, inner[r % size]) for r in rounds[step * size : (step + 1) * size]]
            yield [
                [
                    BucketRound(r, self._alphas(number, r, n_slices), self._pairs(group, shift, inner_shift))
                    for r, inner_shift in step_rounds
                ]
                for group in range(n_groups)
            ]

    def _pairs(self, group: int, shift: int, inner_shift: int) -> tuple[PartitionPair, ...]:
        """Return the pairs of partitions of a group in a round, from the shifts of groups and of partitions."""
        size, partner = self._group, (group + shift) % self.n_steps
        return tuple(PartitionPair(group * size + i, partner * size + (i + inner_shift) % size) for i in range(size))

    def _alphas(self, number: int, r: int, n_slices: int) -> tuple[float, ...]:
        """Return the learning rate of each slice in round `r` of a pass: in each slice it falls from round to round."""
        share = (r + 0.5) / Rotation.of(self._params).partitions
        return tuple(self.alpha(number, (k + share) / n_slices) for k in range(n_slices))

    def alpha(self, number: int, share: float) -> float:
        """Return the learning rate after a share of the pass of this number, 0 to 1."""
        return alpha_at(self._params, (number + share) / len(self))


def _shuffled(key: np.uint64, start: int, n: int) -> list[int]:
    """Return 0..n-1 in an order drawn from the counters start..start+n-1 of a stream."""
    order: list[int] = np.argsort(draws(key, np.arange(start, start + n, dtype=np.uint64))).tolist()
    return order
