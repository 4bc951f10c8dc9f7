"""Clusters of vectors by k-means (Lloyd 1982), as product quantisation needs them: few dimensions, always 256 of them.

scikit-learn, which an extra installs, has the same; an index needs no extra for it.
"""

from importlib import import_module

import numpy as np

from daskw2v.types import Float32Array

CENTROIDS = 256  # as many as a byte tells apart
_SAMPLE = 1 << 15  # vectors that teach, at most: 128 for each centroid
_TIMES = 16  # by then, centroids hardly move


def centroids_of(vectors: Float32Array, seed: int) -> Float32Array:
    """Return centroids of n vectors of D dimensions, shape (D, CENTROIDS) float32: a line for each dimension.

    They start as vectors that are drawn. One that no vector is nearest to stays where it is.
    """
    assign, random = import_module("daskw2v.kernels.product").assign, np.random.default_rng(seed)
    taught = vectors[random.permutation(len(vectors))[:_SAMPLE]]
    found = np.ascontiguousarray(taught[np.arange(CENTROIDS) % len(taught)].T)
    room, codes = np.empty(CENTROIDS, np.float32), np.empty(len(taught), np.uint8)
    for _ in range(_TIMES):
        assign(taught, found, room, codes)
        sizes = np.bincount(codes, minlength=CENTROIDS)
        totals = np.stack([np.bincount(codes, weights, CENTROIDS) for weights in taught.T])
        found = np.where(sizes > 0, totals / np.maximum(sizes, 1), found).astype(np.float32)
    return found
