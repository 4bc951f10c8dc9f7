"""Draws that several tests of tables count."""

import numpy as np
import pytest

from daskw2v.kernels.alias import pick
from daskw2v.kernels.jit import kernel
from daskw2v.kernels.rng import draw


@kernel
def _pick_many(table, key, n):
    seen = np.zeros(len(table), np.int64)
    for i in range(n):
        seen[pick(table, draw(key, i))] += 1
    return seen


@pytest.fixture
def pick_many():
    """Count how often each outcome of an alias table is picked by n draws of a stream."""
    return _pick_many
