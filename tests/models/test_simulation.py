"""Processes that change what is served, in every order and with every fault: the simulator finds nothing wrong."""

import pytest

from tests.support.choices import Choices, shrink
from tests.support.protocol_mutations import MUTATIONS, mutated
from tests.support.simulation import Violated, simulate, violation

BATCH = 2_000  # schedules of a slow test


def first_violation(seeds):
    """Return the first schedule of some seeds that violates an invariant, or None."""
    for seed in seeds:
        choices = Choices(seed=seed)
        try:
            simulate(choices)
        except Violated:
            return choices.taken
    return None


def check(seeds):
    if (numbers := first_violation(seeds)) is not None:
        small = shrink(numbers, lambda shorter: violation(shorter) is not None)
        pytest.fail(f"{violation(small)}: Choices({small})")


def test_schedules__violate_no_invariant():
    check(range(150))


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(4))
def test_many_schedules__violate_no_invariant(batch):
    check(range(1000 + batch * BATCH, 1000 + (batch + 1) * BATCH))


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS)
def test_protocol__with_a_part_left_out_is_found(mutation):
    with mutated(mutation):
        assert first_violation(range(10_000)) is not None


def test_schedule__is_repeated_by_its_numbers():
    choices = Choices(seed=7)
    first = simulate(choices)
    again = simulate(Choices(choices.taken))
    assert [made for _, _, made in again.states] == [made for _, _, made in first.states]
    assert again.files == first.files


def test_shrink__keeps_a_violation():
    with mutated("guards are not checked"):
        numbers = first_violation(range(1000))
        small = shrink(numbers, lambda shorter: violation(shorter) is not None)
        assert len(small) < len(numbers)
        assert isinstance(violation(small), Violated)
    assert violation(small) is None
