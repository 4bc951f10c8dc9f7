"""The averaging schedule: every position once an epoch, even shares, a learning rate that only falls."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.config.params import Params
from daskw2v.objectives.registry import OBJECTIVES, start_alpha
from daskw2v.training.averaging.round_schedule import AveragingRounds, ReplicaWork

params = st.builds(
    Params,
    objective=st.sampled_from(sorted(OBJECTIVES)),
    alpha=st.none() | st.floats(1e-3, 1),
    epochs=st.integers(1, 4),
    n_replicas=st.integers(1, 9),
    rounds_per_epoch=st.none() | st.integers(1, 7),
    merges_per_round=st.integers(1, 5),
    warmup=st.none() | st.floats(0, 1),
)


@given(params, st.integers(1, 500))
def test_rounds__cover_all_progress_once_in_order(params, length):
    rounds = AveragingRounds(params, length)
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
    for step in (step for this in AveragingRounds(params, length) for step in this.steps):
        sizes = [w.stop - w.start for w in step.works]
        assert max(sizes) - min(sizes) <= 1
        assert len({(w.alpha_start, w.alpha_stop) for w in step.works}) == 1
        assert last == pytest.approx(step.works[0].alpha_start)
        last = step.works[0].alpha_stop
        assert last < step.works[0].alpha_start
    assert last == pytest.approx(params.min_alpha)


def test_rounds__warm_up_is_one_replicas():
    rounds = AveragingRounds(Params(n_replicas=8, epochs=1), 100_000)
    warm = [r for r in rounds if r.n_replicas == 1]
    assert warm[-1].stop == 10_000
    assert all((r.n_replicas, len(r.steps)) == (8, 4) for r in rounds[len(warm) :])
    assert len(warm) == 2  # a tenth of 16
    assert len(rounds) - len(warm) == 16
    assert AveragingRounds(Params(n_replicas=1, epochs=1), 1000)[0].stop == 125


def test_rounds__are_made_one_by_one():
    rounds = AveragingRounds(Params(n_replicas=1024), 10**12)
    assert len(rounds) == 5 * 2 * 1024 * 11 // 10
    assert rounds[len(rounds) - 1].n_replicas == 1024
    assert rounds[len(rounds) - 1].stop == 5 * 10**12
    assert [r.number for r in rounds[2:4]] == [2, 3]
    with pytest.raises(IndexError):
        rounds[len(rounds)]


def test_rounds__all_of_the_work_may_be_warm_up():
    rounds = AveragingRounds(Params(n_replicas=4, epochs=1, warmup=1.0), 1000)
    assert {r.n_replicas for r in rounds} == {1}
    assert rounds[len(rounds) - 1].stop == 1000
    assert len(rounds) == 8


@given(st.integers(0, 100), st.integers(1, 100), st.integers(1, 30))
def test_work__pieces_end_with_epochs_and_keep_the_rate(start, n, length):
    work = ReplicaWork(0, start, start + n, 0.05, 0.01)
    at = start
    for epoch, a, b, rate in work.pieces(length):
        assert 0 <= a < b <= length
        assert epoch * length + a == at
        expected = 0.05 + (0.01 - 0.05) * (at - start) / n
        assert rate.alpha + rate.slope * (a - rate.origin) == pytest.approx(expected)
        at = epoch * length + b
    assert at == start + n
