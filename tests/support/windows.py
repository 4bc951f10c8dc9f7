"""Windows of a text, counted without training it."""

import numpy as np
import numpy.typing as npt

from daskw2v.config.params import Params
from daskw2v.kernels.rng import Purpose, below, draws, stream
from daskw2v.sampling.segments import Segment


def reaches(segment: Segment, params: Params) -> npt.NDArray[np.int64]:
    """Return how wide the window of each token of a segment is in the first epoch, shape (n,) int64."""
    reach = np.full(len(segment.tokens), params.window)
    if params.shrink_windows:
        bits = draws(stream(params.seed, Purpose.WINDOW), segment.positions.astype(np.uint64))
        reach -= below.py_func(bits, params.window).astype(np.int64)
    return reach


def count_contexts(segment: Segment, params: Params) -> npt.NDArray[np.int64]:
    """Return how many contexts each token of a segment has in the first epoch, shape (n,) int64."""
    place, lengths, reach = np.arange(len(segment.tokens)), np.diff(segment.bounds), reaches(segment, params)
    before = place - np.repeat(segment.bounds[:-1], lengths)
    after = np.repeat(segment.bounds[1:], lengths) - 1 - place
    return np.minimum(before, reach) + np.minimum(after, reach)
