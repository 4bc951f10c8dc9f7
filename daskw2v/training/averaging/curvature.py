"""The number of updates of each row, and the rates at which updates fade: merges need both besides the changes.

Near an optimum, an update of a row by gradient descent shrinks its distance to it: k updates at a rate a leave the
share exp(-a k h) of a distance along an eigenvector of the loss's Hessian with eigenvalue h. The Hessian of a
window's loss by a row is the slope of the sigmoid times a sum over the rows that it meets (`objectives.curvature`), and
is nearly the same for all rows of a table: a matrix of D x D numbers, computed from the common model, which all
replicas started from.
"""

from collections.abc import Sequence
from functools import lru_cache
from threading import Lock
from typing import NamedTuple

import numpy as np

from daskw2v.features.settings import FEATURES
from daskw2v.features.words import total_weights
from daskw2v.kernels.multiply import multiply
from daskw2v.objectives.curvature import Moments, add_moments
from daskw2v.objectives.registry import find_objective
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import keep_thresholds
from daskw2v.training.start.blocks import TableBlock
from daskw2v.training.start.features import load_features
from daskw2v.training.start.initial_rows import get_prepared
from daskw2v.types import Float32Array, Float64Array

_SLOPE = 0.1  # of the sigmoid, on average: .25 at first, .104 to .108 in later training (100 MB and 300 MB, sgns)
_SAMPLED = 1 << 10  # rows
_preparing = Lock()  # merges of many blocks begin at once: one of them reads the counts


class Curvature(NamedTuple):
    """The eigenvalues and eigenvectors of the Hessian of a window's loss by a row of a table that the window touches.

    Parameters
    ----------
    values
        Eigenvalues, at least 0 and ascending, shape (D,) float32.
    vectors
        Eigenvectors, one a column, shape (D, D) float32.
    """

    values: Float32Array
    vectors: Float32Array


NO_CURVATURE = Curvature(np.empty(0, np.float32), np.empty((0, 0), np.float32))


def touches_per_window(run: Run) -> dict[str, Float64Array]:
    """Return the expected number of times that a window touches each row, by table, shape (rows,); cached.

    A row of a composed vector counts by the square of its share of the vector, as the curvature along it does.
    """
    with _preparing:
        return _touches_per_window(run)


@lru_cache(maxsize=2)
def _touches_per_window(run: Run) -> dict[str, Float64Array]:
    touched = find_objective(run.params.objective.name).touched
    assert touched is not None  # all objectives have it that train windows
    rows = touched(get_prepared(run), run.vocabulary.read_counts())
    features = load_features(run)
    if run.features is None or features is None:
        return rows
    total = features.own + total_weights(features)
    owners = np.repeat(np.arange(features.n_words), np.diff(features.offsets))
    known, shares = features.rows >= 0, features.expand_weights() / total[owners]
    feature_touches = (rows["input"][owners] * shares**2)[known]
    return {
        **rows,
        "input": rows["input"] * (features.own / total) ** 2,
        FEATURES: np.bincount(features.rows[known], feature_touches, run.features.rows),
    }


def kept_share(run: Run) -> float:
    """Return the share of corpus positions that subsampling keeps; cached."""
    with _preparing:
        return _kept_share(run)


@lru_cache(maxsize=2)
def _kept_share(run: Run) -> float:
    counts = run.vocabulary.read_counts()
    kept = counts * (keep_thresholds(counts, run.params.sample) / 2.0**32)
    return float(kept.sum() / max(1, counts.sum()))


def compute_moments(run: Run, block: TableBlock, rows: Float32Array) -> Moments:
    """Task: return the weighted moments of a block's rows, shape (rows, D) float32; of many rows, of a sample."""
    weights, columns = touches_per_window(run)[block.table][block.start : block.stop], rows.shape[1]
    first, second = np.zeros(columns), np.zeros((columns, columns))
    # The block's first rows, of its most frequent words, all count; of the others each n-th, for the rows around it
    interval = max(1, len(rows) // _SAMPLED)
    for sample, weight in ((slice(0, _SAMPLED), 1), (slice(_SAMPLED, None, interval), interval)):
        sampled = np.ascontiguousarray(rows[sample])
        weighted = sampled * (weight * weights[sample, None]).astype(np.float32)
        first += weighted.sum(axis=0)
        second += multiply(np.ascontiguousarray(weighted.T), sampled)
    return Moments(float(weights.sum()), first, second)


def compute_curvatures(run: Run, blocks: Sequence[TableBlock], moments: Sequence[Moments]) -> dict[str, Curvature]:
    """Task: return the curvature of each table, by name, from the moments of each block.

    Features have the curvature of "input".
    """
    by_table = dict[str, list[Moments]]()
    for block, block_moments in zip(blocks, moments, strict=True):
        by_table.setdefault("input" if block.table == FEATURES else block.table, []).append(block_moments)
    sums = {table: add_moments(*all_moments) for table, all_moments in by_table.items()}
    hessians = find_objective(run.params.objective.name).curvature(run.params, sums)
    curvatures = {table: _decompose(hessian) for table, hessian in hessians.items()}
    return {**curvatures, FEATURES: curvatures["input"]}


def _decompose(hessian: Float64Array) -> Curvature:
    """Return the eigenvalues, times the sigmoid's slope, and eigenvectors of a matrix of shape (D, D)."""
    values, vectors = np.linalg.eigh(hessian)
    return Curvature((_SLOPE * np.maximum(values, 0)).astype(np.float32), vectors.astype(np.float32))
