"""The schedule of rotation: all partitions meet once a pass, and no row is ever in two hands."""

import itertools
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.config.params import Params
from daskw2v.training.rotation.pass_schedule import TASK_LENGTH, RotationPasses, max_passes_of_threads, passes_of_epoch


def make(n=4, length=1000, **params):
    return RotationPasses(Params(n_partitions=n, **params), length)


def flat(steps):
    """Return the rounds of steps in their order."""
    return [one for groups in steps for rounds in groups for one in rounds]


@given(
    n=st.integers(1, 40),
    grouped=st.integers(0, 9),
    passes=st.integers(1, 3),
    epochs=st.integers(1, 2),
    seed=st.integers(0, 9),
)
def test_steps__of_a_pass_train_each_bucket_once_and_no_partition_twice_a_round(n, grouped, passes, epochs, seed):
    n, n_groups = (n, None) if grouped == 0 else (n // grouped * grouped or grouped, grouped)
    rotations = make(n, n_groups=n_groups, passes_per_epoch=passes, epochs=epochs, seed=seed)
    for number in range(len(rotations)):
        rounds = defaultdict(list)
        for one in flat(rotations.steps(number)):
            rounds[one.number] += one.pairs
        assert sorted(rounds) == [*range(n)]
        for pairs in rounds.values():
            assert sorted(pair.input for pair in pairs) == sorted(pair.output for pair in pairs) == [*range(n)]
        trained = [*itertools.chain(*rounds.values())]
        assert len(trained) == len({*trained}) == n * n


@given(n=st.integers(1, 40), number=st.integers(0, 19))
def test_steps__come_in_an_order_that_keeps_the_rounds_of_each_partition(n, number):
    """Otherwise a bucket would be submitted before those that it depends on."""
    last = defaultdict(lambda: -1)
    for one in flat(make(n).steps(number)):
        for pair in one.pairs:
            for partition in (("input", pair.input), ("output", pair.output)):
                assert last[partition] < one.number
                last[partition] = one.number


@pytest.mark.parametrize(
    ("n", "n_groups", "size"),
    [(8, None, 4), (6, None, 3), (7, None, 1), (64, None, 4), (2, None, 2), (10, None, 2), (64, 4, 16), (6, 1, 6)],
)
def test_steps__keep_groups_together(n, n_groups, size):
    """In a step, each group of input partitions is trained with one group of output partitions, all with all."""
    for step in make(n, n_groups=n_groups).steps(0):
        for rounds in step:
            for side in ("input", "output"):
                assert len({frozenset(getattr(pair, side) for pair in one.pairs) for one in rounds}) == 1
        assert {len(one.pairs) for one in flat([step])} == {size}
        partners = defaultdict(set)
        for pair in itertools.chain(*(one.pairs for one in flat([step]))):
            partners[pair.input].add(pair.output)
        assert all(len(group) == size for group in partners.values())
        assert len({*map(frozenset, partners.values())}) == n // size


def test_steps__of_passes_come_in_different_orders():
    rotations = make(32)
    orders = [[one.pairs[0] for one in flat(rotations.steps(number))] for number in range(20)]
    assert len({*map(tuple, orders)}) == 20
    assert orders[3] == [one.pairs[0] for one in flat(make(32).steps(3))], "but each has its own"
    assert orders[3] != [one.pairs[0] for one in flat(make(32, seed=2).steps(3))]


@pytest.mark.parametrize(
    ("n", "epochs", "passes"),
    [
        (8, 1, 32),
        (8, 3, 32),
        (8, 5, 20),
        (8, 96, 1),
        (8, 100, 1),
        (2, 1, 128),
        (16, 1, 16),
        *((n, *of) for n in (32, 64, 500) for of in [(1, 8), (3, 8), (4, 6), (5, 5), (12, 2), (24, 1), (100, 1)]),
    ],
)
def test_passes__that_are_left_open_are_more_with_few_partitions_and_at_most_a_third_in_one_epoch(n, epochs, passes):
    """Other numbers would make other vectors of the same name."""
    assert passes_of_epoch(Params(n_partitions=n, epochs=epochs)) == passes
    assert passes_of_epoch(Params(epochs=epochs, passes_per_epoch=3)) == 3


@given(length=st.integers(0, 5000), passes=st.integers(1, 7), epochs=st.integers(1, 4))
def test_passes__of_an_epoch_cover_the_corpus_once(length, passes, epochs):
    rotations = make(3, length, passes_per_epoch=passes, epochs=epochs)
    assert len(rotations) == epochs * passes
    for epoch, group in itertools.groupby(rotations, lambda p: p.epoch):
        own = [*group]
        assert [p.number for p in own] == [*range(epoch * passes, (epoch + 1) * passes)]
        assert (own[0].start, own[-1].stop) == (0, length)
        assert all(a.stop == b.start for a, b in itertools.pairwise(own))
    with pytest.raises(IndexError):
        rotations[epochs * passes]


def test_together__takes_more_passes_the_less_text_they_have_and_few_at_first():
    def tasks(length, first=0, threads=1):
        rotations, number = make(4, length, passes_per_epoch=5, epochs=4), first
        most = max_passes_of_threads(length / 5, threads)
        while number < len(rotations):
            together = rotations.passes_of_task(number, most)
            yield len(together)
            assert together.start == number
            number = together.stop
        assert number == len(rotations)

    assert [*tasks(5 * TASK_LENGTH // 6)] == [1, 1, 2, 4, 6, 6]
    assert [*tasks(5 * TASK_LENGTH // 6, first=13)] == [6, 1]
    assert [*tasks(5 * TASK_LENGTH, threads=6)] == [1, 1, 2, 4, 6, 6]
    assert [*tasks(5 * TASK_LENGTH // 2)] == [1, 1] + 9 * [2]
    assert [*tasks(5 * TASK_LENGTH)] == [*tasks(10**12)] == 20 * [1]
    assert [*tasks(0)] == [1, 1, 2, 4, 8, 4]


@pytest.mark.parametrize("n_slices", [1, 2, 4])
def test_rounds__have_a_rate_that_falls_evenly_from_alpha_to_min_alpha(n_slices):
    """Slice after slice of the text; in each, round after round."""
    rotations = make(8 // n_slices, epochs=1, passes_per_epoch=3, alpha=0.1, min_alpha=0.02)
    rates = {
        (number, k, one.number): alpha
        for number in range(len(rotations))
        for one in flat(rotations.steps(number, n_slices))
        for k, alpha in enumerate(one.alphas)
    }
    falling = [rates[key] for key in sorted(rates)]
    assert len(falling) == 3 * 8
    assert [a - b for a, b in itertools.pairwise(falling)] == pytest.approx([0.08 / 24] * 23)
    assert falling[0] == pytest.approx(0.1 - 0.08 / 48)
    assert falling[-1] == pytest.approx(0.02 + 0.08 / 48)
