"""Lengths of vectors, and vectors scaled to length 1."""

import numpy as np

from daskw2v.types import Float32Array

_ROWS = 1024  # widened at once: some MB, which stay in the cache


def lengths(vectors: Float32Array) -> Float32Array:
    """Return the length of each of n vectors, shape (n,) float32; 1 for a zero vector."""
    found, wide = np.empty(len(vectors), np.float32), np.empty((min(_ROWS, len(vectors)), vectors.shape[1]))
    for start in range(0, len(vectors), _ROWS):
        rows = wide[: len(vectors) - start]
        rows[:] = vectors[start : start + _ROWS]
        found[start : start + _ROWS] = np.sqrt(np.vecdot(rows, rows))
    found[found == 0] = 1
    return found


def scaled(vectors: Float32Array) -> Float32Array:
    """Return vectors of words scaled to length 1, shape (n, D) float32; a zero vector stays."""
    units: Float32Array = vectors / lengths(vectors)[:, None]
    return units


def unit(vectors: Float32Array) -> Float32Array:
    """Return any vectors scaled to length 1, shape (n, D) float32, also those whose length exceeds float32."""
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return (vectors / np.where(norms > 0, norms, 1)).astype(np.float32)
