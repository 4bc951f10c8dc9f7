"""Merge rules on small blocks, by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from daskw2v.errors import ParameterError
from daskw2v.training.averaging.deltas import Delta, add_deltas, delta_of, join_deltas
from daskw2v.training.averaging.merge import MERGE_RULES, MergedBlock, find_merge_rule, merge_block

BASE = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32)
ONE = BASE + np.array([[1, 0], [0, 0], [0, 2]], np.float32)
TWO = BASE + np.array([[3, 0], [0, 0], [0, 0]], np.float32)

# What bfloat16 holds: float32 of a normal range, with 8 significant bits
halves = st.integers(-255, 255).map(lambda i: i / 8)


def deltas_of(base, *trained):
    return add_deltas(len(base), *(Delta(delta_of(base, rows)[0]) for rows in trained))


@pytest.mark.parametrize("name", MERGE_RULES)
@given(st.integers(1, 9))
def test_merge__identical_untrained_replicas_change_nothing(name, n):
    deltas = deltas_of(BASE, *[BASE] * n)
    np.testing.assert_array_equal(find_merge_rule(name).finish(BASE, None, deltas).rows, BASE)


def test_mean__divides_by_all_replicas():
    merged = find_merge_rule("mean").finish(BASE, None, deltas_of(BASE, ONE, TWO))
    np.testing.assert_allclose(merged.rows, (ONE + TWO) / 2)


def test_touched__divides_by_those_that_changed_the_row():
    merged = find_merge_rule("touched").finish(BASE, None, deltas_of(BASE, ONE, TWO))
    np.testing.assert_allclose(merged.rows - BASE, [[2, 0], [0, 0], [0, 2]])


def test_momentum__is_nesterovs():
    deltas = deltas_of(BASE, ONE, TWO)
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
        rows, velocity = find_merge_rule("momentum").finish(rows, velocity, deltas_of(rows, *[rows + delta] * 4))
    np.testing.assert_allclose(rows - before, 4 * delta, rtol=1e-3)


@pytest.mark.parametrize("rule", MERGE_RULES.values(), ids=lambda rule: rule.name)
@pytest.mark.parametrize("n", [7, 60_000])
def test_merge_block__is_the_rule_on_all_rows(rule, n):
    """Many rows are merged part by part."""
    base, one, two = (np.random.default_rng(i).normal(size=(n, 5)).astype(np.float32) for i in range(3))
    deltas = [Delta(delta_of(base, rows)[0]) for rows in (one, two)]

    def some_of(rows):
        return add_deltas(rows.stop - rows.start, *(delta.within(rows) for delta in deltas))

    merged, into = MergedBlock(base, None), None
    expected = rule.finish(base, None, add_deltas(n, *deltas))
    for _ in range(3):
        merged = into = merge_block(rule, merged, some_of, into)  # in place after the first time
        np.testing.assert_array_equal(merged.rows, expected.rows)
        assert (merged.velocity is None) == (expected.velocity is None)
        expected = rule.finish(*expected, add_deltas(n, *deltas))


@given(arrays(np.float32, (3, 5), elements=halves))
def test_delta__of_few_bits_is_exact(delta):
    base = np.zeros((3, 5), np.float32)
    found, finite = delta_of(base, np.pad(delta, ((0, 0), (0, 3)), constant_values=9))  # padding counts for nothing
    assert finite
    deltas = add_deltas(3, Delta(found))
    np.testing.assert_array_equal(deltas.total, delta)
    np.testing.assert_array_equal(deltas.changed[:, 0], (delta != 0).any(1))


@given(arrays(np.float32, (2, 4), elements=st.floats(-1e6, 1e6, width=32, allow_subnormal=False)))
def test_delta__is_rounded_to_nearest(trained):
    found, _ = delta_of(np.zeros_like(trained), trained)
    error = np.abs(add_deltas(2, Delta(found)).total.astype(np.float64) - trained)
    assert (error <= np.abs(trained) * 2.0**-8 + 1e-38).all()
    tie = np.array([[1 + 2.0**-8, 1 + 3 * 2.0**-8]], np.float32)  # both ways to the even neighbour
    np.testing.assert_array_equal(deltas_of(np.zeros_like(tie), tie).total, [[1, 1 + 4 * 2.0**-8]])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_delta__tells_of_rows_that_are_not_finite(value):
    trained = ONE.copy()
    trained[1, 1] = value
    assert delta_of(BASE, ONE)[1]
    assert not delta_of(BASE, trained)[1]


def test_deltas__are_not_made_in_place():
    given = [BASE.copy(), delta_of(BASE, ONE)[0], delta_of(BASE, TWO)[0]]
    for a in given:
        a.flags.writeable = False
    part = add_deltas(3, *map(Delta, given[1:]))
    part.total.flags.writeable = part.changed.flags.writeable = False
    joined = join_deltas(part, part)
    assert joined.n == 4
    for rule in MERGE_RULES.values():
        rule.finish(given[0], None, joined)


def test_deltas__of_some_rows_are_those_of_all_where_others_did_not_change():
    some = np.array([1, 4, 5], np.int32)
    changes = np.random.default_rng(1).normal(size=(3, 2)).astype(np.float32)
    bits = delta_of(np.zeros_like(changes), changes)[0]
    dense = np.zeros((7, 2), np.uint16)
    dense[some] = bits
    for rows in (slice(0, 7), slice(1, 5), slice(5, 7), slice(2, 4)):
        length = rows.stop - rows.start
        found = add_deltas(length, Delta(bits, some).within(rows), Delta(dense).within(rows))
        expected = add_deltas(length, *[Delta(dense[rows])] * 2)
        np.testing.assert_array_equal(found.total, expected.total)
        np.testing.assert_array_equal(found.changed, expected.changed)


def test_deltas__joined_equal_added():
    together = deltas_of(BASE, ONE, TWO, ONE)
    joined = join_deltas(deltas_of(BASE, ONE, TWO), deltas_of(BASE, ONE))
    np.testing.assert_allclose(together.total, joined.total)
    np.testing.assert_array_equal(together.changed, joined.changed)
    assert together.n == joined.n


def test_find_merge_rule__names_what_exists():
    with pytest.raises(ParameterError, match=r"merge='sum' does not exist.*momentum, touched, mean"):
        find_merge_rule("sum")
