"""The schedule of rotation: all partitions meet once a pass, and no row is ever in two hands."""

import itertools
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.params import Params
from daskw2v.strategies.rotations import Rotations


def make(n=4, length=1000, **params):
    return Rotations(Params(n_partitions=n, **params), length)


def flat(turns):
    """Return the steps of turns in their order."""
    return [step for groups in turns for steps in groups for step in steps]


@given(
    n=st.integers(1, 70), grouped=st.integers(0, 9), passes=st.integers(1, 5), epochs=st.integers(1, 4),
    seed=st.integers(0, 9),
)  # fmt: skip
def test_turns__of_a_pass_meet_each_bucket_once_and_no_partition_twice_a_round(n, grouped, passes, epochs, seed):
    n, n_groups = (n, None) if grouped == 0 else (n // grouped * grouped or grouped, grouped)
    rotations = make(n, n_groups=n_groups, passes_per_epoch=passes, epochs=epochs, seed=seed)
    for number in range(len(rotations)):
        rounds = defaultdict(list)
        for step in flat(rotations.turns(number)):
            rounds[step.round] += step.meetings
        assert sorted(rounds) == [*range(n)]
        for meetings in rounds.values():
            assert sorted(m.contexts for m in meetings) == sorted(m.centers for m in meetings) == [*range(n)]
        met = [*itertools.chain(*rounds.values())]
        assert len(met) == len({*met}) == n * n


@given(n=st.integers(1, 70), number=st.integers(0, 19))
def test_turns__come_in_an_order_that_keeps_the_rounds_of_each_partition(n, number):
    """Or else a step would be given to the cluster before those that it depends on."""
    last = defaultdict(lambda: -1)
    for step in flat(make(n).turns(number)):
        for m in step.meetings:
            for partition in (("input", m.contexts), ("output", m.centers)):
                assert last[partition] < step.round
                last[partition] = step.round


@pytest.mark.parametrize(
    ("n", "n_groups", "size"),
    [(8, None, 4), (6, None, 3), (7, None, 1), (64, None, 4), (2, None, 2), (10, None, 2), (64, 4, 16), (6, 1, 6)],
)
def test_turns__keep_groups_together(n, n_groups, size):
    """In a turn, so many input partitions meet as many output partitions, all with all."""
    for turn in make(n, n_groups=n_groups).turns(0):
        for steps in turn:
            for side in ("contexts", "centers"):
                assert len({frozenset(getattr(m, side) for m in step.meetings) for step in steps}) == 1
        assert {len(step.meetings) for step in flat([turn])} == {size}
        partners = defaultdict(set)
        for m in itertools.chain(*(step.meetings for step in flat([turn]))):
            partners[m.contexts].add(m.centers)
        assert all(len(group) == size for group in partners.values())
        assert len({*map(frozenset, partners.values())}) == n // size


def test_turns__of_passes_come_in_different_orders():
    rotations = make(64)
    orders = [[step.meetings[0] for step in flat(rotations.turns(number))] for number in range(20)]
    assert len({*map(tuple, orders)}) == 20
    assert orders[3] == [step.meetings[0] for step in flat(make(64).turns(3))], "but each has its own"
    assert orders[3] != [step.meetings[0] for step in flat(make(64, seed=2).turns(3))]


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


def test_rounds__have_a_rate_that_falls_evenly_from_alpha_to_min_alpha():
    rotations = make(4, epochs=2, passes_per_epoch=3, alpha=0.1, min_alpha=0.02)
    rates = {
        (number, step.round): step.alpha for number in range(len(rotations)) for step in flat(rotations.turns(number))
    }
    falling = [rates[key] for key in sorted(rates)]
    assert len(falling) == 2 * 3 * 4
    assert [a - b for a, b in itertools.pairwise(falling)] == pytest.approx([0.08 / 24] * 23)
    assert falling[0] == pytest.approx(0.1 - 0.08 / 48)
    assert falling[-1] == pytest.approx(0.02 + 0.08 / 48)
