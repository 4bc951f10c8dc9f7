"""SGNS in float64 NumPy."""

import numpy as np
import numpy.typing as npt

from daskw2v.objectives.base import Rate
from daskw2v.objectives.hidden import BATCH
from daskw2v.objectives.negatives import Prepared, negatives_of, tile_of
from daskw2v.objectives.reference import Matrix, picked, targets_of, train_hidden, train_targets, windows_in
from daskw2v.objectives.windows import windows_of
from daskw2v.sampling.hierarchy import WORD
from daskw2v.sampling.rng import GOLDEN, draws, mix
from daskw2v.sampling.segments import Segment


def train(
    segment: Segment, first: int, last: int, source: Matrix, output: Matrix, rate: Rate, epoch: int, prepared: Prepared
) -> tuple[int, float]:
    """Train as the kernel does; `source` and `output` are (V, D) float64."""
    params = prepared.params
    key, size = negatives_of(prepared, epoch).key, len(tile_of(params))
    pairs, loss = 0, 0.0
    for window in windows_in(segment, first, last, windows_of(params, rate, epoch)):
        pairs += len(window.contexts)
        if params.negative_sharing == "shared":
            targets, signs = targets_of(prepared.noise, key, window, params.negative)
            loss += train_targets(source, window.contexts, output, targets, signs, window.alpha, size)
            continue
        for pair, context in enumerate(window.contexts):
            targets, signs = targets_of(prepared.noise, key, window, params.negative, pair)
            loss += train_targets(source, [context], output, targets, signs, window.alpha, size)
    return pairs, loss


def train_bucket(
    contexts: npt.NDArray[np.int32],
    centers: npt.NDArray[np.int32],
    source: Matrix,
    output: Matrix,
    alpha: float,
    negative: int,
    words: npt.NDArray[np.uint64],
    key: np.uint64,
    positive: bool = True,
) -> tuple[int, float]:
    """Train the pairs of a bucket as `buckets.train_bucket` does; `source` and `output` are (rows, D) float64."""
    apart, loss = -(-len(contexts) // BATCH), 0.0
    numbers = np.arange(1, negative + 1, dtype=np.uint64)
    for i in range(apart):
        state = draws(key, np.array([i], np.uint64))
        drawn = picked(words, mix.py_func(state + WORD + numbers * GOLDEN))
        own = centers[i::apart].tolist()
        signs = np.where(drawn == np.array(own)[:, None], 0.0, -1.0)
        vectors = [[context] for context in contexts[i::apart].tolist()]
        loss += train_hidden(source, vectors, output, drawn, signs, own if positive else [], alpha, True)
    return len(contexts), loss
