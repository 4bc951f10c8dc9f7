"""Adam (Kingma and Ba 2015) as all devices have it."""

from typing import Any

import numpy as np

from daskw2v.kernels.jit import inline

BETA1, BETA2 = np.float32(0.9), np.float32(0.999)  # as Kingma and Ba and Chainer have them
EPSILON = 1e-8


@inline
def step_size(alpha: Any, number: Any) -> Any:
    """Return the learning rate of a column, counted from 0, with the correction of both moments in it."""
    t = number + 1  # a whole number: multiplied out, not by way of the logarithm
    return alpha * np.sqrt(1.0 - np.float64(BETA2) ** t) / (1.0 - np.float64(BETA1) ** t)
