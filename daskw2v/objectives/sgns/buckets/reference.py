"""SGNS over a bucket in float64 NumPy."""

from collections.abc import Callable

import numpy as np

from daskw2v.kernels.rng import GOLDEN, draws, mix
from daskw2v.objectives.noise import BATCH
from daskw2v.objectives.reference import picked, train_hidden
from daskw2v.objectives.sgns.buckets.cpu import NOISE, SLICE, RowPairs
from daskw2v.sampling.hierarchy import WORD
from daskw2v.types import Float64Array, UInt64Array


def train_bucket(
    pairs: RowPairs,
    noise: RowPairs,
    source: Float64Array,
    output: Float64Array,
    alpha: float,
    negative: int,
    each: int,
    words: UInt64Array,
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
