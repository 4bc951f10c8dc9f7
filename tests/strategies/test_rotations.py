"""The schedule of rotation: all partitions meet once a pass, and no row is ever in two hands."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.params import Params
from daskw2v.strategies.rotations import Meeting, Rotations


@given(n=st.integers(1, 70), passes=st.integers(1, 5), epochs=st.integers(1, 4))
def test_rounds__of_a_pass_meet_each_bucket_once_and_no_partition_twice_a_round(n, passes, epochs):
    rotations = Rotations(Params(epochs=epochs), 1000, n, passes)
    for number in range(len(rotations)):
        rounds = [meetings for _, meetings in rotations.rounds(number)]
        for meetings in rounds:
            assert sorted(m.contexts for m in meetings) == sorted(m.centers for m in meetings) == [*range(n)]
        met = [*itertools.chain(*rounds)]
        assert len(met) == len({*met}) == n * n


@given(length=st.integers(0, 5000), passes=st.integers(1, 7), epochs=st.integers(1, 4))
def test_passes__of_an_epoch_cover_the_corpus_once(length, passes, epochs):
    rotations = Rotations(Params(epochs=epochs), length, 3, passes)
    assert len(rotations) == epochs * passes
    for epoch, group in itertools.groupby(rotations, lambda p: p.epoch):
        own = [*group]
        assert [p.number for p in own] == [*range(epoch * passes, (epoch + 1) * passes)]
        assert (own[0].start, own[-1].stop) == (0, length)
        assert all(a.stop == b.start for a, b in itertools.pairwise(own))
    with pytest.raises(IndexError):
        rotations[epochs * passes]


def test_rounds__have_a_rate_that_falls_evenly_from_alpha_to_min_alpha():
    params = Params(epochs=2, alpha=0.1, min_alpha=0.02)
    rotations = Rotations(params, 1000, 4, 3)
    rates = [rate for number in range(len(rotations)) for rate, _ in rotations.rounds(number)]
    assert len(rates) == 2 * 3 * 4
    steps = [a - b for a, b in itertools.pairwise(rates)]
    assert steps == pytest.approx([0.08 / 24] * 23)
    assert rates[0] == pytest.approx(0.1 - 0.08 / 48)
    assert rates[-1] == pytest.approx(0.02 + 0.08 / 48)


def test_rounds__give_each_output_partition_on_to_the_input_partition_before():
    """So that it travels to one neighbour a round."""
    rounds = [meetings for _, meetings in Rotations(Params(epochs=1), 10, 4, 1).rounds(0)]
    assert rounds[0] == [Meeting(0, 0), Meeting(1, 1), Meeting(2, 2), Meeting(3, 3)]
    for before, after in itertools.pairwise(rounds):
        holder = {m.centers: m.contexts for m in before}
        assert all(m.contexts == (holder[m.centers] - 1) % 4 for m in after)
