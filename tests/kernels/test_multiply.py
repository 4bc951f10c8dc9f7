"""The product of two matrices against NumPy's in float64."""

import numpy as np
import pytest

from daskw2v.kernels.multiply import multiply


@pytest.mark.parametrize("shape", [(1, 1, 1), (4, 8, 3), (5, 7, 9), (6, 100, 100), (1000, 37, 12), (0, 3, 2)], ids=str)
def test_multiply__is_numpys_product(shape):
    n, m, k = shape
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(n, m)).astype(np.float32), rng.normal(size=(m, k)).astype(np.float32)
    kept = left.copy()
    actual = multiply(left, right)
    assert (actual.shape, actual.dtype) == ((n, k), np.float32)
    np.testing.assert_allclose(actual, left.astype(np.float64) @ right, atol=1e-4)
    np.testing.assert_array_equal(left, kept)
