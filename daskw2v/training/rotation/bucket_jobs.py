"""The buckets that a task of rotation trains, their pairs, and the order in which threads train them.

A thread trains a bucket as soon as its two partitions are free. If threads waited for the end of each round, all would
wait for its slowest bucket. A partition's buckets follow each other in the order of the rounds, so the result is the
same.

Each thread takes the next bucket itself and waits for its two partitions alone. A thread that dealt buckets out would
need Python's lock for each, as all others do, and sixteen threads would wait for it more than they train.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from itertools import count
from threading import Lock
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from daskw2v.kernels.rng import draws
from daskw2v.sampling.skipgrams import Bucket, PairsPart, StoredPairs, held_buckets, read_buckets

HeldParts: TypeAlias = Mapping[int, Sequence[Sequence[PairsPart]]]  # of groups of inputs, by slice
PairSource: TypeAlias = StoredPairs | HeldParts
_R = TypeVar("_R")


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


BucketRounds: TypeAlias = Sequence[Sequence[BucketWork]]  # buckets of a round have no partition in common


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
        """Return the function that reads each bucket of a slice; slices come one after the other."""
        now = self._coming.result()
        if number + 1 < self._n:
            self._coming = self._pool.submit(self._read, number + 1)
        return lambda work: now[work.output // self._size, work.input // self._size][_index_of(work, self._size)]


class _HeldBuckets:
    """The buckets of a step, from pairs that workers hold; the thread that trains a bucket puts it together."""

    def __init__(self, parts: HeldParts, size: int) -> None:
        self._parts, self._size = parts, size

    def slice(self, number: int) -> Callable[[BucketWork], Bucket]:
        """Return the function that makes each bucket of a slice."""
        size, made = self._size, {group: held_buckets(slices[number]) for group, slices in self._parts.items()}

        def bucket_of(work: BucketWork) -> Bucket:
            before = work.output // size * size**2  # indices of the groups of outputs before
            return made[work.input // size](before + _index_of(work, size))

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
        The bucket to train.
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


def _index_of(work: BucketWork, size: int) -> int:
    """Return the index of a bucket among the buckets of its two groups."""
    return work.output % size * size + work.input % size


class Work(Protocol):
    """A bucket to train: an input and an output partition, by their numbers."""

    @property
    def input(self) -> int: ...  # noqa: D102

    @property
    def output(self) -> int: ...  # noqa: D102


_W = TypeVar("_W", bound=Work)


def train_in_order(pool: Executor, threads: int, train: Callable[[_W], _R], works: Sequence[_W]) -> list[_R]:
    """Train buckets by some threads of a pool; return the result of `train` for each.

    A bucket begins when all earlier buckets that share a partition with it are done. If one fails, buckets that have
    not begun are left out, and its error is raised.
    """
    before, after = _locks(works)
    results: dict[int, _R] = {}
    numbers, failed = count(), list[BaseException]()

    def train_next() -> None:
        for number in numbers:  # a bucket that is waited for was taken earlier, by a thread that trains
            if number >= len(works):
                return
            for lock in before[number]:
                lock.acquire()
            try:
                if not failed:
                    results[number] = train(works[number])
            except BaseException as error:
                failed.append(error)
            finally:
                for lock in after[number]:
                    lock.release()

    futures = [pool.submit(train_next) for _ in range(min(threads, len(works)))]
    try:
        for future in futures:
            future.result()
    except BaseException as error:  # of this thread, which is interrupted
        failed.append(error)
    if failed:
        raise failed[0]
    return [results[number] for number in range(len(works))]


def _locks(works: Sequence[Work]) -> tuple[list[list[Lock]], list[list[Lock]]]:
    """Return, for each bucket, the locks that earlier buckets release, and the locks that it releases."""
    before: list[list[Lock]] = [[] for _ in works]
    after: list[list[Lock]] = [[] for _ in works]
    last = dict[tuple[str, int], int]()
    for number, work in enumerate(works):
        for partition in (("input", work.input), ("output", work.output)):
            if partition in last:
                lock = Lock()
                lock.acquire()
                before[number].append(lock)
                after[last[partition]].append(lock)
            last[partition] = number
    return before, after
