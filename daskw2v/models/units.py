"""Vectors' lengths, and vectors of length 1."""

import numpy as np

from daskw2v.models.rows import Floats


def lengths(vectors: Floats) -> Floats:
    """Return the length of each of n vectors, shape (n,) float32; 1 for a zero vector."""
    found: Floats = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)).astype(np.float32)
    found[found == 0] = 1
    return found


def scaled(vectors: Floats) -> Floats:
    """Return a model's vectors, scaled to length 1 as its words are, shape (n, D) float32."""
    units: Floats = vectors / lengths(vectors)[:, None]
    return units


def unit(vectors: Floats) -> Floats:
    """Return vectors of any size, whose length may be beyond float32, scaled to length 1, shape (n, D) float32."""
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return (vectors / np.where(norms > 0, norms, 1)).astype(np.float32)
