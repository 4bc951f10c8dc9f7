"""Which partitions are trained together when, and over which stretch of text: the schedule of rotation.

The input rows and the output rows are cut into p partitions each. The bucket of two partitions holds the pairs that
need rows of these two only. Buckets without a common partition are trained at the same time, so no row is ever updated
by two workers. A pass trains all p * p buckets of a stretch of text. The next pass has the next stretch: several passes
an epoch keep the updates between two visits of a bucket few.

A pass is cut into steps, and its text into slices. In each step, every group of input partitions is trained with one
group of output partitions, all with all, so that partitions which a worker has loaded stay there for a while. A step of
a group trains slice after slice, each in rounds that have every partition of both groups once.

The order of steps and rounds is drawn for each pass. If output partitions went round the input partitions one by one,
each would always be trained last with the same ones; with many partitions and few passes, that costs quality.
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

_GROUP = 4  # partitions of a group, at most, where Params leave the number of groups open
# Passes of all epochs where Params leave them open: at least so many, and more with few partitions, whose buckets take
# long. One epoch has a third of them at most
_PASSES, _OF_PARTITIONS = 24, 768
TASK_LENGTH = 1 << 20  # positions for each thread of a task of several passes; the task takes .01 s besides its buckets


def passes_of_epoch(params: Params) -> int:
    """Return the number of passes in an epoch."""
    of = Rotation.of(params)
    passes = max(_PASSES, _OF_PARTITIONS // of.n_partitions)
    return of.passes_per_epoch or min(passes // 3, -(-passes // params.epochs))


def group_size(params: Params) -> int:
    """Return the number of partitions in a group."""
    p, groups = Rotation.of(params).n_partitions, Rotation.of(params).n_groups
    sizes = range(1, _GROUP + 1) if groups is None else [p // groups]
    return max(size for size in sizes if p % size == 0)


def is_one_task(workers: int, at_once: int, n_groups: int, sent_dtype: str) -> bool:
    """Return whether a pass is one task: one worker trains all groups at once and rounds no partition between steps."""
    return workers == 1 and at_once >= n_groups and sent_dtype == Rotation.sent_dtype


def most_together(length: float, threads: int) -> int:
    """Return how many passes over so many positions a task of so many threads trains, at most."""
    return max(1, int(threads * TASK_LENGTH / max(1.0, length)))


class PartitionPair(NamedTuple):
    """An input partition and an output partition, whose bucket is trained."""

    input: int
    output: int


class BucketRound(NamedTuple):
    """Buckets of a group of inputs and a group of outputs, which have no partition in common.

    Parameters
    ----------
    number
        The round's number in the pass, 0 to p - 1. Rounds of other groups have the same one.
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
    """A pass over the positions start..stop-1 of the corpus in an epoch."""

    number: int
    epoch: int
    start: int
    stop: int

    @property
    def stretch(self) -> Stretch:
        """The stretch of text whose pairs it trains."""
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
        """Steps of a pass, and groups of partitions."""
        return Rotation.of(self._params).n_partitions // self._group

    def __len__(self) -> int:
        """Return the number of passes."""
        return self._params.epochs * self._passes

    def __getitem__(self, number: int) -> RotationPass:
        if not 0 <= number < len(self):
            raise IndexError(number)
        epoch, i = divmod(number, self._passes)
        return RotationPass(number, epoch, *even_part(0, self._length, i, self._passes))

    def together(self, number: int, most: int) -> range:
        """Return the passes of a task that begins with a pass, where one worker trains all groups at a time.

        The first ones do not go together: training begins when the pairs of one are there.
        """
        return range(number, min(len(self), number + max(1, min(number, most))))

    def steps(self, number: int, n_slices: int = 1) -> Iterator[list[list[BucketRound]]]:
        """Yield the steps of a pass: for each group of inputs, its rounds with the group of outputs of this step.

        The rounds of one group come one after the other. Those of different groups have no partition in common. Each
        round has a learning rate for each of the pass's `n_slices`.
        """
        params, size, n_groups = self._params, self._group, self.n_steps
        key = stream(params.seed, Purpose.ORDER, number)
        outer, inner = _shuffled(key, 0, n_groups), _shuffled(key, n_groups, size)
        rounds = range(Rotation.of(params).n_partitions)
        for step, shift in enumerate(outer):
            now = [(r, inner[r % size]) for r in rounds[step * size : (step + 1) * size]]
            yield [
                [
                    BucketRound(r, self._alphas(number, r, n_slices), self._pairs(group, shift, inner_shift))
                    for r, inner_shift in now
                ]
                for group in range(n_groups)
            ]

    def _pairs(self, group: int, shift: int, inner_shift: int) -> tuple[PartitionPair, ...]:
        size, partner = self._group, (group + shift) % self.n_steps
        return tuple(PartitionPair(group * size + i, partner * size + (i + inner_shift) % size) for i in range(size))

    def _alphas(self, number: int, r: int, n_slices: int) -> tuple[float, ...]:
        """Return the learning rates of a round: in each slice they fall as rounds go on."""
        done = (r + 0.5) / Rotation.of(self._params).n_partitions
        return tuple(self.alpha(number, (k + done) / n_slices) for k in range(n_slices))

    def alpha(self, number: int, share: float) -> float:
        """Return the learning rate where a share of a pass is done, 0 to 1."""
        return alpha_at(self._params, (number + share) / len(self))


def _shuffled(key: np.uint64, start: int, n: int) -> list[int]:
    """Return 0..n-1 in an order drawn from the counters start..start+n-1."""
    order: list[int] = np.argsort(draws(key, np.arange(start, start + n, dtype=np.uint64))).tolist()
    return order
