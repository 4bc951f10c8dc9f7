"""The alias table: exact weights, checked draws, refused input."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from daskw2v.errors import ParameterError
from daskw2v.kernels.alias import alias_table, alias_tables
from daskw2v.kernels.rng import Purpose, stream
from tests.support.alias import shares_of


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60).filter(lambda w: sum(w) > 1e-3))
def test_alias_table__stands_for_the_weights(weights):
    weights = np.array(weights)
    np.testing.assert_allclose(shares_of(alias_table(weights)), weights / weights.sum(), atol=1e-8)


def test_pick__follows_the_weights(pick_many):
    weights = np.arange(1, 200.0) ** -1.0
    n = 2_000_000
    seen = pick_many(alias_table(weights), stream(1, Purpose.NEGATIVE), n)
    assert chisquare(seen, n * weights / weights.sum()).pvalue > 1e-4


def test_alias_tables__are_one_behind_the_other_and_name_their_own_slots():
    weights, bounds, first = np.arange(1.0, 13.0), np.array([0, 5, 6, 12]), 7
    tables = alias_tables(weights, bounds, first)
    for start, stop in pairwise(bounds.tolist()):
        own = tables[start:stop] - np.uint64(first + start)
        np.testing.assert_array_equal(own, alias_table(weights[start:stop]))


@pytest.mark.parametrize("weights", [[], [0.0, 0.0], [1.0, -1.0], [np.nan, 1.0], [np.inf]])
def test_alias_table__refuses_what_is_no_distribution(weights):
    with pytest.raises(ParameterError, match="no distribution"):
        alias_table(np.array(weights, float))
