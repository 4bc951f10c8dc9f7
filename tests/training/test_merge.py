"""Merge rules on small blocks, by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.errors import ParameterError
from daskw2v.training.averaging.deltas import add_deltas, join_deltas
from daskw2v.training.averaging.merge import MERGE_RULES, find_merge_rule

BASE = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32)
ONE = BASE + np.array([[1, 0], [0, 0], [0, 2]], np.float32)
TWO = BASE + np.array([[3, 0], [0, 0], [0, 0]], np.float32)


@pytest.mark.parametrize("name", MERGE_RULES)
@given(st.integers(1, 9))
def test_merge__identical_untrained_replicas_change_nothing(name, n):
    deltas = add_deltas(BASE, *[BASE] * n)
    np.testing.assert_array_equal(find_merge_rule(name).finish(BASE, None, deltas).rows, BASE)


def test_mean__divides_by_all_replicas():
    merged = find_merge_rule("mean").finish(BASE, None, add_deltas(BASE, ONE, TWO))
    np.testing.assert_allclose(merged.rows, (ONE + TWO) / 2)


def test_touched__divides_by_those_that_changed_the_row():
    merged = find_merge_rule("touched").finish(BASE, None, add_deltas(BASE, ONE, TWO))
    np.testing.assert_allclose(merged.rows - BASE, [[2, 0], [0, 0], [0, 2]])


def test_momentum__is_nesterovs():
    deltas = add_deltas(BASE, ONE, TWO)
    mean = deltas.total / 2
    first = find_merge_rule("momentum").finish(BASE, None, deltas)
    np.testing.assert_allclose(first.velocity, mean)
    np.testing.assert_allclose(first.rows, BASE + 1.5 * mean)
    second = find_merge_rule("momentum").finish(BASE, first.velocity, deltas)
    np.testing.assert_allclose(second.velocity, 1.5 * mean)
    np.testing.assert_allclose(second.rows, BASE + mean + 0.75 * mean)


def test_momentum__steady_deltas_add_up_to_n_times_the_mean():
    rows, velocity = BASE, None
    delta = np.full_like(BASE, 0.25)
    for _ in range(60):
        before = rows
        rows, velocity = find_merge_rule("momentum").finish(rows, velocity, add_deltas(rows, *[rows + delta] * 4))
    np.testing.assert_allclose(rows - before, 4 * delta, rtol=1e-3)


def test_deltas__are_not_made_in_place():
    arrays = [a.copy() for a in (BASE, ONE, TWO)]
    for a in arrays:
        a.flags.writeable = False
    part = add_deltas(*arrays)
    part.total.flags.writeable = part.changed.flags.writeable = False
    joined = join_deltas(part, part)
    assert joined.n == 4
    for rule in MERGE_RULES.values():
        rule.finish(arrays[0], None, joined)


def test_deltas__joined_equal_added():
    together = add_deltas(BASE, ONE, TWO, ONE)
    joined = join_deltas(add_deltas(BASE, ONE, TWO), add_deltas(BASE, ONE))
    np.testing.assert_allclose(together.total, joined.total)
    np.testing.assert_array_equal(together.changed, joined.changed)
    assert together.n == joined.n


def test_find_merge_rule__names_what_exists():
    with pytest.raises(ParameterError, match=r"merge='sum' does not exist.*momentum, touched, mean"):
        find_merge_rule("sum")
