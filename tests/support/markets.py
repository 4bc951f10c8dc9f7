"""Words of which some have a market."""

from typing import Any

import numpy as np

from daskw2v.config.params import Params
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.types import Int64Array


def prepare(params: Params, counts: Int64Array, rng: np.random.Generator, markets: int = 3) -> Any:
    """Return what kernels read; where they ask for markets, each word is in one of so many, or in none."""
    objective = OBJECTIVES[params.objective.name]
    prepared = objective.prepare(params, counts)
    if not params.flat().get("market_negative"):
        return prepared
    assert objective.with_markets is not None
    return objective.with_markets(prepared, counts, rng.integers(-1, markets, len(counts)).astype(np.int32))
