"""Rows before training."""

import numpy as np
import pytest

from daskw2v.config.params import Params
from daskw2v.kernels.rng import Purpose, stream, uniform
from daskw2v.objectives.base import initial_rows


@pytest.mark.parametrize("width", [1, 7, 16, 100])
@pytest.mark.parametrize("rows", [np.arange(300), np.arange(5, 5000, 17, dtype=np.int32), np.array([2**31, 0, 9])])
def test_initial_rows__are_draws_by_row_and_column(rows, width):
    params = Params(vector_size=width, seed=3)
    draws = uniform(stream(3, Purpose.INITIAL), rows.astype(np.int64)[:, None] * width + np.arange(width))
    result = initial_rows(params, "input", rows)
    np.testing.assert_array_equal(result, (draws - np.float32(0.5)) * np.float32(8 / width))
    assert (result.dtype, result.shape) == (np.float32, (len(rows), width))


def test_initial_rows__of_outputs_are_zero():
    assert not initial_rows(Params(vector_size=512), "output", np.arange(2048)).any()
