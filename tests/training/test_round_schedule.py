"""The averaging schedule: every position once an epoch, even shares, a learning rate that only falls."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.config.params import Params
from daskw2v.objectives.registry import OBJECTIVES, start_alpha
from daskw2v.training.averaging.round_schedule import AveragingRounds, ReplicaWork, level_ends, max_steps, round_sizes

params = st.builds(
    Params,
    objective=st.sampled_from(sorted(OBJECTIVES)),
    alpha=st.none() | st.floats(1e-3, 1),
    epochs=st.integers(1, 4),
    n_replicas=st.integers(1, 9),
    rounds_per_epoch=st.none() | st.integers(1, 7),
    merges_per_round=st.none() | st.integers(1, 20),
    frequent_rows=st.integers(1, 1000),
)


@given(params, st.integers(1, 500))
def test_rounds__cover_all_progress_once_in_order(params, length):
    rounds = AveragingRounds(params, length, 50)
    assert [r.number for r in rounds] == list(range(len(rounds)))
    at = 0
    for this in rounds:
        assert this.start == at < this.stop
        for step in this.steps:
            for work in step.works:
                assert work.start == at
                at = work.stop
            assert at == step.stop
        assert at == this.stop
    assert at == params.epochs * length


@given(params, st.integers(1, 500))
def test_rounds__share_evenly_and_the_rate_falls(params, length):
    last = start_alpha(params)
    for step in (step for this in AveragingRounds(params, length, 50) for step in this.steps):
        sizes = [w.stop - w.start for w in step.works]
        assert max(sizes) - min(sizes) <= 1
        assert len({(w.alpha_start, w.alpha_stop) for w in step.works}) == 1
        assert last == pytest.approx(step.works[0].alpha_start)
        last = step.works[0].alpha_stop
        assert last < step.works[0].alpha_start
    assert last == pytest.approx(params.min_alpha)


def test_steps__are_the_shorter_the_earlier():
    """Before rows have grown, a merge is a sum of what all replicas changed."""
    rounds = AveragingRounds(Params(n_replicas=8, epochs=1), 10**6, 200_000)
    stops = [step.stop for this in rounds for step in this.steps]
    assert stops == [math.ceil(10**6 * (i / 128) ** 2) for i in range(1, 129)]
    assert [len(this.steps) for this in rounds] == [16] * 8
    alone = AveragingRounds(Params(n_replicas=1, epochs=3), 10**6, 200_000)[0]
    assert len({step.stop - step.works[0].start for step in alone.steps}) == 1


def test_rounds__end_with_epochs():
    rounds = AveragingRounds(Params(n_replicas=8, epochs=3), 10**6, 200_000)
    assert {10**6, 2 * 10**6, 3 * 10**6} <= {this.stop for this in rounds}
    assert max(len(this.steps) for this in rounds) == 16
    assert sum(len(this.steps) for this in rounds) == pytest.approx(3 * 64, abs=3)


def test_rounds__are_as_many_an_epoch_as_asked_for():
    params = Params(n_replicas=8, epochs=3, rounds_per_epoch=2)
    rounds = AveragingRounds(params, 10**6, 200_000)
    assert [this.stop for this in rounds] == [500_000 * i for i in range(1, 7)]
    steps = [len(this.steps) for this in rounds]
    assert steps == sorted(steps, reverse=True)
    assert max_steps(params, 10**6, 200_000) == steps[0]
    once = AveragingRounds(params.replace(merges_per_round=1), 10**6, 200_000)
    assert [len(this.steps) for this in once] == [1] * 6


def test_rounds__of_long_text():
    rounds = AveragingRounds(Params(n_replicas=1024), 10**12, 10**6)
    assert 5 * 64 // 16 <= len(rounds) < 5 * 64 // 16 + 5
    assert rounds[len(rounds) - 1].n_replicas == 1024
    assert rounds[len(rounds) - 1].stop == 5 * 10**12
    assert [r.number for r in (rounds[2], rounds[3])] == [2, 3]
    with pytest.raises(IndexError):
        rounds[len(rounds)]


def test_rate__is_the_sum_over_positions():
    params = Params(n_replicas=2, epochs=2, alpha=0.05, min_alpha=0.01)
    rounds = AveragingRounds(params, 1000, 50)
    rates = [0.05 + (0.01 - 0.05) * (position + 0.5) / 2000 for position in range(300, 900)]
    assert rounds.sum_rates(300, 900) == pytest.approx(sum(rates))


def test_steps__merge_rows_as_often_as_they_are_frequent():
    rounds = AveragingRounds(Params(n_replicas=2, epochs=1, merges_per_round=9), 10**6, 10**6)
    assert [step.level for step in rounds[1].steps[:8]] == [0, 0, 0, 1, 0, 0, 0, 1]
    assert rounds[1].steps[-1].level is None
    assert level_ends(Params(strategy="averaging"), 10**6) == [16384, 65536, 262144, 1048576]


@given(params, st.integers(1, 500), st.integers(1, 5000))
def test_steps__have_levels_that_exist(params, length, n_words):
    """Also of few words, which are one level."""
    ends = level_ends(params, n_words)
    for this in AveragingRounds(params, length, n_words):
        assert all(step.level < len(ends) for step in this.steps[:-1])


@pytest.mark.parametrize(
    ("changes", "length", "n_words", "sizes"),
    [
        ({}, 50_000_000, 133_000, (2, 16)),  # 32 merges an epoch
        ({}, 50_000_000, 71_000, (4, 8)),  # rows of all that was given are held until the round ends
        ({}, 50_000_000, 10_000, (32, 1)),
        ({}, 10**11, 133_000, (47, 16)),  # 2**30 positions of a replica a round
        ({"rounds_per_epoch": 4}, 50_000_000, 133_000, (4, 8)),
        ({"merges_per_round": 3}, 50_000_000, 133_000, (11, 3)),
        ({"merges_per_round": 3, "rounds_per_epoch": 5}, 50_000_000, 133_000, (5, 3)),
        ({"n_replicas": 8}, 50_000_000, 133_000, (4, 16)),
        ({"n_replicas": 8, "epochs": 1}, 50_000_000, 133_000, (8, 16)),
        ({"n_replicas": 64}, 50_000_000, 133_000, (4, 16)),
        ({"n_replicas": 1}, 50_000_000, 133_000, (1, 8)),
        ({"n_replicas": 1}, 10**9, 133_000, (8, 8)),  # 2**27 positions a round, at most
        ({"n_replicas": 1, "rounds_per_epoch": 4}, 50_000_000, 133_000, (4, 5)),  # 2**21 positions a step, at least
        ({"n_replicas": 1}, 1000, 133_000, (1, 1)),
    ],
    ids=str,
)
def test_round_sizes__are_chosen_where_they_are_left_open(changes, length, n_words, sizes):
    assert round_sizes(Params(**{"n_replicas": 2, **changes}), length, n_words, 1 << 21) == sizes


@pytest.mark.parametrize(
    ("objective", "epochs", "length", "merges"),
    [
        ("sgns", 5, 50 << 20, 64),
        ("cbow_ns", 5, 1 << 20, 64),
        ("cbow_ns", 5, 17 << 20, 68),
        ("cbow_ns", 5, 50 << 20, 200),
        ("cbow_ns", 5, 1 << 30, 256),
        ("cbow_ns", 1, 50 << 20, 128),
    ],
)
def test_merges__are_more_in_longer_text_where_the_objective_needs_it(objective, epochs, length, merges):
    params = Params(objective=objective, epochs=epochs, n_replicas=64, frequent_rows=1000)
    rounds, steps = round_sizes(params, length, 1_000_000)
    assert merges <= rounds * steps < merges + steps
    few = round_sizes(params.replace(n_replicas=2), length, 1_000_000)
    assert few.rounds * few.steps == 32


def test_rounds__one_replica_keeps_its_tables_from_step_to_step():
    rounds = AveragingRounds(Params(n_replicas=1, epochs=2), 1000, 10, 300)
    assert [[step.stop for step in this.steps] for this in rounds] == [[333, 666, 1000], [1333, 1666, 2000]]
    assert {step.level for this in rounds for step in this.steps[:-1]} == {0}


@given(st.integers(0, 100), st.integers(1, 100), st.integers(1, 30))
def test_work__pieces_end_with_epochs_and_keep_the_rate(start, n, length):
    work = ReplicaWork(0, start, start + n, 0.05, 0.01)
    at = start
    for epoch, a, b, rate in work.split_by_epoch(length):
        assert 0 <= a < b <= length
        assert epoch * length + a == at
        expected = 0.05 + (0.01 - 0.05) * (at - start) / n
        assert rate.alpha + rate.slope * (a - rate.origin) == pytest.approx(expected)
        at = epoch * length + b
    assert at == start + n
