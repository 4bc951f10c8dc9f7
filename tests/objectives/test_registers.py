"""The steps of word vector training in registers."""

import pytest

from daskw2v.objectives.cpu import steps


@pytest.mark.parametrize(
    ("registers", "targets", "expected"),
    [(32, 6, 4), (32, 7, 2), (32, 8, 2), (16, 5, 2), (16, 6, 2), (16, 7, 1), (16, 8, 1)],
)
def test_contexts_at_once__is_the_number_whose_sums_fit_the_registers(monkeypatch, registers, targets, expected):
    monkeypatch.setattr(steps, "REGISTERS", registers)
    assert steps.contexts_at_once(4, targets) == expected
    assert [steps.contexts_at_once(n, targets) for n in (1, 2)] == [1, min(2, expected)]
