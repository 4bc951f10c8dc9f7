"""Merge rules on small blocks: by hand, and against training one text after the other."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from daskw2v.errors import ParameterError
from daskw2v.training.averaging.curvature import Curvature
from daskw2v.training.averaging.merge import (
    MERGE_RULES,
    Delta,
    SummedChanges,
    Training,
    add_changes,
    find_merge_rule,
    merge_block,
    subtract_rows,
)

BASE = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32)
ONE = BASE + np.array([[1, 0], [0, 0], [0, 2]], np.float32)
TWO = BASE + np.array([[3, 0], [0, 0], [0, 0]], np.float32)

# What bfloat16 holds: float32 of a normal range, with 8 significant bits
halves = st.integers(-255, 255).map(lambda i: i / 8)


def training_of(n_rows, columns, rate=1.0, seed=0):
    """Return how rows were trained, along random directions; a row's rate is within a factor of two of `rate`."""
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.normal(size=(columns, columns)))[0].astype(np.float32)
    curvature = Curvature(rng.random(columns).astype(np.float32), vectors)
    return Training(curvature, (rate * (0.5 + rng.random(n_rows))).astype(np.float32))


def deltas_of(base, *trained):
    return [Delta(subtract_rows(base, rows)[0]) for rows in trained]


def dense(delta, rows=None):
    """Return the changes of a slice of the rows, by default of all that have bits."""
    rows = rows or slice(0, len(delta.bits))
    total = np.zeros((rows.stop - rows.start, delta.bits.shape[1]), np.float32)
    delta.add_to(total, rows)
    return total


def merged(rule, base, trained, training):
    return merge_block(rule, base, deltas_of(base, *trained), replace(training, n_replicas=len(trained)))


@pytest.mark.parametrize("name", MERGE_RULES)
@given(st.integers(1, 9))
def test_merge__identical_untrained_replicas_change_nothing(name, n):
    found = merged(find_merge_rule(name), BASE, [BASE] * n, training_of(3, 2))
    np.testing.assert_array_equal(found, BASE)


def test_mean__divides_by_all_replicas():
    np.testing.assert_allclose(merged(find_merge_rule("mean"), BASE, [ONE, TWO], Training()), (ONE + TWO) / 2)


def test_sequential__is_the_sum_where_replicas_hardly_train():
    found = merged(find_merge_rule("sequential"), BASE, [ONE, TWO], training_of(3, 2, 1e-6))
    np.testing.assert_allclose(found, ONE + TWO - BASE, rtol=0.02)


def test_sequential__is_the_last_replica_where_each_trains_to_the_end():
    curvature = Curvature(np.ones(2, np.float32), np.eye(2, dtype=np.float32))
    found = merged(find_merge_rule("sequential"), BASE, [ONE, TWO], Training(curvature, np.full(3, 50, np.float32)))
    np.testing.assert_allclose(found, TWO, rtol=0.01)


@pytest.mark.parametrize("n", [1, 3, 20])
def test_sequential__is_training_one_text_after_the_other(n):
    """Of a quadratic loss, whose gradient is that of the curvature: there the composition is exact."""
    rng, (n_rows, columns) = np.random.default_rng(n), (11, 7)
    training = training_of(n_rows, columns, 0.7)
    values, vectors = (part.astype(np.float64) for part in training.curvature)
    base = rng.normal(size=(n_rows, columns)).astype(np.float32)
    optima = rng.normal(size=(n, n_rows, columns))

    def trained(rows, optimum):
        left = np.exp(-training.rates[:, None].astype(np.float64) * values)
        return optimum + ((rows - optimum) @ vectors * left) @ vectors.T

    expected = base.astype(np.float64)
    for optimum in optima:
        expected = trained(expected, optimum)
    replicas = [trained(base, optimum).astype(np.float32) for optimum in optima]
    found = merged(find_merge_rule("sequential"), base, replicas, training)
    np.testing.assert_allclose(found, expected, atol=0.06)
    assert np.abs(np.mean(replicas, axis=0) - expected).max() > 0.1 or n == 1, "the mean is another"


@pytest.mark.parametrize("rate", [1e-4, 0.01, 1.0, 100.0])
@pytest.mark.parametrize("n_later", [1, 3])
def test_fade__is_that_along_all_eigenvectors(rate, n_later):
    """Directions that are left out fade by less than 1/8 when all replicas are merged."""
    n_replicas, columns = 4, 40
    values = np.geomspace(1e-4, 1, columns, dtype=np.float32)
    training = training_of(9, columns, rate)
    training = replace(training, curvature=training.curvature._replace(values=values), n_replicas=n_replicas)
    changes = np.random.default_rng(1).normal(size=(9, columns)).astype(np.float32)
    vectors = training.curvature.vectors.astype(np.float64)
    kept = np.exp(-n_later * training.rates[:, None].astype(np.float64) * values)
    expected = (changes @ vectors * kept) @ vectors.T
    faded = changes.copy()
    training.fade(faded, n_later)
    allowed = np.linalg.norm(changes, axis=1) * n_later / n_replicas / 8
    assert (np.linalg.norm(faded - expected, axis=1) <= allowed + 1e-5).all()
    assert (faded == changes).all() == (rate < 0.1)


@pytest.mark.parametrize("rule", MERGE_RULES.values(), ids=lambda rule: rule.name)
@pytest.mark.parametrize("n_rows", [7, 60_000])
def test_merge__of_groups_is_the_merge_of_all(rule, n_rows):
    """Of many rows, which are merged part by part, and of a tree of tasks."""
    columns, training = 5, training_of(n_rows, 5)
    base, *trained = (np.random.default_rng(i).normal(size=(n_rows, columns)).astype(np.float32) for i in range(6))
    deltas = deltas_of(base, *trained)
    expected = merge_block(rule, base, deltas, training)
    groups = deltas[:2], deltas[2:4], deltas[4:]
    parts = [add_changes(rule, base.shape, group, training) for group in groups]
    joined = add_changes(rule, base.shape, parts[:2], training)
    assert [part.n for part in (*parts, joined)] == [2, 2, 1, 4]
    np.testing.assert_allclose(merge_block(rule, base, [joined, parts[2]], training), expected, atol=1e-5)
    some = slice(3, 6)
    alone = merge_block(
        rule, base[some], [SummedChanges(dense(delta, some), 1) for delta in deltas], training.slice_rows(some)
    )
    np.testing.assert_allclose(alone, expected[some], atol=1e-5)


@given(arrays(np.float32, (3, 5), elements=halves))
def test_delta__of_few_bits_is_exact(delta):
    base = np.zeros((3, 5), np.float32)
    bits, finite = subtract_rows(base, np.pad(delta, ((0, 0), (0, 3)), constant_values=9))  # padding counts for nothing
    assert finite
    np.testing.assert_array_equal(dense(Delta(bits)), delta)


@given(arrays(np.float32, (2, 4), elements=st.floats(-1e6, 1e6, width=32, allow_subnormal=False)))
def test_delta__is_rounded_to_nearest(trained):
    bits, _ = subtract_rows(np.zeros_like(trained), trained)
    error = np.abs(dense(Delta(bits)).astype(np.float64) - trained)
    assert (error <= np.abs(trained) * 2.0**-8 + 1e-38).all()
    tie = np.array([[1 + 2.0**-8, 1 + 3 * 2.0**-8]], np.float32)  # both ways to the even neighbour
    np.testing.assert_array_equal(dense(*deltas_of(np.zeros_like(tie), tie)), [[1, 1 + 4 * 2.0**-8]])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_delta__reports_rows_that_are_not_finite(value):
    trained = ONE.copy()
    trained[1, 1] = value
    assert subtract_rows(BASE, ONE)[1]
    assert not subtract_rows(BASE, trained)[1]


def test_merge__changes_no_argument():
    training, arguments = training_of(3, 2), [BASE.copy(), *(delta.bits for delta in deltas_of(BASE, ONE, TWO))]
    for argument in arguments:
        argument.flags.writeable = False
    base, *deltas = arguments[0], *map(Delta, arguments[1:])
    for rule in MERGE_RULES.values():
        part = add_changes(rule, base.shape, deltas, training)
        part.total.flags.writeable = False
        joined = add_changes(rule, base.shape, [part, part], training)
        joined.total.flags.writeable = False
        for changes in (deltas, [part, part], [joined]):
            merge_block(rule, base, changes, training)
    expected = [BASE, *(delta.bits for delta in deltas_of(BASE, ONE, TWO))]
    for argument, value in zip(arguments, expected, strict=True):
        np.testing.assert_array_equal(argument, value)


def test_delta__of_changed_rows_is_that_of_all_rows():
    some = np.array([1, 4, 5], np.int32)
    changes = np.random.default_rng(1).normal(size=(3, 2)).astype(np.float32)
    bits = subtract_rows(np.zeros_like(changes), changes)[0]
    whole = np.zeros((7, 2), np.uint16)
    whole[some] = bits
    for rows in (slice(0, 7), slice(1, 5), slice(5, 7), slice(2, 4)):
        np.testing.assert_array_equal(dense(Delta(bits, some), rows), dense(Delta(whole), rows))


def test_changes__are_counted():
    training = training_of(3, 2)
    rule, deltas = find_merge_rule("mean"), deltas_of(BASE, ONE, TWO)
    parts = [add_changes(rule, BASE.shape, deltas, training) for _ in range(2)]
    joined = add_changes(rule, BASE.shape, [*parts, SummedChanges(parts[0].total, 5)], training)
    assert joined.n == 9


def test_find_merge_rule__names_what_exists():
    with pytest.raises(ParameterError, match=r"merge='sum' does not exist.*sequential, mean"):
        find_merge_rule("sum")
    assert find_merge_rule(None).name == "sequential"
