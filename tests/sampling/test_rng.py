"""Counter-based draws: known values, independence of order, and the shape of their distribution."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.kernels.jit import kernel
from daskw2v.kernels.rng import Purpose, below, draw, draws, stream, uniform


@kernel
def compiled_draw(key, counter):
    return draw(key, counter)


@kernel
def compiled_below(bits, n):
    return below(bits, n)


def test_draws__are_splitmix64():
    # the generator's first outputs for seed 0, as published with it
    expected = np.array([0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F], np.uint64)
    np.testing.assert_array_equal(draws(np.uint64(0), np.array([1, 2, 3], np.uint64)), expected)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**62))
def test_draw__compiled_equals_numpy(key, counter):
    numpy = draws(np.uint64(key), np.array([counter], np.uint64))[0]
    assert compiled_draw(np.uint64(key), counter) == numpy


@given(st.integers(0, 2**64 - 1), st.integers(1, 2**31))
def test_below__is_in_range(bits, n):
    assert compiled_below(np.uint64(bits), n) == (bits >> 32) * n >> 32 < n


def test_stream__differs_by_each_part():
    keys = {int(stream(s, p, e)) for s in (0, 1, 2**63 - 1) for p in Purpose for e in range(3)}
    assert len(keys) == 3 * len(Purpose) * 3


def test_uniform__any_cut_gives_the_same_numbers():
    key = stream(3, Purpose.INITIAL)
    whole = uniform(key, np.arange(1000))
    np.testing.assert_array_equal(whole[137:], uniform(key, np.arange(137, 1000)))
    np.testing.assert_array_equal(whole.reshape(10, 100), uniform(key, np.arange(1000).reshape(10, 100)))
    assert whole.dtype == np.float32
    assert 0 <= whole.min() < 0.02
    assert 0.98 < whole.max() < 1
    assert abs(whole.mean() - 0.5) < 0.03
