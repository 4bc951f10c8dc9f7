"""Buckets are trained as soon as their partitions are free, each partition's in their order."""

import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.training.rotation.bucket_jobs import train_in_order


class Work(NamedTuple):
    """A bucket with a number."""

    input: int
    output: int
    number: int


buckets = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=40).map(
    lambda pairs: [Work(*pair, number) for number, pair in enumerate(pairs)]
)


@given(buckets, st.integers(1, 4))
def test_train_in_order__keeps_the_order_of_each_partition_and_never_shares_one(works, threads):
    lock, busy, seen = threading.Lock(), set(), defaultdict(list)

    def train(work):
        mine = {("input", work.input), ("output", work.output)}
        with lock:
            assert not busy & mine
            busy.update(mine)
            for partition in mine:
                seen[partition].append(work.number)
        with lock:
            busy.difference_update(mine)
        return 10 * work.number

    with ThreadPoolExecutor(threads) as pool:
        assert train_in_order(pool, threads, train, works) == [10 * work.number for work in works]
    assert all(numbers == sorted(numbers) for numbers in seen.values())


def test_train_in_order__waits_for_no_bucket_that_has_other_partitions():
    slow = threading.Event()
    works = [Work(0, 0, 0), Work(1, 1, 1), Work(1, 2, 2), Work(2, 1, 3)]

    def train(work):
        if work.number == 0:
            assert slow.wait(60), "the others were held up"
        if work.number == 3:
            slow.set()
        return work.number

    with ThreadPoolExecutor(2) as pool:
        assert train_in_order(pool, 2, train, works) == [0, 1, 2, 3]


def test_train_in_order__raises_the_error_of_a_bucket_and_begins_no_more():
    begun = []

    def train(work):
        begun.append(work.number)
        if work.number == 1:
            raise ValueError("no such pairs")

    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="no such pairs"):
        train_in_order(pool, 1, train, [Work(number, 0, number) for number in range(5)])
    assert begun == [0, 1]
