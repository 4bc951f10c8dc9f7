"""The buckets that a task of rotation trains, their pairs, and the order in which threads train them.

A thread trains a bucket as soon as its two partitions are free. If threads waited for the end of each round, all would
wait for its slowest bucket. A partition's buckets follow each other in the order of the rounds, so the result is the
same.

Each thread takes the next bucket itself and waits for the bucket's two partitions alone. A thread that assigned buckets
to others would need Python's lock for each, as all threads do, and sixteen threads would wait more than they train.
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

# By group of input partitions, then by slice of the text, the part of each of the slice's pieces
HeldParts: TypeAlias = Mapping[int, Sequence[Sequence[PairsPart]]]
PairSource: TypeAlias = StoredPairs | HeldParts
_R = TypeVar("_R")


class BucketWork(NamedTuple):
    """One bucket to train.

    Parameters
    ----------
    input, output
        Numbers of its partitions.
    alphas
        Learning rate of each slice.
    key
        Stream of the random draws of training.
    rounding
        Stream of the draws by which the output partition is rounded to bfloat16 afterwards; None where it is not.
    """

    input: int
    output: int
    alphas: tuple[float, ...]
    key: int
    rounding: int | None


BucketRounds: TypeAlias = Sequence[Sequence[BucketWork]]  # no two buckets of a round share a partition


class StepWork(NamedTuple):
    """A step of a task: the index of its pass among the passes of the task, and its rounds.

    Each slice of the pass's text goes through all rounds.
    """

    number_of_pass: int
    rounds: BucketRounds


class BucketJob(NamedTuple):
    """A bucket to train, of one slice.

    Parameters
    ----------
    step, slice_number
        Index of the step in its task, and number of the slice.
    work
        The bucket to train.
    key
        Stream of the random draws for the slice.
    load_bucket
        Function from the bucket to train to its pairs and noise.
    """

    step: int
    slice_number: int
    work: BucketWork
    key: np.uint64
    load_bucket: Callable[[BucketWork], Bucket]


def list_jobs(
    steps: Sequence[StepWork], pairs: Sequence[PairSource], group_size: int, pool: Executor
) -> Iterator[list[BucketJob]]:
    """Yield lists of the buckets of steps, in the order of training.

    One list has all buckets whose pairs are held in memory. For pairs in files, each slice of each step has a list.

    Parameters
    ----------
    steps
        The steps of a task.
    pairs
        The source of the pairs of each pass of the task.
    group_size
        Number of partitions in a group.
    pool
        Reads files in the background.
    """
    held = list[BucketJob]()
    for step, (number_of_pass, rounds) in enumerate(steps):
        source, works = pairs[number_of_pass], [work for works in rounds for work in works]
        if isinstance(source, StoredPairs):
            slices = _buckets_in_files(source, rounds, group_size, pool)
        else:
            slices = _held_buckets(source, group_size, len(works[0].alphas))
        for number, load_bucket in enumerate(slices):
            keys = draws(np.array([work.key for work in works], np.uint64), np.array([number], np.uint64))
            jobs = [BucketJob(step, number, work, key, load_bucket) for work, key in zip(works, keys, strict=True)]
            if isinstance(source, StoredPairs):
                yield jobs
            else:
                held += jobs
    if held:
        yield held


def _buckets_in_files(
    stored: StoredPairs, rounds: BucketRounds, group_size: int, pool: Executor
) -> Iterator[Callable[[BucketWork], Bucket]]:
    """Yield, for each slice, the function that returns its buckets; read a slice while the one before is trained."""
    groups = sorted({(work.output // group_size, work.input // group_size) for work in rounds[0]})

    def read(number: int) -> dict[tuple[int, int], list[Bucket]]:
        return {group_pair: read_buckets(stored, number, *group_pair) for group_pair in groups}

    n, coming = len(rounds[0][0].alphas), pool.submit(read, 0)
    for number in range(n):
        buckets = coming.result()
        if number + 1 < n:
            coming = pool.submit(read, number + 1)
        yield partial(_get_read_bucket, buckets, group_size)


def _get_read_bucket(buckets: Mapping[tuple[int, int], Sequence[Bucket]], group_size: int, work: BucketWork) -> Bucket:
    """Return the pairs of a bucket from the buckets of its slice, by group of outputs and group of inputs."""
    return buckets[work.output // group_size, work.input // group_size][_bucket_index(work, group_size)]


def _held_buckets(parts: HeldParts, group_size: int, n_slices: int) -> Iterator[Callable[[BucketWork], Bucket]]:
    """Yield, for each slice, the function that joins the parts of one of its buckets, in the thread that trains it."""
    for number in range(n_slices):
        readers = {group: make_bucket_reader(slices[number]) for group, slices in parts.items()}
        yield partial(_join_held_bucket, readers, group_size)


def _join_held_bucket(buckets: Mapping[int, Callable[[int], Bucket]], group_size: int, work: BucketWork) -> Bucket:
    """Return the pairs of a bucket, joined from the parts of its slice in memory, by group of inputs."""
    before = work.output // group_size * group_size**2  # number of buckets of the groups of outputs before
    return buckets[work.input // group_size](before + _bucket_index(work, group_size))


def _bucket_index(work: BucketWork, group_size: int) -> int:
    """Return the index of a bucket among the buckets of its two groups, each of `group_size` partitions."""
    return work.output % group_size * group_size + work.input % group_size


def run_in_order(pool: Executor, threads: int, train: Callable[[BucketJob], _R], jobs: Sequence[BucketJob]) -> list[_R]:
    """Train buckets by `threads` threads of a pool; return the result of `train` for each bucket, in order of `jobs`.

    A bucket begins when all earlier buckets that share a partition with it have ended. If one fails, buckets that have
    not begun are skipped, and the error is raised.
    """
    before, after = _make_locks(jobs)
    results: dict[int, _R] = {}
    numbers, failed = count(), list[BaseException]()

    def train_next() -> None:
        for number in numbers:  # a bucket that is waited for was begun earlier, by a thread that trains it
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


def _make_locks(jobs: Sequence[BucketJob]) -> tuple[list[list[Lock]], list[list[Lock]]]:
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
