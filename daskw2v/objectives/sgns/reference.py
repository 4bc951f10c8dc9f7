"""SGNS in float64 NumPy."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from daskw2v.objectives.base import Rate
from daskw2v.objectives.hidden import BATCH
from daskw2v.objectives.negatives import Prepared, negatives_of, tile_of
from daskw2v.objectives.reference import Matrix, picked, targets_of, train_hidden, train_targets, windows_in
from daskw2v.objectives.sgns.buckets import NOISE, SLICE, Items
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
    pairs: Items,
    noise: Items,
    source: Matrix,
    output: Matrix,
    alpha: float,
    negative: int,
    each: int,
    words: npt.NDArray[np.uint64],
    key: np.uint64,
    train_batch: Callable[..., float] = train_hidden,
) -> tuple[int, float]:
    """Train a bucket as `buckets.train_bucket` does; `source` and `output` are (rows, D) float64.

    `train_batch` has the arguments of `train_hidden`: targets are the shared ones, then one for each context.
    """
    batches = [-(-len(contexts) // BATCH) for contexts, _ in (pairs, noise)]
    n, loss = -(-max(batches) // SLICE), 0.0
    kinds = (pairs, key, negative, 0), (noise, key ^ NOISE, max(each - 1, 0), BATCH)
    for i in range(n):
        for apart, (items, stream, n_shared, n_own) in zip(batches, kinds, strict=True):
            for first in range(i * apart // n, (i + 1) * apart // n):
                contexts, centers = (rows[first::apart] for rows in items)
                numbers = np.arange(1, n_shared + n_own + 1, dtype=np.uint64)
                state = draws(stream, np.array([first], np.uint64))
                drawn = picked(words, mix.py_func(state + WORD + numbers * GOLDEN))
                own = drawn[n_shared:][: len(centers)] if n_own else centers
                kind = np.where(own == centers, 0.0, -1.0) if n_own else np.ones(len(centers))
                signs = np.where(drawn[:n_shared] == centers[:, None], 0.0, -1.0)
                loss += train_batch(
                    source, contexts[:, None].tolist(), output, np.concatenate([drawn[:n_shared], own]),
                    np.hstack([signs, np.diag(kind)]), [], alpha, True,
                )  # fmt: skip
    return len(pairs[0]), loss
