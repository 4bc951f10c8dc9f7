"""Lengths of vectors."""

import numpy as np
import pytest

from daskw2v.models.stored.units import lengths


@pytest.mark.parametrize("n", [0, 1, 256, 257, 700])
def test_lengths__are_those_of_float64_whatever_the_number_of_rows(n):
    vectors = np.random.default_rng(n).standard_normal((n, 5), np.float32)
    vectors[::3] *= np.float32(1e30)  # squares exceed float32
    vectors[1::7] = 0
    expected = np.linalg.norm(vectors.astype(np.float64), axis=1)
    expected[expected == 0] = 1
    found = lengths(vectors)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-7)
