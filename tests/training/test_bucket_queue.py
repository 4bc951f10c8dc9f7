"""Buckets are trained as soon as their partitions are free, each partition's in their order."""

import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.training.rotation.bucket_jobs import BucketJob, BucketWork, run_in_order


def job(input_, output, number):
    """Return a bucket with a number."""
    return BucketJob(0, number, BucketWork(input_, output, (), 0, None), np.uint64(0), None)


buckets = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=40).map(
    lambda pairs: [job(*pair, number) for number, pair in enumerate(pairs)]
)


@given(buckets, st.integers(1, 4))
def test_run_in_order__keeps_the_order_of_each_partition_and_never_shares_one(works, threads):
    lock, busy, seen = threading.Lock(), set(), defaultdict(list)

    def train(job):
        mine = {("input", job.work.input), ("output", job.work.output)}
        with lock:
            assert not busy & mine
            busy.update(mine)
            for partition in mine:
                seen[partition].append(job.slice_number)
        with lock:
            busy.difference_update(mine)
        return 10 * job.slice_number

    with ThreadPoolExecutor(threads) as pool:
        assert run_in_order(pool, threads, train, works) == [10 * job.slice_number for job in works]
    assert all(numbers == sorted(numbers) for numbers in seen.values())


def test_run_in_order__waits_for_no_bucket_that_has_other_partitions():
    slow = threading.Event()
    works = [job(0, 0, 0), job(1, 1, 1), job(1, 2, 2), job(2, 1, 3)]

    def train(job):
        if job.slice_number == 0:
            assert slow.wait(60), "the others were held up"
        if job.slice_number == 3:
            slow.set()
        return job.slice_number

    with ThreadPoolExecutor(2) as pool:
        assert run_in_order(pool, 2, train, works) == [0, 1, 2, 3]


def test_run_in_order__raises_the_error_of_a_bucket_and_begins_no_more():
    begun = []

    def train(job):
        begun.append(job.slice_number)
        if job.slice_number == 1:
            raise ValueError("no such pairs")

    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="no such pairs"):
        run_in_order(pool, 1, train, [job(number, 0, number) for number in range(5)])
    assert begun == [0, 1]
