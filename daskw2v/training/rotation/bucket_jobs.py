"""The buckets that a task of rotation trains, their pairs, and the order in which threads train them.

A thread trains a bucket as soon as its two partitions are free. If threads waited for the end of each round, all would
wait for its slowest bucket. A partition's buckets follow each other in the order of the rounds, so the result is the
same.

Each thread takes the next bucket itself and waits for its two partitions alone. A thread that dealt buckets out would
need Python's lock for each, as all others do, and sixteen threads would wait for it more than they train.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from itertools import count
from threading import Lock
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from daskw2v.kernels.rng import draws
from daskw2v.sampling.skipgrams import Bucket, PairsPart, StoredPairs, make_bucket_reader, read_buckets

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
    """A step of a task: the number of its pass among the passes of the task, and its rounds.

    Each slice of the pass's text goes through all rounds.
    """

    number_of_pass: int
    rounds: BucketRounds


class BucketJob(NamedTuple):
    """A bucket of a slice.

    Parameters
    ----------
    step, number
        Numbers of the step, and of the slice.
    work
        The bucket to train.
    key
        Stream of the slice's draws.
    bucket_of
        Returns its pairs.
    """

    step: int
    number: int
    work: BucketWork
    key: np.uint64
    bucket_of: Callable[[BucketWork], Bucket]


def bucket_jobs(
    steps: Sequence[StepWork], pairs: Sequence[PairSource], size: int, pool: Executor
) -> Iterator[list[BucketJob]]:
    """Yield the buckets in their order: all held buckets together, buckets in files by slice.

    Each slice of a step goes through all of its rounds.
    """
    held = list[BucketJob]()
    for step, (number_of_pass, rounds) in enumerate(steps):
        source, works = pairs[number_of_pass], [work for works in rounds for work in works]
        if isinstance(source, StoredPairs):
            slices = _buckets_in_files(source, rounds, size, pool)
        else:
            slices = _held_buckets(source, size, len(works[0].alphas))
        for number, bucket_of in enumerate(slices):
            keys = draws(np.array([work.key for work in works], np.uint64), np.array([number], np.uint64))
            jobs = [BucketJob(step, number, work, key, bucket_of) for work, key in zip(works, keys, strict=True)]
            if isinstance(source, StoredPairs):
                yield jobs
            else:
                held += jobs
    if held:
        yield held


def _buckets_in_files(
    stored: StoredPairs, rounds: BucketRounds, size: int, pool: Executor
) -> Iterator[Callable[[BucketWork], Bucket]]:
    """Yield the function that returns each bucket of a slice; a slice is read while the one before is trained."""
    groups = sorted({(work.output // size, work.input // size) for work in rounds[0]})

    def read(number: int) -> dict[tuple[int, int], list[Bucket]]:
        return {of_groups: read_buckets(stored, number, *of_groups) for of_groups in groups}

    n, coming = len(rounds[0][0].alphas), pool.submit(read, 0)
    for number in range(n):
        buckets = coming.result()
        if number + 1 < n:
            coming = pool.submit(read, number + 1)
        yield partial(_bucket_read, buckets, size)


def _bucket_read(buckets: Mapping[tuple[int, int], Sequence[Bucket]], size: int, work: BucketWork) -> Bucket:
    return buckets[work.output // size, work.input // size][_index_of(work, size)]


def _held_buckets(parts: HeldParts, size: int, n: int) -> Iterator[Callable[[BucketWork], Bucket]]:
    """Yield the function that puts each bucket of a slice together, in the thread that trains it; for n slices."""
    for number in range(n):
        yield partial(
            _bucket_held, {group: make_bucket_reader(slices[number]) for group, slices in parts.items()}, size
        )


def _bucket_held(buckets: Mapping[int, Callable[[int], Bucket]], size: int, work: BucketWork) -> Bucket:
    before = work.output // size * size**2  # indices of the groups of outputs before
    return buckets[work.input // size](before + _index_of(work, size))


def _index_of(work: BucketWork, size: int) -> int:
    """Return the index of a bucket among the buckets of its two groups."""
    return work.output % size * size + work.input % size


def train_in_order(
    pool: Executor, threads: int, train: Callable[[BucketJob], _R], jobs: Sequence[BucketJob]
) -> list[_R]:
    """Train buckets by so many threads of a pool; return the result of `train` for each.

    A bucket begins when all earlier buckets that share a partition with it are done. If one fails, buckets that have
    not begun are left out, and its error is raised.
    """
    before, after = _locks(jobs)
    results: dict[int, _R] = {}
    numbers, failed = count(), list[BaseException]()

    def train_next() -> None:
        for number in numbers:  # a bucket that is waited for was taken earlier, by a thread that trains
            if number >= len(jobs):
                return
            for lock in before[number]:
                lock.acquire()
            try:
                if not failed:
                    results[number] = train(jobs[number])
            except BaseException as error:
                failed.append(error)
            finally:
                for lock in after[number]:
                    lock.release()

    futures = [pool.submit(train_next) for _ in range(min(threads, len(jobs)))]
    try:
        for future in futures:
            future.result()
    except BaseException as error:  # of this thread, which is interrupted
        failed.append(error)
    if failed:
        raise failed[0]
    return [results[number] for number in range(len(jobs))]


def _locks(jobs: Sequence[BucketJob]) -> tuple[list[list[Lock]], list[list[Lock]]]:
    """Return, for each bucket, the locks that earlier buckets release, and the locks that it releases."""
    before: list[list[Lock]] = [[] for _ in jobs]
    after: list[list[Lock]] = [[] for _ in jobs]
    last = dict[tuple[str, int], int]()
    for number, job in enumerate(jobs):
        for partition in (("input", job.work.input), ("output", job.work.output)):
            if partition in last:
                lock = Lock()
                lock.acquire()
                before[number].append(lock)
                after[last[partition]].append(lock)
            last[partition] = number
    return before, after
