"""SGNS over a bucket in float64 NumPy."""

from collections.abc import Callable

import numpy as np

from daskw2v.kernels.rng import GOLDEN, draws, mix
from daskw2v.objectives.cpu.hidden import OWN
from daskw2v.objectives.cpu.steps import group_sizes
from daskw2v.objectives.reference import Rows, pick_words, train_rows
from daskw2v.objectives.sgns.buckets.cpu import ITEMS, NOISE, SLICE
from daskw2v.sampling.hierarchy import WORD
from daskw2v.sampling.pairs import Pairs, unpack
from daskw2v.types import Int64Array, UInt64Array


def train_bucket(
    pairs: Pairs,
    noise: Pairs,
    source: Rows,
    output: Rows,
    alpha: float,
    negative: int,
    noise_negative: int,
    words: UInt64Array,
    key: np.uint64,
    train_batch: Callable[..., float] = train_rows,
) -> tuple[int, float]:
    """Train a bucket in place like `buckets.cpu.train_bucket`, in tables of (rows, D) float64.

    `train_batch` has the arguments of `objectives.reference.train_rows`.
    """
    batches = [-(-len(items) // ITEMS) for items in (pairs, noise)]
    n, loss = -(-max(batches) // SLICE), 0.0
    kinds = (unpack(pairs), key, negative, False), (unpack(noise), key ^ NOISE, max(noise_negative - 1, 0), True)
    for i in range(n):
        for n_batches, (items, stream, n_shared, is_noise) in zip(batches, kinds, strict=True):
            for batch in range(i * n_batches // n, (i + 1) * n_batches // n):
                contexts, centers = (rows[batch::n_batches] for rows in items)
                own_targets, own_signs = centers, np.ones(len(centers))
                state = draws(stream, np.array([batch], np.uint64))
                if is_noise:
                    own_targets = _draw_negatives(words, state, n_shared + np.arange(len(centers)))
                    own_signs = np.where(own_targets == centers, 0.0, -1.0)
                shared = _draw_negatives(words, state, np.arange(n_shared))
                signs = np.where(shared == centers[:, None], 0.0, -1.0)
                size = max(1, group_sizes(max(n_shared, 1), OWN)[1])
                loss += train_batch(source, contexts, output, (shared, signs), (own_targets, own_signs), alpha, size)
    return len(pairs), loss


def _draw_negatives(words: UInt64Array, state: UInt64Array, numbers: Int64Array) -> Int64Array:
    """Return the rows of a batch's negatives, from its random state, shape (1,), and the draws' numbers, shape (n,)."""
    return pick_words(words, mix.py_func(state + WORD + (numbers.astype(np.uint64) + np.uint64(1)) * GOLDEN))
