"""The gradient of a target, on an NVIDIA GPU."""

import math
from typing import Any

import numpy as np
from numba import float32

from daskw2v.kernels.cuda.warp import device

_NONE, _ONE, _BOUND = np.float32(0.0), np.float32(1.0), np.float32(30.0)


@device
def gradient(dot: Any, sign: Any, alpha: Any) -> Any:
    """Return how far both rows of a dot product move along each other, and -log p: nothing where the sign is 0."""
    odds = float32(math.exp(-min(max(sign * dot, -_BOUND), _BOUND)))
    loss = float32(math.log(_ONE + odds)) if sign != _NONE else _NONE
    return alpha * sign * odds / (_ONE + odds), loss
