"""The buckets that a task of rotation trains, in their order, and their pairs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from typing import NamedTuple, TypeAlias

import numpy as np

from daskw2v.kernels.rng import draws
from daskw2v.sampling.skipgrams import Bucket, PairsPart, StoredPairs, held_buckets, read_buckets

HeldParts: TypeAlias = Mapping[int, Sequence[Sequence[PairsPart]]]  # of groups of inputs, by slice
PairSource: TypeAlias = StoredPairs | HeldParts


class BucketWork(NamedTuple):
    """One bucket to train.

    Parameters
    ----------
    input, output
        Its partitions.
    alphas
        Learning rate of each slice.
    key
        Stream of the draws.
    rounding
        Stream of the draws by which the output partition is rounded to bfloat16 afterwards; None where it is not.
    """

    input: int
    output: int
    alphas: tuple[float, ...]
    key: int
    rounding: int | None


BucketRounds: TypeAlias = Sequence[Sequence[BucketWork]]  # those of a round have no partition in common


class StepWork(NamedTuple):
    """A step of a task: the number of its pass among those of the task, and its rounds.

    Each slice of the pass's text goes through all rounds.
    """

    number_of_pass: int
    rounds: BucketRounds


class _FileBuckets:
    """The buckets of a step, from files: a slice is read while the one before is trained."""

    def __init__(self, place: StoredPairs, rounds: BucketRounds, size: int, pool: Executor) -> None:
        self._place, self._size, self._pool = place, size, pool
        self._groups = sorted({(work.output // size, work.input // size) for work in rounds[0]})
        self._n, self._coming = len(rounds[0][0].alphas), pool.submit(self._read, 0)

    def _read(self, number: int) -> dict[tuple[int, int], list[Bucket]]:
        return {groups: read_buckets(self._place, number, *groups) for groups in self._groups}

    def slice(self, number: int) -> Callable[[BucketWork], Bucket]:
        """Return what gives each bucket of a slice; slices come one after the other."""
        now = self._coming.result()
        if number + 1 < self._n:
            self._coming = self._pool.submit(self._read, number + 1)
        return lambda work: now[work.output // self._size, work.input // self._size][_place_of(work, self._size)]


class _HeldBuckets:
    """The buckets of a step, from what workers hold; each is put together by the thread that trains it."""

    def __init__(self, parts: HeldParts, size: int) -> None:
        self._parts, self._size = parts, size

    def slice(self, number: int) -> Callable[[BucketWork], Bucket]:
        """Return what gives each bucket of a slice."""
        size, made = self._size, {group: held_buckets(slices[number]) for group, slices in self._parts.items()}

        def bucket_of(work: BucketWork) -> Bucket:
            before = work.output // size * size**2  # places of the groups of outputs before
            return made[work.input // size](before + _place_of(work, size))

        return bucket_of


class BucketJob(NamedTuple):
    """A bucket of a slice.

    Parameters
    ----------
    input, output
        Its partitions.
    step, number
        Numbers of the step, and of the slice.
    work
        What is trained.
    key
        Stream of the slice's draws.
    bucket_of
        Returns its pairs.
    """

    input: int
    output: int
    step: int
    number: int
    work: BucketWork
    key: np.uint64
    bucket_of: Callable[[BucketWork], Bucket]


def bucket_jobs(
    steps: Sequence[StepWork], pairs: Sequence[PairSource], size: int, pool: Executor
) -> Iterator[list[BucketJob]]:
    """Yield the buckets in their order: all that are held together, those in files by slice.

    Each slice of a step goes through all of its rounds.
    """
    together = list[BucketJob]()
    for step, (number_of_pass, rounds) in enumerate(steps):
        source = pairs[number_of_pass]
        buckets = (
            _FileBuckets(source, rounds, size, pool) if isinstance(source, StoredPairs) else _HeldBuckets(source, size)
        )
        for number in range(len(rounds[0][0].alphas)):
            bucket_of, works = buckets.slice(number), [work for works in rounds for work in works]
            keys = draws(np.array([work.key for work in works], np.uint64), np.array([number], np.uint64))
            jobs = [
                BucketJob(work.input, work.output, step, number, work, key, bucket_of)
                for work, key in zip(works, keys, strict=True)
            ]
            if isinstance(source, StoredPairs):
                yield jobs
            else:
                together += jobs
    if together:
        yield together


def _place_of(work: BucketWork, size: int) -> int:
    """Return the place of a bucket among those of its two groups."""
    return work.output % size * size + work.input % size
