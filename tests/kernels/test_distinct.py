import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.kernels.distinct import distinct


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64, np.uint64])
@given(st.data())
def test_distinct__is_unique(dtype, data):
    limits = np.iinfo(dtype)
    values = np.array(data.draw(st.lists(st.integers(limits.min, limits.max) | st.integers(0, 3))), dtype)
    actual = distinct(values)
    assert actual.dtype == dtype
    np.testing.assert_array_equal(actual, np.unique(values))
