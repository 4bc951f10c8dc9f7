"""Stochastic rounding to bfloat16, compared with float64 arithmetic."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.kernels.bfloat16 import from_bfloat16, reference, to_bfloat16
from daskw2v.kernels.rng import Purpose, stream

KEY = stream(1, Purpose.ROUNDING)
LEAST = 2.0**-126  # of normal numbers
numbers = st.floats(-(2.0**126), 2.0**126, width=32).filter(lambda x: x == 0 or abs(x) >= LEAST)


@given(st.lists(numbers, max_size=9), st.integers(0, 2**64 - 1))
def test_to_bfloat16__rounds_as_the_reference_does(values, key):
    values, key = np.array(values, np.float32), np.uint64(key)
    np.testing.assert_array_equal(from_bfloat16(to_bfloat16(values, key)), reference(values, key))


def test_to_bfloat16__keeps_shape_and_what_needs_no_rounding():
    exact = np.array([[0.0, 1.0, -2.5], [0.0078125, -240.0, 2.0**-130]], np.float32)
    rounded = to_bfloat16(exact, KEY)
    assert (rounded.dtype, rounded.shape) == (np.uint16, exact.shape)
    np.testing.assert_array_equal(from_bfloat16(rounded), exact)
    np.testing.assert_array_equal(to_bfloat16(from_bfloat16(rounded), KEY), rounded)


def test_to_bfloat16__takes_either_neighbour_and_keeps_the_mean():
    """Each of many equal values is rounded to one of its two neighbours, an eighth of the way from the lower one."""
    unit = 2.0**-7
    values = np.full(1 << 16, 1 + unit / 8, np.float32)
    rounded = from_bfloat16(to_bfloat16(values, KEY))
    assert set(rounded.tolist()) == {1.0, 1 + unit}
    assert abs((rounded.mean(dtype=np.float64) - values[0]) / unit) < 0.0065, "five standard deviations"
